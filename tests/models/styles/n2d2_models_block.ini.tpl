[{{SECTION_NAME}}_a] conv_def
Input={{INPUT}}
KernelDims=3 3
NbOutputs={{NB_FILTERS}}
Stride={{STRIDES}}
Padding=1
WeightsFiller.Scaling=$(${L}**(-1.0/(2*2-2)) if ${L} > 0 else 1.0)

[{{SECTION_NAME}}_b] conv_def
Input={{SECTION_NAME}}_a
KernelDims=3 3
NbOutputs=$([{{SECTION_NAME}}_a]NbOutputs * 1)
Padding=1
ActivationFunction=Linear
{% if PROJECTION_SHORTCUT exists %}

[{{SECTION_NAME}}_proj] conv_def
Input={{INPUT}}
KernelDims=1 1
NbOutputs={{NB_FILTERS}}
Stride={{STRIDES}}
ActivationFunction=Linear
{% set INPUT %}{{SECTION_NAME}}_proj{% endset %}
{% endif %}

[{{SECTION_NAME}}_sum]
Input={{SECTION_NAME}}_b,{{INPUT}}
Type=ElemWise
NbOutputs={{NB_FILTERS}}
Operation=Sum
{% if NO_RELU not_exists %}
ActivationFunction=Rectifier
{% endif %}
