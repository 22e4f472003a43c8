; an inception: four ways
[{{SECTION_NAME}}_1x1] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{C1}}

[{{SECTION_NAME}}_3x3_reduce] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{R3}}
[{{SECTION_NAME}}_3x3] conv_def
Input=${PREV_SECTION_NAME}
KernelSize=3
Padding=1
NbOutputs={{C3}}

[{{SECTION_NAME}}_5x5_reduce] conv_def
Input={{INPUT}}
KernelSize=1
NbOutputs={{R5}}
[{{SECTION_NAME}}_5x5] conv_def
Input=${PREV_SECTION_NAME}
KernelSize=5
Padding=2
NbOutputs={{C5}}

[{{SECTION_NAME}}_pool] maxpool_def
Input={{INPUT}}
PoolSize=3
Padding=1
NbOutputs={{CHANNELS}}
[{{SECTION_NAME}}_pp] conv_def
Input={{SECTION_NAME}}_pool
KernelSize=1
NbOutputs={{CP}}
