"""Macros, references and their errors."""

import time
from pathlib import Path

import pytest
from support.error_cases import headline
from support.errors import error_line
from support.tables import every

from n2d2py import resources
from n2d2py.errors import N2D2Error


def value(document, section: str, key: str) -> str:
    return document.section(section).text(key)


def message(document, section: str, key: str) -> str:
    return error_line(lambda: document.section(section).text(key))


def failure(document, section: str, key: str) -> str:
    return headline(message(document, section, key))


def test_global_and_local_macros(load):
    document = load("$A=1\n$B=${A}2\n[s]\n$A=9\nX=${A} ${B}\n[t]\nX=${A} ${B}\n")
    assert value(document, "s", "X") == "9 92"
    assert value(document, "t", "X") == "1 12"


def test_macros_are_lazy_and_the_last_definition_counts(load, warned):
    document = load("$E=$(4 * ${S})\n$S=2\n$S=3\n[s]\nX=${E}\n")
    assert value(document, "s", "X") == "12"
    assert len(warned()) == 1 and "W101" in warned()[0]


def test_section_names(load):
    document = load("[def]\nN=${SECTION_NAME} after ${PREV_SECTION_NAME}\n[a] def\n[b] def\n")
    assert value(document, "def", "N") == "def after "
    assert value(document, "a", "N") == "a after def"
    assert value(document, "b", "N") == "b after a"


def test_an_inherited_value_reads_the_macros_of_the_heir(load):
    document = load("[def]\n$K=3\nX=${K}\n[a] def\n$K=5\n")
    assert (value(document, "def", "X"), value(document, "a", "X")) == ("3", "5")


def test_a_referenced_value_reads_the_macros_of_the_reader(load):
    document = load("[a]\n$K=3\nX=${K}\n[b]\n$K=7\nY=[a]X\n")
    assert value(document, "b", "Y") == "7"


def test_environment_is_the_last_place(load, monkeypatch):
    monkeypatch.setenv("MY_ROOT", "/r/${A}")
    monkeypatch.setenv("A", "env")
    document = load("$A=ini\n[s]\nX=${MY_ROOT}/f ${A}\n")
    assert value(document, "s", "X") == "/r/${A}/f ini"


def test_models_folder_by_default(load, monkeypatch):
    document = load("[s]\nX=${N2D2_MODELS}/a.onnx\n")
    assert value(document, "s", "X") == str(resources.folder("models")) + "/a.onnx"
    monkeypatch.setenv("N2D2_MODELS", "/m")
    assert value(document, "s", "X") == "/m/a.onnx"


def test_unknown_macro_lists_the_known_ones(load):
    document = load("$SIZE=1\n$ALPHA=2\n[s]\nX=${SIZ}\nY=${QQQ}\n")
    assert failure(document, "s", "X") == ("N2D2-E110: net.ini:4 [s]")
    assert failure(document, "s", "Y") == "N2D2-E110: net.ini:5 [s]"
    assert "ALPHA, SIZE" in message(document, "s", "Y")


@every(
    "text, expected",
    [
        ("[conv1]NbOutputs", "16"),
        ("$([conv1]NbOutputs * 2)", "32"),
        ("$([conv1]NbOutputs*2)", "32"),
        ("$(2 * [conv1]NbOutputs)", "32"),
        ("$(max([conv1]NbOutputs,[conv1]Stride))", "16"),
        ("[conv1]_OutputsWidth [conv1]_OutputsHeight", "80 40"),
        ("[conv1]Mapping.Size", "1"),
        ("[conv1]Anchor[0]", "5 6"),
        ("[conv1]ConfigSection(Frame)", "cfg"),
        ("[conv1]$LR", "0.5"),
        ("[conv1]NbOutputs-1", "16-1"),
        ("[none]NbOutputs", "[none]NbOutputs"),
        ("a[3] [ x", "a[3] [ x"),
        ("cell[2],[conv1]Stride", "cell[2],2"),
        ("[${W}1]Stride", "2"),
        ("[[conv1]Stride]", "[2]"),
    ],
)
def test_references(load, text, expected):
    document = load(
        "$W=conv\n[conv1]\n$LR=0.5\nN=1\nNbOutputs=$(int(32 * 0.5))\nStride=2\n"
        "Mapping=x\nMapping.Size=1\nAnchor[0]=5 6\nConfigSection(Frame)=cfg\n[s]\nX=" + text + "\n"
    )
    document.section("conv1").set_automatic("_OutputsWidth", 80)
    document.section("conv1").set_automatic("_OutputsHeight", 40)
    assert value(document, "s", "X") == expected


def test_references_never_take_a_part_of_a_name(load):
    document = load("[conv1]\nN=1\nWeightsFiller=He\n[s]\nX=[conv1]NbOutputs\nY=[conv1]WeightsFiller.Scaling\nZ=[conv1]\n")
    assert failure(document, "s", "X") == ("N2D2-E108: net.ini:5 [s]")
    assert failure(document, "s", "Y") == ("N2D2-E108: net.ini:6 [s]")
    assert failure(document, "s", "Z") == ("N2D2-E115: net.ini:7 [s]")


def test_automatic_properties_are_seen_once_set(load):
    document = load("[pool]\nPoolDims=[c]_OutputsWidth [c]_OutputsHeight\n[c]\nInput=sp\n")
    assert failure(document, "pool", "PoolDims") == ("N2D2-E108: net.ini:2 [pool]")
    document.section("c").set_automatic("_OutputsWidth", 7)
    document.section("c").set_automatic("_OutputsHeight", 5)
    assert value(document, "pool", "PoolDims") == "7 5"
    assert document.section("c").keys() == ["Input"]


def test_automatic_properties_of_layers_without_section(load):
    document = load("[s]\nX=[net/Conv:0]_NbOutputs\n")
    assert value(document, "s", "X") == "[net/Conv:0]_NbOutputs"
    document.automatic_section("net/Conv:0").set_automatic("_NbOutputs", 24)
    assert value(document, "s", "X") == "24"
    assert "net/Conv:0" not in document


def test_cycles_are_reported_with_their_chain(load):
    document = load("$A=${B}\n$B=${A}\n[a]\nX=[b]Y\nS=[a]S\nM=1 ${A}\n[b]\nY=$(1+[a]X)\n")
    assert failure(document, "a", "X") == ("N2D2-E111: net.ini:4 [a]")
    assert "[a]X -> [b]Y -> [a]X;" in message(document, "a", "X")
    assert "[a]S -> [a]S;" in message(document, "a", "S")
    assert "${A} -> ${B} -> ${A};" in message(document, "a", "M")


@pytest.mark.parametrize("text, message", [("${A", "N2D2-E114: net.ini:2 [s]"), ("$((1+2)", "N2D2-E114: net.ini:2 [s]")])
def test_unclosed_constructs(load, text, message):
    assert failure(load(f"[s]\nX={text}\n"), "s", "X") == message


def test_expression_errors_quote_what_is_written_and_what_is_read(load):
    document = load("$L=0\n[s]\nX=$(1 / ${L})\nY=$(foo + 1)\n")
    assert failure(document, "s", "X") == ("N2D2-E112: net.ini:3 [s]")
    assert failure(document, "s", "Y") == "N2D2-E112: net.ini:4 [s]"
    assert all(text in message(document, "s", "X") for text in ("$(1 / ${L})", "$(1 / 0)"))
    assert "$(foo + 1)" in message(document, "s", "Y")


def test_an_error_in_a_macro_is_placed_at_its_definition(load):
    document = load("$BAD=$(1 +)\n[s]\nX=${BAD}\n")
    assert failure(document, "s", "X").startswith("N2D2-E112: net.ini:1")


def test_long_chains_of_references_are_followed(load):
    text = "[l0]\nN=7\n" + "".join(f"[l{i}]\nN=[l{i - 1}]N\n" for i in range(1, 150))
    assert value(load(text), "l149", "N") == "7"


@pytest.mark.parametrize(
    "text",
    [
        "$M0=x\n" + "".join(f"$M{i}=${{M{i - 1}}}${{M{i - 1}}}\n" for i in range(1, 60)) + "[s]\nX=${M59}\n",
        "$M0=\n" + "".join(f"$M{i}=${{M{i - 1}}}${{M{i - 1}}}\n" for i in range(1, 60)) + "[s]\nX=${M59}\n",
        "$M0=y\n" + "".join(f"$M{i}=${{M{i - 1}}}\n" for i in range(1, 1000)) + "[s]\nX=${M999}\n",
        "[s]\nX=" + "$(" * 5000 + "1" + ")" * 5000 + "\n",
        "$T=" + "y" * 100000 + "\n[s]\nX=" + "${T}" * 9000 + "\n",
    ],
)
def test_bombs_are_refused_at_once(load, text):
    document = load(text)
    start = time.process_time()
    message = failure(document, "s", "X")
    assert message.startswith(("N2D2-E113: ", "N2D2-E112: "))
    assert time.process_time() - start < 10  # far from what the input would cost unbounded


@every("text", ["[" * 300_000 + "]", "[s]" * 50_000, "${" * 100_000, "]" * 100_000, "[${A}" * 60_000 + "]"])
def test_brackets_never_loop(load, text):
    document = load("$A=a\n[s]\nX=" + text + "\n")
    start = time.process_time()
    try:
        assert document.section("s").text("X")
    except N2D2Error as error:
        assert error.code in ("E113", "E114", "E115")
    assert time.process_time() - start < 20  # unbounded work would take far longer


def test_worked_example_of_the_specification(load):
    document = load(Path(__file__).with_name("worked_example.ini").read_text())
    assert value(document, "sp", "SizeX") == "160"
    assert value(document, "conv1", "NbOutputs") == "16"
    assert value(document, "conv1_dw", "NbOutputs") == "16"
    assert value(document, "conv1_dw", "ActivationFunction") == "Rectifier"
    document.section("conv1_dw").set_automatic("_OutputsWidth", 80)
    document.section("conv1_dw").set_automatic("_OutputsHeight", 80)
    assert value(document, "pool", "PoolDims") == "80 80"
    assert value(document, "pool", "NbOutputs") == "16"
