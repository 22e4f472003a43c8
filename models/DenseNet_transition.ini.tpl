; A transition of a DenseNet: a 1x1 convolution to half of the channels, and the average of 2x2 pixels.
;
; INPUT: the block before. Uses [dense_def] of the including file. The result is <section>_pool.

[{{SECTION_NAME}}_conv@DenseNet_conv.ini.tpl] dense_def
NAME={{SECTION_NAME}}_1x1
INPUT={{INPUT}}
NB_OUTPUTS=$([{{INPUT}}]NbOutputs // 2)
KERNEL=1

[{{SECTION_NAME}}_pool]
Input={{SECTION_NAME}}_1x1
Type=Pool
Pooling=Average
PoolSize=2
Stride=2
NbOutputs=[{{SECTION_NAME}}_1x1]NbOutputs
Mapping.Size=1
