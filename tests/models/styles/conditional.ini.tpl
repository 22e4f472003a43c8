{% if DEEP == 1 %}
{% include conditional_body.ini.tpl %}
{% else %}
[last]
Input={{INPUT}}
Type=Dropout
NbOutputs={{NB}}
{% endif %}
