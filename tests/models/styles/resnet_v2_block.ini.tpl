[{{SECTION_NAME}}_bn1]
Input={{INPUT}}
Type=BatchNorm
NbOutputs=[{{INPUT}}]NbOutputs
ActivationFunction=Rectifier
[{{SECTION_NAME}}_c1] conv_def
Input={{SECTION_NAME}}_bn1
KernelSize=3
Padding=1
Stride={{STRIDE}}
NbOutputs={{FILTERS}}
[{{SECTION_NAME}}_bn2]
Input={{SECTION_NAME}}_c1
Type=BatchNorm
NbOutputs=[${PREV_SECTION_NAME}]NbOutputs
ActivationFunction=Rectifier
[{{SECTION_NAME}}_c2] conv_def
Input=${PREV_SECTION_NAME}
KernelSize=3
Padding=1
NbOutputs={{FILTERS}}
{% if SHORTCUT exists %}
[{{SECTION_NAME}}_short] conv_def
Input={{SECTION_NAME}}_bn1
KernelSize=1
Stride={{STRIDE}}
NbOutputs={{FILTERS}}
{% set INPUT %}{{SECTION_NAME}}_short{% endset %}
{% endif %}
[{{SECTION_NAME}}_sum]
Input={{SECTION_NAME}}_c2,{{INPUT}}
Type=ElemWise
Operation=Sum
NbOutputs={{FILTERS}}
