; A basic block: two 3x3 convolutions; the input, or its 1x1 projection where it has a stride, is added.
;
; INPUT: the layer before. NB_OUTPUTS: channels of all layers. STRIDE (optional): of the first convolution.
; Uses [sum_def] and $W_STEPS of the including file. The result is <section>_sum.
{% set STEP %}1{% endset %}
{% set SHORTCUT %}{{INPUT}}{% endset %}
{% if STRIDE exists %}
{% set STEP %}{{STRIDE}}{% endset %}
{% set SHORTCUT %}{{SECTION_NAME}}_projection{% endset %}
{% endif %}

[{{SECTION_NAME}}_first_layer@ResNet8_conv_QAT.ini.tpl]
NAME={{SECTION_NAME}}_first
INPUT={{INPUT}}
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=3
STRIDE={{STEP}}
PADDING=1
W_STEPS=${W_STEPS}

[{{SECTION_NAME}}_second_layer@ResNet8_conv_QAT.ini.tpl]
NAME={{SECTION_NAME}}_second
INPUT={{SECTION_NAME}}_first
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=3
PADDING=1
W_STEPS=${W_STEPS}
LINEAR=1
{% if STRIDE exists %}

[{{SECTION_NAME}}_projection_layer@ResNet8_conv_QAT.ini.tpl]
NAME={{SHORTCUT}}
INPUT={{INPUT}}
NB_OUTPUTS={{NB_OUTPUTS}}
KERNEL=1
STRIDE={{STEP}}
W_STEPS=${W_STEPS}
LINEAR=1
{% endif %}

[{{SECTION_NAME}}_sum] sum_def
Input={{SECTION_NAME}}_second,{{SHORTCUT}}
NbOutputs={{NB_OUTPUTS}}
