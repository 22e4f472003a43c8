"""Sections of ONNX files and of their layers in an INI: keys, precisions, stored weights, names that both have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from n2d2py import log

SECTION = "[net]\nInput=sp\nType=ONNX\nFile=net.onnx\n"
F = np.float32


@pytest.fixture(autouse=True)
def weights(workdir: Path) -> dict[str, np.ndarray]:
    """Those of the file: x (3, 8, 10) -> a, a convolution with bias -> b, one without -> r, a Relu -> s, a Softmax."""
    rng = np.random.default_rng(4)
    held = {"wa": rng.normal(size=(5, 3, 1, 1)), "ba": rng.normal(size=5), "wb": rng.normal(size=(4, 5, 1, 1))}
    held = {name: array.astype(F) for name, array in held.items()}
    nodes = [
        helper.make_node("Conv", ["x", "wa", "ba"], ["a"]),
        helper.make_node("Conv", ["a", "wb"], ["b"]),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("Softmax", ["r"], ["s"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 3, 8, 10])],
        [helper.make_tensor_value_info("s", 1, [1, 4, 8, 10])],
        [numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), workdir / "net.onnx")
    return held


def precisions(net) -> dict[str, tuple]:
    return {name: (each.bits, each.weight_bits, each.quantize) for name, each in net.graph.precisions.items()}


LAYERS = {
    "": {},
    "[a]\n": {},
    "[a]\nQuantBits=16\n": {"a": (16, None, None)},
    "[b]\nQuantWeightBits=4\n[a]\nQuantize=0\n": {"b": (None, 4, None), "a": (None, None, False)},
    "[r]\nQuantBits=16\n": {"r": (16, None, None)},
    "[s]\nQuantize=0\n": {"s": (None, None, False)},
    "[fc]\nInput=net\nType=Fc\nNbOutputs=2\n[a]\nQuantBits=16\n": {"a": (16, None, None)},
    "[a]\nQuantBits=16\n[fc]\nInput=net\nType=Fc\nNbOutputs=2\n[b]\nQuantBits=8\n": {
        "a": (16, None, None),
        "b": (8, None, None),
    },
    "[net:Conv_def]\n[a]\nQuantBits=16\n": {"a": (16, None, None)},
    "[net:Conv_def]\nModel=Frame\n[a]\nModel=Frame\nQuantBits=16\n": {"a": (16, None, None)},
    "[other:Conv_def]\nFoo=1\n[a]\nQuantBits=16\n": {"a": (16, None, None)},
    "[net:more]\nFoo=1\n[a]\nQuantBits=16\n": {"a": (16, None, None)},
    "[zz]\nQuantBits=16\n": {},
}


@pytest.mark.parametrize("text", LAYERS)
@pytest.mark.parametrize("first", [True, False])
def test_the_precision_of_layers_of_a_file(text, first, build):
    """Wherever the section stands; sections of other things are not looked at."""
    assert precisions(build(SECTION + text if first else text + SECTION)) == LAYERS[text]


@pytest.mark.parametrize(("left", "wanted"), [("r", {"b": (16, None, None)}), ("s", {"r": (16, None, None)}), ("a b", {})])
def test_the_section_of_a_layer_that_is_left_out(left, wanted, build):
    """It says something of the layer whose result is in its place; of an input nothing."""
    assert precisions(build(SECTION + f"Ignore={left}\n[{left[-1]}]\nQuantBits=16\n")) == wanted


@pytest.mark.parametrize("name", ["a", "r", "s"])
def test_a_layer_of_the_ini_with_the_name_of_one_of_the_file(name, refusal):
    """Whichever comes first."""
    layer = f"[{name}]\nInput={{}}\nType=Softmax\nNbOutputs={{}}\n"
    for text in (SECTION + layer.format("net", 4), layer.format("sp", 3) + SECTION.replace("Input=sp", f"Input={name}")):
        found = refusal(text)
        assert found.startswith("N2D2-E312") and f"the layer name '{name}' is used by the INI and by the ONNX graph" in found


def test_a_layer_of_the_file_takes_no_file(refusal):
    """Its other keys would have no effect beside it."""
    found = refusal(SECTION + "[a]\nQuantBits=16\nFile=a.onnx\n")
    assert found.startswith("N2D2-E124: net.ini:8 [a]: 'File' changes a layer of the ONNX file in N2D2")


def test_a_transposition_is_refused(refusal, build):
    found = refusal(SECTION + "Transpose=1\n")
    assert found.startswith("N2D2-E227: net.ini:6 [net]: Transpose=1 is not supported")
    assert build(SECTION + "Transpose=0\nCNTK=1\nIgnore=r\n").graph.outputs == ["s"]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("File=no.onnx\n", "N2D2-E301: net.ini:5 [net]: the ONNX file 'no.onnx' does not exist"),
        ("File=net.onnx\nEncodings=no.enc\n", "N2D2-E315: net.ini:6 [net]: the file of encodings 'no.enc' does not exist"),
    ],
)
def test_files_that_do_not_exist(keys, said, refusal):
    assert refusal(f"[net]\nInput=sp\nType=ONNX\n{keys}").startswith(said)


@pytest.mark.parametrize("key", ["", "ONNX_init=1\n", "ONNX_init=0\n"])
def test_stored_weights_or_initial_ones(key, build, weights):
    net = build(SECTION + key)
    loaded = np.array_equal(net.params("a")["weights"].reshape(5, 3), weights["wa"].reshape(5, 3))
    assert loaded == (key != "ONNX_init=0\n")
    assert np.array_equal(net.params("a")["bias"], weights["ba"]) == loaded


def test_initial_weights_are_drawn_from_the_seed(build):
    first, other, same = (build(SECTION + "ONNX_init=0\n", seed=seed).params("a")["weights"] for seed in (1, 2, 1))
    assert np.array_equal(first, same) and not np.array_equal(first, other)


@pytest.mark.parametrize(("key", "codes"), [("", ["W305"]), ("IgnoreInputSize=0\n", ["W305"]), ("IgnoreInputSize=1\n", [])])
def test_the_size_of_the_stimuli(key, codes, build):
    log.setup(quiet=True)
    build(SECTION + key, (3, 8, 9))
    assert [warning.code for warning in log.warnings_seen()] == codes


@pytest.mark.parametrize(
    "names", [["a_weights"], ["a_biases"], ["b_weights"], ["a_biases", "b_weights"], ["r_weights"], ["zz_weights"]]
)
def test_weights_of_the_store_replace_those_of_the_file(names, build, weights, workdir, monkeypatch):
    """Where it has them, of the layers that have such."""
    told = []
    monkeypatch.setattr(log, "notice", lambda text, *values: told.append(text % values))
    shapes = {"a_weights": (5, 3, 1, 1), "a_biases": (5,), "b_weights": (4, 5, 1, 1), "r_weights": (4,), "zz_weights": (4,)}
    stored = {name: np.full(shapes[name], 2 + at, F) for at, name in enumerate(names)}
    np.savez(workdir / "w.npz", **stored)
    net = build(SECTION, weights=workdir / "w.npz")
    for layer, role, key, held in (
        ("a", "weights", "a_weights", "wa"),
        ("a", "bias", "a_biases", "ba"),
        ("b", "weights", "b_weights", "wb"),
    ):
        wanted = stored.get(key, weights[held])
        np.testing.assert_array_equal(net.params(layer)[role].ravel(), wanted.ravel())
    assert not net.params("b")["bias"].any() and "weights" not in net.params("r")
    layers = [name for name in ("a", "b") if any(each.startswith(f"{name}_") for each in names)]
    line = f"{workdir / 'w.npz'}: {len(layers)} layers of the ONNX file take their weights from there: {', '.join(layers)}"
    assert [each for each in told if "take their weights" in each] == ([line] if layers else [])


@pytest.mark.parametrize("inputs", ["s", "s,pre", "pre,s"])
def test_layers_wait_for_the_tensors_of_a_file_below(inputs, build):
    """Where any of their inputs is none of the INI's layers."""
    pre = "[pre]\nInput=sp\nType=Conv\nKernelDims=1 1\nNbOutputs=4\n"
    total = f"[sum]\nInput={inputs}\nType=ElemWise\nOperation=Sum\nNbOutputs=4\n"
    deep = "[k]\nInput=sp\nType=Conv\nKernelDims=1 1\nNbOutputs=3\n[l]\nInput=k\nType=Conv\nKernelDims=1 1\nNbOutputs=3\n"
    file = SECTION.replace("Input=sp", "Input=l") + deep  # read behind two layers
    for text in (total + pre + file, pre + total + file, file + total + pre):
        assert build(text).graph.node("sum").inputs == inputs.split(",")
