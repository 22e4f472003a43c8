; A basic block of a ResNet: two 3x3 convolutions; the input, or its 1x1 projection, is added.
;
; INPUT: the layer before. NB_OUTPUTS: channels of all layers. STRIDE (optional): of the first convolution.
; PROJECTION (optional): if given, the input goes through a 1x1 convolution, for it has other dimensions.
; Uses [resnet_def] and [sum_def] of the including file. The result is <section>_sum.
{% set STEP %}1{% endset %}
{% if STRIDE exists %}
{% set STEP %}{{STRIDE}}{% endset %}
{% endif %}
{% set SHORTCUT %}{{INPUT}}{% endset %}

[{{SECTION_NAME}}_first@ResNet_conv.ini.tpl] resnet_def
NAME={{SECTION_NAME}}_3x3_1
INPUT={{INPUT}}
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=3
STRIDE={{STEP}}
PADDING=1

[{{SECTION_NAME}}_second@ResNet_conv.ini.tpl] resnet_def
NAME={{SECTION_NAME}}_3x3_2
INPUT={{SECTION_NAME}}_3x3_1
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=3
PADDING=1
LINEAR=1
{% if PROJECTION exists %}
{% set SHORTCUT %}{{SECTION_NAME}}_1x1_projection{% endset %}

[{{SECTION_NAME}}_projection@ResNet_conv.ini.tpl] resnet_def
NAME={{SHORTCUT}}
INPUT={{INPUT}}
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=1
STRIDE={{STEP}}
LINEAR=1
{% endif %}

[{{SECTION_NAME}}_sum] sum_def
Input={{SECTION_NAME}}_3x3_2,{{SHORTCUT}}
NbOutputs={{NB_OUTPUTS}}
