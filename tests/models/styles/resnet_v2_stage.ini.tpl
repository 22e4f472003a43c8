{% for i in range(3) %}
{% if i == 0 %}
[{{SECTION_NAME}}_b{{i}}@resnet_v2_block.ini.tpl]
INPUT={{INPUT}}
STRIDE={{STRIDE}}
{% if STRIDE != 1 %}
SHORTCUT=1
{% endif %}
{% else %}
[{{SECTION_NAME}}_b{{i}}@resnet_v2_block.ini.tpl]
INPUT={{LAST}}
STRIDE=1
{% endif %}
FILTERS={{FILTERS}}
{% set LAST %}{{SECTION_NAME}}_b{{i}}_sum{% endset %}
{% endfor %}
