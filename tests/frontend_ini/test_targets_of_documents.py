"""Target sections of a document: defaults, wildcards, what TargetCompare takes, and what is scored without any.

They look at `n2d2py.frontend.ini.targets`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.targets import read_targets
from n2d2py.ini import load_document

DROP = "[{0}]\nInput={1}\nType=Dropout\nNbOutputs={2}\n"
A = DROP.format("a", "sp", 3)
AB = A + DROP.format("b", "a", 3)
JOINED = AB + DROP.format("c", "a,b", 6)


def test_a_target_without_keys(build):
    (target,) = build(A + "[a.Target]\n").targets
    assert (target.name, target.tensor, target.top_n, target.mapping, target.as_data) == ("a.Target", "a", 1, "", False)
    assert (target.binary_threshold, target.kind, target.hue, target.stored) == (0.5, "TargetScore", 0.0, None)
    assert (target.high, target.low, str(target.location)) == (1.0, 0.0, "net.ini:6 [a.Target]")


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("TopN=5", "top_n", 5),
        ("TopN=1", "top_n", 1),
        ("LabelsMapping=labels.dat", "mapping", "labels.dat"),
        ("DataAsTarget=1", "as_data", True),
        ("DataAsTarget=0", "as_data", False),
        ("BinaryThreshold=0.25", "binary_threshold", 0.25),
        ("Type=TargetScore", "kind", "TargetScore"),
        ("Type=Target", "kind", "TargetScore"),
        ("Type=TargetROIs", "kind", "TargetROIs"),
        ("LabelsHueOffset=30", "hue", 30.0),
        ("TargetValue=0.75", "high", 0.75),
        ("DefaultValue=-1", "low", -1.0),
    ],
)
def test_keys_of_a_target(key, name, value, build):
    """One key changes one thing."""
    (plain,), (found,) = build(A + "[a.Target]\n").targets, build(A + f"[a.Target]\n{key}\n").targets
    assert getattr(found, name) == value
    others = {each for each in vars(plain) if getattr(plain, each) != getattr(found, each)}
    assert others == (set() if value == getattr(plain, name) else {name})


def test_the_least_number_of_labels(refusal):
    assert "TopN=0 is below 1" in refusal(A + "[a.Target]\nTopN=0\n")


def test_tensors_to_compare_with(build):
    """Their folder is beside the document, where it is there."""
    keys = "Type=TargetCompare\nDataPath=given\n"
    (target,) = build(A + f"[a.Target]\n{keys}").targets
    assert (target.kind, target.as_data, target.stored) == ("TargetCompare", True, (Path("given"), "*.dat", "NCHW", False))
    Path("given").mkdir()
    more = "Matching=*.npy\nTargetFormat=NHWC\nTargetTranspose=1\n"
    (target,) = build(A + f"[a.Target]\n{keys}{more}").targets
    assert target.stored is not None and target.stored[0].samefile("given") and target.stored[1:] == ("*.npy", "NHWC", True)


@pytest.mark.parametrize("key", ["DataPath=given", "Matching=*.npy", "TargetFormat=NHWC", "TargetTranspose=1"])
@pytest.mark.parametrize("kind", ["TargetScore", "TargetCompare"])
def test_keys_of_a_comparison_have_no_effect_elsewhere(key, kind, build):
    net = build(A + f"[a.Target]\nType={kind}\n{key}\n")
    net.document.ignored.warn()
    said = [warning.line() for warning in log.warnings_seen()]
    text = (
        f"N2D2-W108: net.ini: keys of TargetCompare in other targets have no effect here: {key.partition('=')[0]} in [a.Target]"
    )
    assert said == ([f"{text}; remove them, or set its Type"] if kind == "TargetScore" else [])


@pytest.mark.parametrize(
    ("pattern", "found"), [("*", ["a", "b", "c"]), ("?", ["a", "b", "c"]), ("b*", ["b"]), ("c_*", []), ("b", ["b"]), ("??", [])]
)
def test_a_target_of_several_layers(pattern, found, build, refusal):
    """Not of what joins the inputs of a layer."""
    text = JOINED + f"[{pattern}.Target-1]\nTopN=2\n"
    if not found:
        what = f"there is no layer '{pattern}' for this target; name an existing layer"
        assert refusal(text) == f"N2D2-E219: net.ini:14 [{pattern}.Target-1]: {what}"
        return
    net = build(text)
    assert [node.name for node in net.graph.nodes if node.helper] == ["c_concat"]
    assert [(target.name, target.tensor, target.top_n) for target in net.targets] == [
        (f"{name}.Target-1", name, 2) for name in found
    ]
    assert net.graph.outputs == found


def test_a_layer_that_several_targets_name_is_one_output(build):
    net = build(JOINED + "[c.Target]\n[*.Target]\n[a.Target]\n")
    assert [target.name for target in net.targets] == ["c.Target", "a.Target", "b.Target", "c.Target", "a.Target"]
    assert net.graph.outputs == ["c", "a", "b"]


@pytest.mark.parametrize("name", ["sp", "env", "cenv"])
def test_an_input_has_no_target(name, refusal):
    (line,) = refusal(A + f"[{name}.Target]\n").splitlines()
    assert f"E219: net.ini:6 [{name}.Target]: '{name}' is an input, not a layer" in line


def test_each_target_of_no_layer_is_named_once(refusal):
    lines = refusal(JOINED + "[bb.Target]\n[c.Target]\n[zzzzzz.Target3]\n").splitlines()
    assert len(lines) == 2
    assert "net.ini:14 [bb.Target]: there is no layer 'bb' for this target" in lines[0]
    assert "net.ini:16 [zzzzzz.Target3]: there is no layer 'zzzzzz' for this target" in lines[1]
    assert "name an existing layer" in lines[1]


def described(text: str):
    Path("net.ini").write_text("[sp]\n" + text)
    document = load_document(Path("net.ini"))
    graph = build_graph(document, (1, 3, 8, 10), None, 1)
    return read_targets(document, graph, describing=True), graph


def test_targets_that_are_only_described():
    """Their keys are not read, and those of no layer or of an input are warnings."""
    targets, graph = described(JOINED + "[b.Target]\nTopN=none\n[bad.Target]\n[sp.Target]\n")
    assert [(target.name, target.tensor, target.top_n) for target in targets] == [("b.Target", "b", 1), ("sp.Target", "sp", 1)]
    assert str(targets[0].location) == "net.ini:14 [b.Target]" and graph.outputs == ["b", "sp"]
    said = [warning.line() for warning in log.warnings_seen()]
    assert [line for line in said if "W219" in line and "there is no layer 'bad' for this target" in line] and len(said) == 1


@pytest.mark.parametrize(
    ("text", "outputs", "said"),
    [
        (AB, ["b"], "no Target section: the output 'b' is scored"),
        (AB + DROP.format("d", "a", 3), ["b", "d"], "no Target section: the outputs 'b', 'd' are scored"),
        (JOINED, ["c"], "no Target section: the output 'c' is scored"),
    ],
)
def test_without_targets_what_nothing_reads_is_scored(text, outputs, said, build, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda note, *given: notes.append(note % given))
    net = build(text)
    assert net.graph.outputs == outputs and said in notes
    assert [(target.name, target.tensor, target.location) for target in net.targets] == [
        (f"{name}.Target", name, None) for name in outputs
    ]


def test_outputs_that_are_known_are_kept():
    Path("net.ini").write_text("[sp]\n" + JOINED)
    document = load_document(Path("net.ini"))
    graph = build_graph(document, (1, 3, 8, 10), None, 1)
    graph.outputs = ["a", "c"]
    assert [target.tensor for target in read_targets(document, graph)] == graph.outputs == ["a", "c"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a", ["a"]),
        ("a_batchnorm", ["a_batchnorm"]),
        ("a_norm", []),
        ("a_linear", ["a_linear"]),
        ("*", ["a", "a_batchnorm"]),
        ("*norm", ["a_batchnorm"]),
    ],
)
def test_targets_of_an_inserted_normalization(name, found):
    """The tensor of the layer is that of the normalization behind it."""
    Path("net.ini").write_text(
        f"InsertBatchNormAfterConv=1\n[sp]\n[a]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=3\n[{name}.Target]\n"
    )
    document = load_document(Path("net.ini"))
    graph = build_graph(document, (1, 3, 8, 10), None, 1)
    if not found:
        with pytest.raises(N2D2Error, match=f"E219.*there is no layer '{name}' for this target"):
            read_targets(document, graph)
        return
    assert [target.name for target in read_targets(document, graph)] == [f"{each}.Target" for each in found]
