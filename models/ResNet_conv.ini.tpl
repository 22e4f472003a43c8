; A convolution of a ResNet with its BatchNorm, if wanted. The result is [<NAME>].
;
; NAME, INPUT, NB_OUTPUTS, KERNEL. BATCHNORM: 0 or 1. STRIDE, PADDING (optional): 1 and 0.
; LINEAR (optional): if given, no rectifier follows.
; Uses [conv_def] and [bn_def] of the including file.
{% set CONV %}{{NAME}}{% endset %}
{% if BATCHNORM == 1 %}
{% set CONV %}{{NAME}}_conv{% endset %}
{% endif %}

[{{CONV}}] conv_def
Input={{INPUT}}
KernelSize={{KERNEL}}
{% if STRIDE exists %}
Stride={{STRIDE}}
{% endif %}
{% if PADDING exists %}
Padding={{PADDING}}
{% endif %}
NbOutputs={{NB_OUTPUTS}}
{% if BATCHNORM == 1 %}

[{{NAME}}] bn_def
Input={{CONV}}
NbOutputs={{NB_OUTPUTS}}
{% endif %}
{% if LINEAR not_exists %}
ActivationFunction=Rectifier
{% endif %}
