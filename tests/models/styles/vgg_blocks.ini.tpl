{% block STAGES %}
{% set FROM %}{{.INPUT}}{% endset %}
{% for k in range(.LAYERS) %}
[s{{#}}/conv{{k}}]
Input={{FROM}}
Type=Conv
KernelSize=3
Padding=1
NbOutputs={{.FILTERS}}
ActivationFunction=Rectifier
{% set FROM %}s{{#}}/conv{{k}}{% endset %}
{% endfor %}
[s{{#}}/pool]
Input={{FROM}}
Type=Pool
Pooling=Max
PoolDims=2 2
Stride=2
NbOutputs={{.FILTERS}}
Mapping.Size=1
{% endblock %}
