; The stages of a VGG network. INPUT: the layer before. STAGE: their number; STAGE[i].NB_OUTPUTS, STAGE[i].DEPTH.
; Uses [conv_def] and [pool_def] of the including file. The last result is pool<STAGE - 1>.
{% block STAGE %}
{% for i in range(.DEPTH) %}

[conv{{#}}_{{i}}] conv_def
{% if i != 0 %}
Input=${PREV_SECTION_NAME}
{% else %}
{% if # != 0 %}
Input=${PREV_SECTION_NAME}
{% else %}
Input={{INPUT}}
{% endif %}
{% endif %}
NbOutputs={{.NB_OUTPUTS}}
{% endfor %}

[pool{{#}}] pool_def
Input=${PREV_SECTION_NAME}
NbOutputs={{.NB_OUTPUTS}}
{% endblock %}
