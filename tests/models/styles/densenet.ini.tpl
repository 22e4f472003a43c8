{% set LIST %}{{INPUT}}{% endset %}
{% set WIDTH %}[{{INPUT}}]NbOutputs{% endset %}
{% for i in range(LAYERS) %}
[{{SECTION_NAME}}_l{{i}}_bn] bn_def
Input={{LIST}}
NbOutputs=$({{WIDTH}})

[{{SECTION_NAME}}_l{{i}}_conv] conv_def
Input={{SECTION_NAME}}_l{{i}}_bn
KernelSize=3
Padding=1
NbOutputs=${GROWTH}
{% set LIST %}{{LIST}},{{SECTION_NAME}}_l{{i}}_conv{% endset %}
{% set WIDTH %}{{WIDTH}} + ${GROWTH}{% endset %}
{% endfor %}
[{{SECTION_NAME}}_out]
Input={{LIST}}
Type=Activation
ActivationFunction=Linear
NbOutputs=$({{WIDTH}})
