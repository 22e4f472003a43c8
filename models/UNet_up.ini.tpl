; A level of a U-Net on the way up. INPUT: the layer below. SKIP: the layer of the way down to join; its channels
; are those of all results. UP: Resize or Deconv.
; Uses [conv_def] of the including file. The result is <section>_2.
{% if UP == Deconv %}

[{{SECTION_NAME}}_double]
Input={{INPUT}}
Type=Deconv
KernelSize=2
Stride=2
NbOutputs=[{{SKIP}}]_NbOutputs
WeightsFiller=HeFiller
{% else %}

[{{SECTION_NAME}}_resize]
Input={{INPUT}}
Type=Resize
Mode=NearestNeighbor
OutputWidth=[{{SKIP}}]_OutputsWidth
OutputHeight=[{{SKIP}}]_OutputsHeight
NbOutputs=[{{INPUT}}]_NbOutputs

[{{SECTION_NAME}}_double] conv_def
Input={{SECTION_NAME}}_resize
NbOutputs=[{{SKIP}}]_NbOutputs
{% endif %}

[{{SECTION_NAME}}_1] conv_def
Input={{SKIP}},{{SECTION_NAME}}_double
NbOutputs=[{{SKIP}}]_NbOutputs

[{{SECTION_NAME}}_2] conv_def
Input={{SECTION_NAME}}_1
NbOutputs=[{{SKIP}}]_NbOutputs
