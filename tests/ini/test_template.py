"""Template inclusion and the template language."""

import time
from pathlib import Path

import pytest
from support.error_cases import headline
from support.errors import error_line, refused
from support.tables import every

from n2d2py.ini.lexer import SourceLine
from n2d2py.ini.template import Renderer


def render(text: str, **parameters: str) -> str:
    """The rendered text of a template, one line per line that is not blank."""
    Path("t.tpl").write_text(text)
    renderer = Renderer(lambda name, where: Path(name))
    lines = renderer.render(Path("t.tpl"), dict(parameters), "s")
    return "\n".join(line.text for line in lines if line.text.strip())


def failure(text: str, **parameters: str) -> str:
    return headline(error_line(render, text, **parameters))


@every(
    "text, expected",
    [
        ("a{{A}}b{{ B }}", "a1b2"),
        ("{% if A == 1 %}yes{% else %}no{% endif %}", "yes"),
        ("{% if A != 1 %}yes{% else %}no{% endif %}", "no"),
        ("{% if A == 01 %}yes{% else %}no{% endif %}", "no"),
        ("{% if E == %}empty{% endif %}", "empty"),
        ("{% if A exists %}yes{% endif %}{% if Z exists %}no{% endif %}", "yes"),
        ("{% if Z not_exists %}yes{% else %}no{% endif %}", "yes"),
        ("{% if A exists %}{% if B == 3 %}x{% else %}y{% endif %}{% else %}z{% endif %}", "y"),
        ("{% for i in range(3) %}{{i}},{% endfor %}", "0,1,2,"),
        ("{% for i in range(1,3) %}{{i}},{% endfor %}", "1,2,"),
        ("{% for i in range(1, 3) %}{{i}},{% endfor %}", "1,2,"),
        ("{% for i in range(A, N) %}{{i}},{% endfor %}", "1,2,3,"),
        ("{% for i in range(5, 2) %}x{% endfor %}-", "-"),
        ("{% for i in range(2) %}{% for j in range(2) %}{{i}}{{j}} {% endfor %}{% endfor %}", "00 01 10 11 "),
        ("{% for i in range(2) %}{% if i == 0 %}a{% else %}b{% endif %}{% endfor %}", "ab"),
        ("{% for i in range(2) %}{% endfor %}{% for i in range(2) %}{{i}}{% endfor %}", "01"),
        ("{% set V %}x{{A}}{% endset %}{{V}}{% set V %}{{V}}y{% endset %}{{V}}", "x1x1y"),
        ("{% if A == 1 %}{% set A %}2{% endset %}first{% else %}second{% endif %}{{A}}", "first2"),
        ("{% for i in range(2) %}{% set L %}{{i}}{% endset %}{% endfor %}{{L}}", "1"),
    ],
)
def test_language(text, expected):
    assert render(text, A="1", B="2", N="4", E="") == expected


def test_block_repeats_with_index_and_members():
    parameters = {"K": "2", "K[0].P": "a", "K[1].P": "b", "K[1].Q": "q", "K[0]": "whole"}
    text = "{% block K %}{{#}}:{{.P}}{% if .Q exists %}{{.Q}}{% endif %} {% endblock %}"
    assert render(text, **parameters) == "0:a 1:bq "


def test_block_has_a_parameter_set_of_its_own():
    text = "{% set V %}out{% endset %}{% block K %}{{V}}{% set V %}in{{#}}{% endset %}{{V}} {% endblock %}{{V}}"
    assert render(text, K="2") == "outin0 outin1 out"


def test_include_shares_the_parameters():
    Path("part.tpl").write_text("[{{A}}]\n{% set B %}set{% endset %}")
    assert render("{% include part.tpl %}{{B}}", A="1") == "[1]\nset"


def test_lines_keep_their_place():
    Path("t.tpl").write_text("{% for i in range(2) %}\n[a{{i}}]\nX=1\n{% endfor %}\nend\n")
    lines = Renderer(lambda name, where: Path(name)).render(Path("t.tpl"), {}, "s")
    assert [line for line in lines if line.text] == [
        SourceLine("[a0]", "t.tpl", 2),
        SourceLine("X=1", "t.tpl", 3),
        SourceLine("[a1]", "t.tpl", 2),
        SourceLine("X=1", "t.tpl", 3),
        SourceLine("end", "t.tpl", 5),
    ]


@every(
    "text, message",
    [
        ("\n{{MISSING}}", "E120: t.tpl:2 [s]"),
        ("{{INPUTT}}", "E120: t.tpl:1 [s]"),
        ("{% if Z == 1 %}{% endif %}", "E120: t.tpl:1 [s]"),
        ("\n{% if INPUT exists %}\nx", "E118: t.tpl:2 [s]"),
        ("{% for i in range(2) %}", "E118: t.tpl:1 [s]"),
        ("{% block K %}", "E118: t.tpl:1 [s]"),
        ("{% set K %}", "E118: t.tpl:1 [s]"),
        ("{% endif %}", "E118: t.tpl:1 [s]"),
        ("{% for i in range(1) %}\n{% endif %}", "E118: t.tpl:2 [s]"),
        ("{% else %}", "E118: t.tpl:1 [s]"),
        ("{% if K exists %}{% else %}{% else %}{% endif %}", "E118: t.tpl:1 [s]"),
        ("{% iff K exists %}", "E118: t.tpl:1 [s]"),
        ("{%  %}", "E118: t.tpl:1 [s]"),
        ("{% if K > 1 %}{% endif %}", "E118: t.tpl:1 [s]"),
        ("{% for i range(2) %}{% endfor %}", "E118: t.tpl:1 [s]"),
        ("a {% if", "E118: t.tpl:1 [s]"),
        ("{{A", "E118: t.tpl:1 [s]"),
        ("{% for INPUT in range(2) %}{% endfor %}", "E120: t.tpl:1 [s]"),
        ("{% for i in range(INPUT) %}{% endfor %}", "E120: t.tpl:1 [s]"),
        ("{% for i in range(999999999) %}{% endfor %}", "E117: t.tpl:1 [s]"),
        ("{% for i in range(900) %}{% for j in range(900) %}x{% endfor %}{% endfor %}", "E117: t.tpl:1 [s]"),
        ("{% for i in range(9000) %}" + "y" * 1000 + "{% endfor %}", "E117: t.tpl:1 [s]"),
        ("{% include t.tpl %}", "E117: t.tpl:1 [s]"),
        ("{% set A %}xx{% endset %}" + "{% set A %}{{A}}{{A}}{% endset %}" * 40, "E117: t.tpl:1 [s]"),
    ],
)
def test_errors(text, message):
    start = time.process_time()
    assert failure(text, INPUT="conv1", K="2") == "N2D2-" + message
    assert time.process_time() - start < 10  # far from what the input would cost unbounded


BLOCK = """$FROM_TEMPLATE=1
[{{SECTION_NAME}}_a] conv_def
Input={{INPUT}}
NbOutputs={{N}}
Before=${PREV_SECTION_NAME}
Parent=${PARENT_SECTION_NAME}
{% if RES exists %}
[{{SECTION_NAME}}_sum]
Input={{SECTION_NAME}}_a,{{INPUT}}
Before=${PREV_SECTION_NAME}
{% endif %}
"""


def test_inclusion_in_place_with_parameters(load):
    document = load(
        "[conv_def]\nType=Conv\n[conv1]\nNbOutputs=16\n[blk@b.ini.tpl]\nINPUT=conv1\n"
        "N=$([conv1]NbOutputs * 2)\nRES=1\n[after]\nBefore=${PREV_SECTION_NAME}\n",
        b__ini__tpl=BLOCK,
    )
    names = [section.name for section in document.sections]
    assert names == ["conv_def", "conv1", "blk", "blk_a", "blk_sum", "after"]
    section = document.section("blk_a")
    assert {key: section.text(key) for key in section.keys()} == {
        "Type": "Conv",
        "Input": "conv1",
        "NbOutputs": "32",
        "Before": "conv1",
        "Parent": "blk",
    }
    assert document.section("blk_sum").text("Input") == "blk_a,conv1"
    assert document.section("blk_sum").text("Before") == "blk_a"
    assert document.section("after").text("Before") == "blk_sum"
    assert document.globals.macros() == ["FROM_TEMPLATE"]
    assert str(section.where("NbOutputs")) == "b.ini.tpl:4 [blk_a]"
    assert str(document.section("blk_sum").location) == "b.ini.tpl:8 [blk_sum]"
    assert document.files == [Path("net.ini"), Path("b.ini.tpl")]


def test_bases_give_parameters_and_inclusions_repeat_without_warnings(load, warned):
    document = load("[conv_def]\n[d]\nN=4\n[x@b.ini.tpl] d\nINPUT=sp\n[y@b.ini.tpl] d\nINPUT=x_a\nN=8\n", b__ini__tpl=BLOCK)
    assert document.section("x_a").text("NbOutputs") == "4"
    assert document.section("y_a").text("NbOutputs") == "8"
    assert document.section("y_a").text("Before") == "x_a"
    assert warned() == []


def test_templates_include_templates(load):
    document = load(
        "[top@outer.tpl]\nN=2\n",
        outer__tpl=(
            "{% for i in range(N) %}\n[{{SECTION_NAME}}_{{i}}@inner.tpl]\nI={{i}}\n{% endfor %}\n"
            "[last]\nB=${PREV_SECTION_NAME}\n"
        ),
        inner__tpl="[{{SECTION_NAME}}_leaf]\nV={{I}}\nP=${PARENT_SECTION_NAME}\n"
        "B=${PREV_SECTION_NAME}\nF={{SECTION_FILE_NAME}}\n",
    )
    assert [section.name for section in document.sections] == ["top", "top_0", "top_0_leaf", "top_1", "top_1_leaf", "last"]
    leaf = document.section("top_1_leaf")
    assert [leaf.text(key) for key in "VPBF"] == ["1", "top_1", "top_0_leaf", "inner.tpl"]
    assert document.section("top_0_leaf").text("B") == ""
    assert document.section("last").text("B") == "top_1_leaf"


def test_templates_in_the_models_folder(load, workdir, monkeypatch):
    (workdir / "models").mkdir()
    (workdir / "models" / "m.tpl").write_text("[m]\nX={{A}}\n")
    monkeypatch.setenv("N2D2_MODELS", str(workdir / "models"))
    assert load("[a@m.tpl]\nA=1\n").section("m").text("X") == "1"
    assert load("[a@${N2D2_MODELS}/m.tpl]\nA=2\n").section("m").text("X") == "2"
    assert load("$DIR=models\n[a@${DIR}/m.tpl]\nA=3\n").section("m").text("X") == "3"


@pytest.mark.parametrize("folder", [None, "models"])
def test_templates_that_are_not_in_the_models_folder_but_beside_the_ini(load, workdir, monkeypatch, folder):
    """${N2D2_MODELS}/x.ini.tpl, as N2D2's own files have it, with or without the variable."""
    (workdir / "models").mkdir()
    if folder is None:
        monkeypatch.delenv("N2D2_MODELS", raising=False)
    else:
        monkeypatch.setenv("N2D2_MODELS", str(workdir / folder))
    (workdir / "m.tpl").write_text("[{{SECTION_NAME}}_m]\nX={{A}}\n[n@${N2D2_MODELS}/sub/k.tpl]\n")
    (workdir / "sub").mkdir()
    (workdir / "sub" / "k.tpl").write_text("[k]\n")
    assert load("[a@${N2D2_MODELS}/m.tpl]\nA=1\n").section("a_m").text("X") == "1"
    assert refused("E116|E117", load, "[a@${N2D2_MODELS}/../none.tpl]\n")


def test_templates_beside_the_including_file(load, workdir):
    (workdir / "sub").mkdir()
    (workdir / "sub" / "one.tpl").write_text("[b@two.tpl]\n")
    (workdir / "sub" / "two.tpl").write_text("[c]\nX=sub\n")
    (workdir / "two.tpl").write_text("[c]\nX=main\n")
    document = load("[a@sub/one.tpl]\n")
    assert document.section("c").text("X") == "sub"
    assert str(document.section("c").location) == "sub/two.tpl:1 [c]"


def test_files_outside_are_refused(refusal, workdir, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "o.tpl"
    outside.write_text("[o]\n")
    (workdir / "link.tpl").symlink_to(outside)
    (workdir / "i.tpl").write_text("{% include " + str(outside) + " %}")
    up = "../" * 20 + str(outside).lstrip("/")
    for name in (str(outside), up, "link.tpl"):
        assert refusal(f"[a@{name}]\n") == ["N2D2-E117: net.ini:1 [a]"]
    assert refusal("[a@i.tpl]\n") == ["N2D2-E117: i.tpl:1 [a]"]
    assert refusal("[a@none.tpl]\n") == ["N2D2-E116: net.ini:1 [a]"]


def test_reserved_parameters_cannot_be_given(refusal):
    assert refusal("[a@t.tpl]\nSECTION_NAME=b\n", t__tpl="") == ["N2D2-E120: net.ini:2 [a]"]


@pytest.mark.parametrize("text", ["[{{SECTION_NAME}}x@r.tpl]\n", "[{{SECTION_NAME}}x@r.tpl]\n[{{SECTION_NAME}}y@r.tpl]\n"])
def test_recursive_inclusion_is_refused_at_once(refusal, text):
    start = time.process_time()
    lines = refusal("[a@r.tpl]\n", r__tpl=text)
    assert lines[0].startswith("N2D2-E117: r.tpl:")
    assert time.process_time() - start < 10  # far from what the input would cost unbounded


def test_a_parameter_is_expanded_only_when_used(load):
    document = load("[a@t.tpl]\nUSED=1\nLATER=[x]_OutputsWidth\n[x]\n", t__tpl="[b]\nX={{USED}}\n")
    assert document.section("b").text("X") == "1"
