; A fire module of SqueezeNet. INPUT: one layer, or several with commas. SQUEEZE, EXPAND: channels.
; Uses [conv_def] of the including file. The result is <section>_expand1x1 and <section>_expand3x3.

[{{SECTION_NAME}}_squeeze] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{SQUEEZE}}

[{{SECTION_NAME}}_expand1x1] conv_def
Input={{SECTION_NAME}}_squeeze
KernelSize=1
NbOutputs={{EXPAND}}

[{{SECTION_NAME}}_expand3x3] conv_def
Input={{SECTION_NAME}}_squeeze
KernelSize=3
Padding=1
NbOutputs={{EXPAND}}
