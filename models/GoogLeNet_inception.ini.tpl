; An inception of GoogLeNet: 1x1, 3x3 and 5x5 convolutions and a pool side by side.
;
; INPUT: the layer before. CONV1, CONV3, CONV5: channels of the three convolutions. REDUCE3, REDUCE5: channels of the 1x1
; convolutions before the larger ones. PROJECT: channels of the 1x1 convolution behind the pool.
; Uses [conv_def], [pool_def] and [join_def] of the including file. The result is <section>_join.

[{{SECTION_NAME}}_1x1] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{CONV1}}

[{{SECTION_NAME}}_3x3_reduce] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{REDUCE3}}

[{{SECTION_NAME}}_3x3] conv_def
Input=${PREV_SECTION_NAME}
KernelSize=3
Padding=1
NbOutputs={{CONV3}}

[{{SECTION_NAME}}_5x5_reduce] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{REDUCE5}}

[{{SECTION_NAME}}_5x5] conv_def
Input=${PREV_SECTION_NAME}
KernelSize=5
Padding=2
NbOutputs={{CONV5}}

[{{SECTION_NAME}}_pool] pool_def
Input={{INPUT}}
NbOutputs=[{{INPUT}}]_NbOutputs

[{{SECTION_NAME}}_project] conv_def
Input={{SECTION_NAME}}_pool
KernelSize=1
NbOutputs={{PROJECT}}

[{{SECTION_NAME}}_join] join_def
Input={{SECTION_NAME}}_1x1,{{SECTION_NAME}}_3x3,{{SECTION_NAME}}_5x5,{{SECTION_NAME}}_project
NbOutputs=$({{CONV1}} + {{CONV3}} + {{CONV5}} + {{PROJECT}})
