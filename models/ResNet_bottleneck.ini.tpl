; A bottleneck of a ResNet: 1x1 to fewer channels, 3x3, 1x1 to four times as many; the input, or its 1x1
; projection, is added.
;
; INPUT: the layer before. NB_OUTPUTS: channels of the first two convolutions. STRIDE (optional): of the first.
; PROJECTION (optional): if given, the input goes through a 1x1 convolution, for it has other dimensions.
; Uses [resnet_def] and [sum_def] of the including file. The result is <section>_sum.
{% set STEP %}1{% endset %}
{% if STRIDE exists %}
{% set STEP %}{{STRIDE}}{% endset %}
{% endif %}
{% set SHORTCUT %}{{INPUT}}{% endset %}
{% set WIDE %}$({{NB_OUTPUTS}} * 4){% endset %}

[{{SECTION_NAME}}_reduce@ResNet_conv.ini.tpl] resnet_def
NAME={{SECTION_NAME}}_1x1_reduce
INPUT={{INPUT}}
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=1
STRIDE={{STEP}}

[{{SECTION_NAME}}_filter@ResNet_conv.ini.tpl] resnet_def
NAME={{SECTION_NAME}}_3x3
INPUT={{SECTION_NAME}}_1x1_reduce
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=3
PADDING=1

[{{SECTION_NAME}}_expand@ResNet_conv.ini.tpl] resnet_def
NAME={{SECTION_NAME}}_1x1_expand
INPUT={{SECTION_NAME}}_3x3
NB_OUTPUTS={{WIDE}}
KERNEL=1
LINEAR=1
{% if PROJECTION exists %}
{% set SHORTCUT %}{{SECTION_NAME}}_1x1_projection{% endset %}

[{{SECTION_NAME}}_projection@ResNet_conv.ini.tpl] resnet_def
NAME={{SHORTCUT}}
INPUT={{INPUT}}
NB_OUTPUTS={{WIDE}}
KERNEL=1
STRIDE={{STEP}}
LINEAR=1
{% endif %}

[{{SECTION_NAME}}_sum] sum_def
Input={{SECTION_NAME}}_1x1_expand,{{SHORTCUT}}
NbOutputs={{WIDE}}
