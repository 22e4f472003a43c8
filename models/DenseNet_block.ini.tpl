; A block of a DenseNet: LAYERS times a 1x1 and a 3x3 convolution, whose $GROWTH channels are joined to their input.
;
; INPUT: the layer before. LAYERS: how many.
; Uses $GROWTH, [dense_def] and [join_def] of the including file. The result is <section>.<LAYERS - 1>_join.
{% set LAST %}{{INPUT}}{% endset %}
{% for i in range(LAYERS) %}

[{{SECTION_NAME}}.{{i}}_reduce@DenseNet_conv.ini.tpl] dense_def
NAME={{SECTION_NAME}}.{{i}}_1x1
INPUT={{LAST}}
NB_OUTPUTS=$(4 * ${GROWTH})
KERNEL=1

[{{SECTION_NAME}}.{{i}}_filter@DenseNet_conv.ini.tpl] dense_def
NAME={{SECTION_NAME}}.{{i}}_3x3
INPUT={{SECTION_NAME}}.{{i}}_1x1
NB_OUTPUTS=${GROWTH}
KERNEL=3
PADDING=1

[{{SECTION_NAME}}.{{i}}_join] join_def
Input={{LAST}},{{SECTION_NAME}}.{{i}}_3x3
NbOutputs=$([{{LAST}}]NbOutputs + ${GROWTH})
{% set LAST %}{{SECTION_NAME}}.{{i}}_join{% endset %}
{% endfor %}
