; A convolution with its BatchNorm [<NAME>], quantized by $QUANTIZER.
;
; NAME, INPUT, NB_OUTPUTS, KERNEL, W_STEPS. STRIDE, PADDING (optional): 1 and 0.
; LINEAR (optional): if given, no rectifier follows; the sum behind it rounds.
; Uses [conv_def] and [bn_def], $QUANTIZER and $A_STEPS of the including file.

[{{NAME}}_conv] conv_def
Input={{INPUT}}
KernelSize={{KERNEL}}
{% if STRIDE exists %}
Stride={{STRIDE}}
{% endif %}
{% if PADDING exists %}
Padding={{PADDING}}
{% endif %}
NbOutputs={{NB_OUTPUTS}}
QWeight.Range={{W_STEPS}}

[{{NAME}}] bn_def
Input={{NAME}}_conv
NbOutputs={{NB_OUTPUTS}}
{% if LINEAR not_exists %}
ActivationFunction=Rectifier
QAct=${QUANTIZER}
QAct.Range=${A_STEPS}
{% endif %}
