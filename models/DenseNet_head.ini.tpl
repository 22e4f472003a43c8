; The end of a DenseNet: the average of each channel, behind a BatchNorm and a rectifier, if wanted.
;
; INPUT: the last block. BATCHNORM: 0 or 1. Uses [bn_def] of the including file. The result is <section>_pool.
{% set SOURCE %}{{INPUT}}{% endset %}
{% if BATCHNORM == 1 %}
{% set SOURCE %}{{SECTION_NAME}}_bn{% endset %}

[{{SECTION_NAME}}_bn] bn_def
Input={{INPUT}}
NbOutputs=[{{INPUT}}]NbOutputs
{% endif %}

[{{SECTION_NAME}}_pool]
Input={{SOURCE}}
Type=Pool
Pooling=Average
PoolDims=[{{INPUT}}]_OutputsWidth [{{INPUT}}]_OutputsHeight
NbOutputs=[{{INPUT}}]NbOutputs
Mapping.Size=1
