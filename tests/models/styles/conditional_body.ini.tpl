[{{SECTION_NAME}}_a]
Input={{INPUT}}
Type=Conv
KernelSize=1
NbOutputs=$(2 * {{NB}})
[last]
Input=${PREV_SECTION_NAME}
Type=Pool
Pooling=Max
PoolDims=2 2
Stride=2
NbOutputs=[${PREV_SECTION_NAME}]NbOutputs
Mapping.Size=1
