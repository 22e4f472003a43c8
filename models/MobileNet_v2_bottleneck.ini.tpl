; An inverted bottleneck of MobileNet v2: expand (1x1), filter each channel (3x3), project linearly (1x1).
;
; INPUT: the layer before. NB_OUTPUTS: channels of the result. EXPANSION: channels inside by channels of INPUT.
; STRIDE (optional): of the 3x3 convolution. RESIDUAL (optional): if given, INPUT is added to the result.
; Uses [conv_def] of the including file.

[{{SECTION_NAME}}_1x1] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs=$([{{INPUT}}]NbOutputs * {{EXPANSION}})

[{{SECTION_NAME}}_3x3] conv_def
Input={{SECTION_NAME}}_1x1
KernelSize=3
Padding=1
{% if STRIDE exists %}
Stride={{STRIDE}}
{% endif %}
NbOutputs=[{{SECTION_NAME}}_1x1]NbOutputs
Mapping.ChannelsPerGroup=1

[{{SECTION_NAME}}_1x1_linear] conv_def
Input={{SECTION_NAME}}_3x3
ActivationFunction=Linear
ActivationFunction.Clipping=0
KernelSize=1
NbOutputs={{NB_OUTPUTS}}
{% if RESIDUAL exists %}

[{{SECTION_NAME}}_sum]
Input={{SECTION_NAME}}_1x1_linear,{{INPUT}}
Type=ElemWise
Operation=Sum
NbOutputs={{NB_OUTPUTS}}
{% endif %}
