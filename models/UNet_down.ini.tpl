; A level of a U-Net on the way down. INPUT: the layer before. NB_OUTPUTS: channels.
; LOWEST (optional): if given, no pooling follows.
; Uses [conv_def] and [pool_def] of the including file. Results: <section>_2, for the skip connection, <section>_pool.
{% for i in range(1, 3) %}

[{{SECTION_NAME}}_{{i}}] conv_def
{% if i == 1 %}
Input={{INPUT}}
{% else %}
Input=${PREV_SECTION_NAME}
{% endif %}
NbOutputs={{NB_OUTPUTS}}
{% endfor %}
{% if LOWEST not_exists %}

[{{SECTION_NAME}}_pool] pool_def
Input={{SECTION_NAME}}_2
NbOutputs={{NB_OUTPUTS}}
{% endif %}
