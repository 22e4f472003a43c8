; A stage of MobileNet v1: DEPTH pairs of a depthwise and a pointwise convolution.
;
; INPUT: the layer before. NB_OUTPUTS: channels. DEPTH: pairs. STRIDE: of the first depthwise convolution.
; Uses [conv_def] of the including file. The result is <section>.<DEPTH - 1>_1x1.
{% set PREVIOUS %}{{INPUT}}{% endset %}
{% for i in range(DEPTH) %}

[{{SECTION_NAME}}.{{i}}_3x3] conv_def
Input={{PREVIOUS}}
KernelSize=3
Padding=1
{% if i == 0 %}
Stride={{STRIDE}}
{% endif %}
NbOutputs=[{{PREVIOUS}}]_NbOutputs
Mapping.ChannelsPerGroup=1

[{{SECTION_NAME}}.{{i}}_1x1] conv_def
Input=${PREV_SECTION_NAME}
KernelSize=1
NbOutputs={{NB_OUTPUTS}}
{% set PREVIOUS %}{{SECTION_NAME}}.{{i}}_1x1{% endset %}
{% endfor %}
