; A convolution of a DenseNet with the BatchNorm and rectifier in front of it, if wanted. The result is [<NAME>].
;
; NAME, INPUT, NB_OUTPUTS, KERNEL. STRIDE, PADDING (optional): 1 and 0.
; FIRST (optional): if given, the BatchNorm follows instead, for the input is the network's.
; BATCHNORM: 0 or 1.
; Uses [conv_def] and [bn_def] of the including file.
{% set SOURCE %}{{INPUT}}{% endset %}
{% set CONV %}{{NAME}}{% endset %}
{% if BATCHNORM == 1 %}
{% if FIRST exists %}
{% set CONV %}{{NAME}}_conv{% endset %}
{% else %}
{% set SOURCE %}{{NAME}}_bn{% endset %}

[{{NAME}}_bn] bn_def
Input={{INPUT}}
NbOutputs=[{{INPUT}}]NbOutputs
{% endif %}
{% endif %}

[{{CONV}}] conv_def
Input={{SOURCE}}
KernelSize={{KERNEL}}
{% if STRIDE exists %}
Stride={{STRIDE}}
{% endif %}
{% if PADDING exists %}
Padding={{PADDING}}
{% endif %}
NbOutputs={{NB_OUTPUTS}}
{% if BATCHNORM == 0 %}
ActivationFunction=Rectifier
{% else %}
{% if FIRST exists %}

[{{NAME}}] bn_def
Input={{CONV}}
NbOutputs={{NB_OUTPUTS}}
{% endif %}
{% endif %}
