"""Rules of whole INI networks: order of layers, inputs, global keys, and what is said where something is missing.

They look at `n2d2py.frontend.ini.network`, `n2d2py.frontend.ini.inputs`, `n2d2py.frontend.ini.keys`,
`n2d2py.frontend.ini.convolution`, `n2d2py.frontend.ini.inserted` and `n2d2py.frontend.ini.transformations`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.ini.network import build_graph
from n2d2py.frontend.ini.weights import WeightStore
from n2d2py.graph.precision import Precision
from n2d2py.ini import load_document

DROP = "[{0}]\nInput={1}\nType=Dropout\nNbOutputs={2}\n"


def graph_of(text: str, shape: tuple[int, ...] = (1, 3, 8, 10), weights: WeightStore | None = None):
    Path("net.ini").write_text(text)
    return build_graph(load_document(Path("net.ini")), shape, weights, 1)


def refused(text: str, weights: WeightStore | None = None) -> str:
    with pytest.raises(N2D2Error) as caught:
        graph_of(text, weights=weights)
    return "\n".join(error.line() for error in caught.value.errors)


# ---- order ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("layers", "order"),
    [
        ((("y", "a,b", 6), ("a", "sp", 3), ("b", "a", 3)), ["a", "b", "y"]),
        ((("y", "b,a", 6), ("b", "a", 3), ("a", "sp", 3)), ["a", "b", "y"]),
        ((("y", "a,a", 6), ("b", "sp", 3), ("a", "sp", 3)), ["b", "a", "y"]),
        ((("c", "b", 3), ("b", "a", 3), ("a", "sp", 3), ("d", "sp", 3)), ["a", "d", "b", "c"]),
        ((("z", "sp,c", 6), ("c", "b", 3), ("b", "a", 3), ("a", "sp", 3), ("k", "a", 3)), ["a", "b", "k", "c", "z"]),
    ],
)
def test_a_layer_stands_behind_all_that_it_reads(layers, order):
    graph = graph_of("[sp]\n" + "".join(DROP.format(*layer) for layer in layers))
    assert [node.name for node in graph.nodes if not node.helper] == order


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (2500, "E2"),
        (2501, "N2D2-E241: net.ini:5002 [l2500]: 2,501 layers, at most 2,500 are supported; reduce the loops of the templates"),
    ],
)
def test_the_most_layers(count, text):
    """As many are built; the first of these has no type."""
    found = refused("[sp]\n" + "".join(f"[l{at}]\nInput=sp\n" for at in range(count)))
    assert (text in found) if count > 2500 else ("E241" not in found and "[l0]" in found)


def test_a_cycle_names_six_layers():
    names = "abcdefgh"
    found = refused("[sp]\n" + "".join(DROP.format(name, names[at - 1], 3) for at, name in enumerate(names)))
    assert found.startswith("N2D2-E224: net.ini:3 [a]: the layers a -> b -> c -> d -> e -> f feed each other in a cycle")


def test_what_a_cycle_feeds_is_part_of_it_in_the_message():
    found = refused("[sp]\n" + DROP.format("ok", "sp", 3) + DROP.format("a", "a", 3) + DROP.format("b", "a", 3))
    assert found.startswith("N2D2-E224: net.ini:7 [a]: the layers a -> b feed each other in a cycle")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[sp]\n", "N2D2-E221: net.ini: the network has no layers; add sections with Input= and Type="),
        ("[sp]\n[a]\nInput=,\nType=Dropout\nNbOutputs=3\n", "N2D2-E225: net.ini:3 [a]: Input is empty; name a layer or sp"),
        (
            "[sp]\n[a]\nInput=qqqqqqq\nType=Dropout\nNbOutputs=3\n",
            "N2D2-E223: net.ini:3 [a]: Input names 'qqqqqqq', which is not a layer; name a layer or sp",
        ),
        (
            "[sp]\n[alpha]\nInput=sp\nType=Dropout\nNbOutputs=3\n[b]\nInput=alpa\nType=Dropout\nNbOutputs=3\n",
            "N2D2-E223: net.ini:7 [b]: Input names 'alpa', which is not a layer; did you mean 'alpha'?",
        ),
        (
            "[sp]\n[a]\nInput=sp\nType=LSTM\nNbOutputs=3\n",
            "N2D2-E226: net.ini:4 [a]: Type=LSTM is not supported: recurrent layers are read from ONNX files only; remove the layer",
        ),
        (
            "[sp]\n[a]\nInput=sp\nType=Rbf\nNbOutputs=3\n",
            "N2D2-E226: net.ini:4 [a]: Type=Rbf is not supported: N2D2 does not have it any more either; remove the layer",
        ),
        (
            "[sp]\n[a]\nInput=sp\nType=ONX\nNbOutputs=3\n",
            "N2D2-E226: net.ini:4 [a]: Type=ONX is not a supported layer type; did you mean ONNX?",
        ),
    ],
)
def test_what_is_said_of_networks_that_are_none(text, line):
    assert refused(text) == line


def test_known_types_are_listed_where_none_is_alike():
    found = refused("[sp]\n[a]\nInput=sp\nType=Qqqqqqqqqqq\nNbOutputs=3\n")
    assert "known types are Activation, Anchor, BatchNorm, Conv" in found and ", ONNX, " in found and "Transpose" in found


# ---- inputs -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("keys", "shape"),
    [
        ("", (1, 1, 1, 1)),
        ("SizeX=5", (1, 1, 1, 5)),
        ("SizeY=5", (1, 1, 5, 1)),
        ("NbChannels=5", (1, 5, 1, 1)),
        ("SizeX=2\nSizeY=3\nNbChannels=4", (1, 4, 3, 2)),
    ],
)
def test_further_inputs(keys, shape):
    graph = graph_of(f"[sp]\n[more]\nType=Input\n{keys}\n" + DROP.format("a", "more", shape[1]) + DROP.format("b", "sp", 3))
    assert graph.inputs == ["sp", "more"] and graph.shape("more") == graph.shape("a") == shape


@pytest.mark.parametrize("key", ["SizeX", "SizeY", "NbChannels"])
def test_inputs_have_a_size(key):
    assert f"{key}=0 is below 1" in refused(f"[sp]\n[more]\nType=Input\n{key}=0\n" + DROP.format("a", "more", 1))


def test_an_input_that_names_an_input_is_no_layer():
    graph = graph_of("[sp]\n[more]\nType=Input\nInput=sp\nNbChannels=3\n" + DROP.format("a", "more", 3))
    assert [node.name for node in graph.nodes] == ["a"] and graph.inputs == ["sp", "more"]


# ---- global keys ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "spiking"),
    [
        ("Spike", True),
        ("CSpike_BP", True),
        ("RRAM", True),
        ("PCM", True),
        ("Frame", False),
        ("Frame_CUDA", False),
        ("Transcode", False),
    ],
)
@pytest.mark.parametrize("place", ["globals", "layer"])
def test_spiking_models_can_be_described_only(model, spiking, place):
    key = f"DefaultModel={model}\n" if place == "globals" else ""
    text = f"{key}[sp]\n" + DROP.format("a", "sp", 3) + (f"Model={model}\n" if place == "layer" else "")
    log.setup(quiet=True)
    assert graph_of(text).shape("a") == (1, 3, 8, 10)
    said = [warning.line() for warning in log.warnings_seen() if warning.code == "W226"]
    where = "net.ini:1" if place == "globals" else "net.ini:6 [a]"
    text_of = f"{where}: described, but cannot be run: spiking model {model} is out of scope; use Frame"
    if place == "globals":  # a layer without Model= has that of the document
        assert (f"N2D2-W226: {text_of}" in said) == spiking
    else:
        assert said == ([f"N2D2-W226: {text_of}"] if spiking else [])
    if spiking:
        assert f"N2D2-E222: {where}: spiking model {model} is out of scope; use Frame" in refused(text, WeightStore(None))
    else:
        graph_of(text, weights=WeightStore(None))


CONV = "[{0}]\nInput={1}\nType=Conv\nKernelSize=1\nNbOutputs=4\n"
NORM = "[{0}]\nInput={1}\nType=BatchNorm\nNbOutputs=4\n"


@pytest.mark.parametrize(
    ("text", "inserted"),
    [
        (CONV.format("a", "sp"), ["a_batchnorm"]),
        (CONV.format("a", "sp") + NORM.format("n", "a"), []),
        (CONV.format("a", "sp") + CONV.format("b", "a") + NORM.format("n", "b"), ["a_batchnorm"]),
        (CONV.format("a", "sp") + DROP.format("d", "a", 4), ["a_batchnorm"]),
        (CONV.format("a", "sp").replace("Conv", "Deconv"), []),
        (CONV.format("a", "sp") + CONV.format("b", "sp") + NORM.format("n", "a,b").replace("4", "8"), []),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_normalizations_that_are_inserted(text, inserted, given):
    graph = graph_of(("InsertBatchNormAfterConv=1\n" if given else "") + "[sp]\n" + text, weights=WeightStore(None))
    assert [node.name for node in graph.nodes if node.name.endswith("_batchnorm")] == (inserted if given else [])


def test_an_inserted_normalization_takes_over_tensor_and_activation():
    text = (
        "InsertBatchNormAfterConv=1\n[sp]\n[a_linear]\nInput=sp\nType=Dropout\nNbOutputs=3\n"
        + CONV.format("a", "a_linear")
        + "ActivationFunction=Tanh\n"
    )
    np.savez(
        "w.npz",
        a_weights=np.ones((4, 3, 1, 1)),
        a_biases=np.zeros(4),
        a_batchnorm_means=np.arange(4.0),
        a_batchnorm_variances=np.arange(1.0, 5.0),
    )
    graph = graph_of(text, weights=WeightStore(Path("w.npz")))
    conv, norm = graph.node("a"), graph.node("a_batchnorm")
    assert conv.activation is None and norm.activation is not None
    assert (conv.outputs, norm.inputs, norm.outputs) == (["a_linear_"], ["a_linear_"], ["a"])
    assert graph.shape("a") == graph.shape("a_linear_") == (1, 4, 8, 10)
    assert [norm.params[role].tolist() for role in ("scale", "bias", "mean", "variance")] == [
        [1] * 4,
        [0] * 4,
        [0, 1, 2, 3],
        [1, 2, 3, 4],
    ]
    assert all(values.dtype == np.float32 for values in norm.params.values())


# ---- early keys, precisions, outputs ------------------------------------------------------------------
def test_the_early_name_of_the_outputs(monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda text, *given: notes.append(text % given))
    graph = graph_of("[sp]\n" + CONV.format("a", "sp").replace("NbOutputs=4", "NbChannels=5"))
    assert graph.shape("a")[1] == 5 and "net.ini:6 [a]: NbChannels is read as NbOutputs, its name today" in notes
    log.setup(quiet=True)
    Path("net.ini").write_text("[sp]\n" + CONV.format("a", "sp") + "NbChannels=5\n")
    document = load_document(Path("net.ini"))
    graph = build_graph(document, (1, 3, 8, 10), None, 1)
    document.ignored.warn()
    said = [warning.line() for warning in log.warnings_seen()]
    assert (
        graph.shape("a")[1] == 4
        and len(said) == 1
        and "keys of early versions of N2D2" in said[0]
        and "NbChannels in [a]" in said[0]
    )


def test_the_precision_of_a_layer_is_that_of_its_nodes():
    graph = graph_of("[sp]\n" + CONV.format("a", "sp") + CONV.format("b", "a,sp") + "QuantBits=16\n" + CONV.format("c", "b"))
    assert set(graph.precisions) == {"b_concat", "b"} and graph.precisions["b"] == graph.precisions["b_concat"] != Precision()


@pytest.mark.parametrize(
    ("activation", "said"),
    [("QAct=SAT\nQAct.Alpha=6\nQAct.Range=15\n", True), ("", False), ("ActivationFunction=Rectifier\n", False)],
)
def test_a_softmax_behind_a_cut_is_a_warning(activation, said):
    text = "[sp]\n[fc]\nInput=sp\nType=Fc\nNbOutputs=4\n" + activation + "[s]\nInput=fc\nType=Softmax\nNbOutputs=4\n"
    log.setup(quiet=True)
    graph_of(text, weights=WeightStore(None))
    found = [warning.line() for warning in log.warnings_seen() if warning.code == "W227"]
    where = text.count("\n", 0, text.index("Input=fc")) + 1
    assert found == (
        [
            f"N2D2-W227: net.ini:{where} [s]: the Softmax reads 'fc' behind QAct, which cuts its values at 0 and 6: classes may become equal; "
            "train the last layer without QAct (QAct= in its section)"
        ]
        if said
        else []
    )


# ---- windows ----------------------------------------------------------------------------------------
def window(build, keys: str, shape=(3, 20, 30), kind: str = "Conv"):
    head = (
        "[c]\nInput=sp\nType=Conv\nNbOutputs=3\n" if kind == "Conv" else "[c]\nInput=sp\nType=Pool\nPooling=Max\nNbOutputs=3\n"
    )
    node = build(head + keys, shape).graph.node("c")
    kernel = node.params["weights"].shape[2:] if kind == "Conv" else node.op.kernel
    return tuple(kernel), tuple(node.op.stride), tuple(node.op.pads), tuple(getattr(node.op, "dilation", (1, 1)))


WINDOWS = [
    ("KernelDims=3 2", (2, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    ("KernelDims=3 2\nKernelSize=5", (2, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    ("KernelSize=5\nKernelWidth=3\nKernelHeight=2", (5, 5), (1, 1), (0, 0, 0, 0), (1, 1)),
    ("KernelSize=2\nStrideX=3", (2, 2), (1, 3), (0, 0, 0, 0), (1, 1)),
    ("KernelSize=2\nStrideY=3", (2, 2), (3, 1), (0, 0, 0, 0), (1, 1)),
    ("KernelSize=2\nStrideX=2\nStrideY=3\nStride=4", (2, 2), (4, 4), (0, 0, 0, 0), (1, 1)),
    ("KernelSize=2\nStrideDims=2 3\nStride=4", (2, 2), (3, 2), (0, 0, 0, 0), (1, 1)),
    ("KernelSize=2\nPaddingX=1", (2, 2), (1, 1), (0, 1, 0, 1), (1, 1)),
    ("KernelSize=2\nPaddingY=1", (2, 2), (1, 1), (1, 0, 1, 0), (1, 1)),
    ("KernelSize=2\nPaddingDims=2 1", (2, 2), (1, 1), (1, 2, 1, 2), (1, 1)),
    ("KernelSize=2\nPadding=-1", (2, 2), (1, 1), (-1, -1, -1, -1), (1, 1)),
    ("KernelSize=2\nDilationX=3", (2, 2), (1, 1), (0, 0, 0, 0), (1, 3)),
    ("KernelSize=2\nDilationY=3", (2, 2), (1, 1), (0, 0, 0, 0), (3, 1)),
    ("KernelSize=2\nDilationDims=2 3", (2, 2), (1, 1), (0, 0, 0, 0), (3, 2)),
]


@pytest.mark.parametrize(("keys", "kernel", "stride", "pads", "dilation"), WINDOWS)
def test_windows(keys, kernel, stride, pads, dilation, build):
    """Dims go before the key of both axes, and that before the keys of each."""
    assert window(build, keys) == (kernel, stride, pads, dilation)


LINES = [
    ("KernelDims=3", (1, 3), (1, 1), (0, 0, 0, 0), (1, 1)),
    ("KernelDims=3\nStride=2", (1, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
    ("KernelDims=3\nStrideX=2", (1, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
    ("KernelDims=3\nStrideDims=2", (1, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
    ("KernelDims=3\nStrideDims=2 1", (1, 3), (1, 2), (0, 0, 0, 0), (1, 1)),
    ("KernelDims=3\nPadding=1", (1, 3), (1, 1), (0, 1, 0, 1), (1, 1)),
    ("KernelDims=3\nPaddingDims=2", (1, 3), (1, 1), (0, 2, 0, 2), (1, 1)),
    ("KernelDims=3\nPaddingX=2\nPaddingY=1", (1, 3), (1, 1), (1, 2, 1, 2), (1, 1)),
    ("KernelDims=3\nDilation=2", (1, 3), (1, 1), (0, 0, 0, 0), (1, 2)),
    ("KernelDims=3\nDilationY=2", (1, 3), (1, 1), (0, 0, 0, 0), (2, 1)),
]


@pytest.mark.parametrize(("keys", "kernel", "stride", "pads", "dilation"), LINES)
def test_windows_of_lines(keys, kernel, stride, pads, dilation, build):
    """One value of KernelDims makes a layer of one axis: the other keys count along X, but for those of Y."""
    assert window(build, keys, (3, 1, 30)) == (kernel, stride, pads, dilation)


@pytest.mark.parametrize(
    ("keys", "shape", "text"),
    [
        ("KernelDims=3", (3, 2, 30), "E211: net.ini:6 [c]: KernelDims has 1 value, but the input has 2 lines; give X and Y"),
        (
            "KernelDims=3 3 3",
            (3, 8, 8),
            "E211: net.ini:6 [c]: KernelDims has 3 values, but two-dimensional layers need 2; give X and Y",
        ),
        (
            "KernelSize=3\nStrideDims=2",
            (3, 8, 8),
            "E211: net.ini:7 [c]: StrideDims has 1 values, but two-dimensional layers need 2",
        ),
        (
            "KernelDims=3\nStrideDims=2 2 2",
            (3, 1, 8),
            "E211: net.ini:7 [c]: StrideDims has 3 values, but two-dimensional layers need 2",
        ),
        ("", (3, 8, 8), "E212: net.ini:2 [c]: the layer has no kernel dimensions; add KernelDims=X Y or KernelSize=N"),
        ("KernelWidth=3", (3, 8, 8), "E212: net.ini:2 [c]: the layer has no kernel dimensions"),
        ("KernelHeight=3", (3, 8, 8), "E212: net.ini:2 [c]: the layer has no kernel dimensions"),
        ("KernelSize=0", (3, 8, 8), "KernelSize=0 is below 1"),
        ("KernelDims=0 1", (3, 8, 8), "is below 1"),
        ("KernelWidth=0\nKernelHeight=1", (3, 8, 8), "KernelWidth=0 is below 1"),
        ("KernelSize=1\nStrideX=0", (3, 8, 8), "StrideX=0 is below 1"),
        ("KernelSize=1\nDilation=0", (3, 8, 8), "Dilation=0 is below 1"),
    ],
)
def test_windows_that_are_refused(keys, shape, text, refusal):
    assert text in refusal(f"[c]\nInput=sp\nType=Conv\nNbOutputs=3\n{keys}\n", shape)


@pytest.mark.parametrize(
    ("keys", "pads"),
    [
        ("InputOffsetX=2", (0, -2, 0, 0)),
        ("InputOffsetY=3", (-3, 0, 0, 0)),
        ("InputWidth=4", (0, 0, 0, -6)),
        ("InputHeight=5", (0, 0, -3, 0)),
        ("InputOffsetX=2\nInputWidth=5\nInputOffsetY=1\nInputHeight=6", (-1, -2, -1, -3)),
        ("InputOffsetX=9\nInputOffsetY=7", (-7, -9, 0, 0)),
        ("InputWidth=10\nInputHeight=8", None),
        ("InputOffsetX=0\nInputWidth=0", None),
    ],
)
def test_parts_of_inputs(keys, pads, build):
    """A part that is the whole is not cut."""
    nodes = [node for node in build(DROP.format("y", "sp", 3) + keys).graph.nodes if node.op.kind == "Padding"]
    assert [(node.name, tuple(node.op.pads), node.helper) for node in nodes] == (
        [] if pads is None else [("y_window0", pads, True)]
    )


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            "InputOffsetX=10",
            "net.ini:6 [y]: the window of allxall at 10,0 leaves its input of 10x8 (width x height); make it smaller, or move it",
        ),
        ("InputOffsetY=8", "net.ini:6 [y]: the window of allxall at 0,8 leaves its input of 10x8"),
        ("InputWidth=11", "net.ini:6 [y]: the window of 11xall at 0,0 leaves its input of 10x8"),
        ("InputHeight=9", "net.ini:6 [y]: the window of allx9 at 0,0 leaves its input of 10x8"),
        ("InputOffsetX=3\nInputWidth=8", "net.ini:6 [y]: the window of 8xall at 3,0 leaves its input of 10x8"),
        ("InputHeight=7\nInputOffsetY=2", "net.ini:7 [y]: the window of allx7 at 0,2 leaves its input of 10x8"),
    ],
)
def test_parts_that_leave_their_input(keys, text, refusal):
    assert f"N2D2-E233: {text}" in refusal(DROP.format("y", "sp", 3) + keys)


# ---- stored orders ----------------------------------------------------------------------------------
REMAPS = [
    ("1:2,0:2", [1, 3, 5, 0, 2, 4]),
    ("0:1", [0, 1, 2, 3, 4, 5]),
    ("5:1,4:6,0:6,3:6,1:6,2:6", [5, 4, 0, 3, 1, 2]),
    (" 2:3 , 1:3,0:3", [2, 5, 1, 4, 0, 3]),
]


@pytest.mark.parametrize(("remap", "order"), REMAPS)
@pytest.mark.parametrize("bias", [True, False])
def test_stored_outputs_in_another_order(remap, order, bias, build):
    """Stored output k is the output that the pairs name."""
    stored = np.arange(6 * 3 * 2.0).reshape(6, 3, 1, 2)
    np.savez("w.npz", c_weights=stored, c_biases=np.arange(10.0, 16))
    config = f"OutputsRemap={remap}\n" + ("" if bias else "NoBias=1\n")
    params = build(
        f"[c]\nInput=sp\nType=Conv\nKernelDims=2 1\nNbOutputs=6\nConfigSection=k\n[k]\n{config}", weights="w.npz"
    ).params("c")
    assert np.array_equal(params["weights"][order], stored)
    assert params["bias"][order].tolist() == ([10, 11, 12, 13, 14, 15] if bias else [0] * 6)


@pytest.mark.parametrize(
    ("remap", "text"),
    [
        ("1:2", "OutputsRemap=1:2 does not name each of the 6 outputs once; give pairs such as 1:2,0:2"),
        ("0:1,0:1", "OutputsRemap=0:1,0:1 does not name each of the 6 outputs once"),
        ("0:2,2:2", "does not name each of the 6 outputs once"),
        ("1", "OutputsRemap: '1' is not start:step"),
        ("0:0", "OutputsRemap: '0:0' is not start:step"),
        ("0:2, b:2", "OutputsRemap: 'b:2' is not start:step"),
        ("0:-1", "OutputsRemap: '0:-1' is not start:step"),
        ("0:1,0:1,b:2", "OutputsRemap=0:1,0:1,b:2 does not name each of the 6 outputs once"),
    ],
)
def test_orders_that_are_refused(remap, text, refusal):
    found = refusal(f"[c]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=6\nConfigSection=k\n[k]\nOutputsRemap={remap}\n")
    assert "N2D2-E232: net.ini:9 [" in found and text in found


@pytest.mark.parametrize("rows", [1, 2, 4, 5, 8, 10, 80])
def test_a_reshape_of_so_many_rows(rows, build, stimulus):
    """The columns are what is left."""
    text = f"[y]\nInput=sp\nType=Transformation\nTransformation=Reshape\nNbOutputs=3\nNbRows={rows}\n"
    (found,) = build(text).run(stimulus, "y")
    assert np.array_equal(found, stimulus.reshape(2, 3, rows, 80 // rows))


# ---- ONNX files among layers ------------------------------------------------------------------------
def write_grid(zero: int, kind: int = onnx.TensorProto.UINT8) -> None:
    """net.onnx: `given` is x on a grid of bytes."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["stored"]),
        helper.make_node("DequantizeLinear", ["stored", "scale", "zero"], ["given"]),
    ]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3, 8, 10]) for name in ("x", "given")]
    constants = [helper.make_tensor("scale", onnx.TensorProto.FLOAT, [], [0.5]), helper.make_tensor("zero", kind, [], [zero])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "net.onnx")


@pytest.mark.parametrize(
    ("zero", "kind", "said"),
    [
        (0, onnx.TensorProto.UINT8, True),
        (3, onnx.TensorProto.UINT8, False),
        (0, onnx.TensorProto.INT8, False),
        (-128, onnx.TensorProto.INT8, True),
    ],
)
def test_a_softmax_behind_a_grid_of_a_file(zero, kind, said):
    """One that begins at 0 cuts the values below."""
    write_grid(zero, kind)
    log.setup(quiet=True)
    text = "[sp]\n[onnx]\nInput=sp\nType=ONNX\nFile=net.onnx\n[s]\nInput=given\nType=Softmax\nNbOutputs=3\n"
    graph_of(text, weights=WeightStore(None))
    found = [warning.line() for warning in log.warnings_seen() if warning.code == "W227"]
    assert [line.partition(":7 ")[2].partition(":")[0] for line in found] == (["[s]"] if said else [])
    assert not said or "reads 'given' behind QAct, which cuts its values at 0 and 127.5: classes may become equal" in found[0]


def test_an_onnx_file_that_reads_what_is_not_there():
    """It does not wait for itself."""
    write_grid(0)
    found = refused("[sp]\n[onnx]\nInput=nothing\nType=ONNX\nFile=net.onnx\n")
    assert found.startswith("N2D2-E223: net.ini:3 [onnx]: Input names 'nothing', which is not a layer")


# ---- what is said of layers with several inputs -------------------------------------------------------
@pytest.mark.parametrize("order", ["sp,p", "p,sp"])
def test_a_line_needs_lines_from_all(order):
    """One of two inputs has two lines."""
    pool = "[p]\nInput=sp\nType=Pool\nPooling=Max\nPoolDims=1 2\nNbOutputs=3\n"
    text = f"[sp]\n{pool}[c]\nInput={order}\nType=Conv\nKernelDims=3\nNbOutputs=2\n"
    with pytest.raises(N2D2Error) as caught:
        graph_of(text, (1, 3, 2, 9))
    lines = 2 if order == "sp,p" else 1
    assert caught.value.code == "E211" and caught.value.what == f"KernelDims has 1 value, but the input has {lines} lines"


@pytest.mark.parametrize(("order", "size"), [("sp,p", (10, 8)), ("p,sp", (5, 4))])
def test_automatic_properties_of_several_inputs(order, size):
    """Width and height are those of the first one, channels are counted together."""
    text = (
        "[sp]\n[p]\nInput=sp\nType=Pool\nPooling=Max\nPoolDims=2 2\nStride=2\nNbOutputs=3\n"
        f"[c]\nInput={order}\nType=Fc\nNbOutputs=4\n"
        "[w]\nInput=c\nType=Fc\nNbOutputs=[c]_ChannelsWidth\n[h]\nInput=c\nType=Fc\nNbOutputs=[c]_ChannelsHeight\n"
        "[n]\nInput=c\nType=Fc\nNbOutputs=[c]_NbChannels\n"
    )
    graph = graph_of(text)
    assert [graph.shape(name)[1] for name in "whn"] == [*size, 6]


@pytest.mark.parametrize("outputs", [2, 6])
@pytest.mark.parametrize("quantizer", ["QWeight=SAT", "QWeight=LSQ", "QWeight=LSQ\nQWeight.PerChannel=1"])
def test_scales_of_stored_outputs_in_another_order(outputs, quantizer, build):
    """One scale stays; one for each output goes with it."""
    head = f"[c]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs={outputs}\n{quantizer}\nConfigSection=k\n[k]\n"
    plain, moved = (build(head + keys).params("c") for keys in ("", "OutputsRemap=1:2,0:2\n"))
    order = [*range(1, outputs, 2), *range(0, outputs, 2)]
    assert np.array_equal(moved["weights"][order], plain["weights"])
    scales = moved["weight_scales"][order] if "PerChannel" in quantizer else moved["weight_scales"]
    assert np.array_equal(scales, plain["weight_scales"])


def test_a_description_remaps_nothing():
    """Its weights take no memory."""
    graph = graph_of("[sp]\n[c]\nInput=sp\nType=Conv\nKernelSize=1\nNbOutputs=4\nConfigSection=k\n[k]\nOutputsRemap=1:2,0:2\n")
    assert graph.node("c").params["weights"].strides == (0, 0, 0, 0)


def test_descriptions_say_nothing_of_cuts():
    write_grid(0)
    log.setup(quiet=True)
    graph_of("[sp]\n[onnx]\nInput=sp\nType=ONNX\nFile=net.onnx\n[s]\nInput=given\nType=Softmax\nNbOutputs=3\n")
    assert not log.warnings_seen()


def test_a_layer_without_outputs_and_one_without_type():
    assert (
        "net.ini:2 [a]" in (found := refused("[sp]\n[a]\nInput=sp\nType=Fc\n"))
        and "NbOutputs" in found
        and "NbChannels" not in found
    )
    assert "net.ini:2 [a]" in (found := refused("[sp]\n[a]\nInput=sp\nNbOutputs=3\n")) and "Type" in found


@pytest.mark.parametrize(
    ("default", "model", "taken"),
    [
        ("", "", "frame"),
        ("Frame", "", "frame"),
        ("Frame_CUDA", "", "frame"),
        ("Transcode", "", "other"),
        ("", "Transcode", "other"),
        ("Frame", "Transcode", "other"),
        ("Transcode", "Frame", "frame"),
        ("Transcode", "Frame_CUDA", "frame"),
        ("", "Mine", "all"),
        ("Mine", "", "all"),
    ],
)
def test_the_configuration_of_a_model(default, model, taken):
    """That of the layer, else of the document, else of Frame."""
    head = f"DefaultModel={default}\n" if default else ""
    keys = f"Model={model}\n" if model else ""
    layer = "[c]\nInput=sp\nType=Conv\nKernelDims=3 1\nNbOutputs=2\n"
    sections = "ConfigSection=all\nConfigSection(Frame)=frame\nConfigSection(Transcode)=other\n[all]\nNoBias=0\n[frame]\nNoBias=1\n[other]\nWeightsExportFlip=1\n"
    plain = graph_of(f"[sp]\n{layer}", weights=WeightStore(None)).node("c").params
    found = graph_of(f"{head}[sp]\n{layer}{keys}{sections}", weights=WeightStore(None)).node("c").params
    assert found["bias"].any() == (taken != "frame")
    assert np.array_equal(found["weights"], plain["weights"][..., ::-1] if taken == "other" else plain["weights"])


@pytest.mark.parametrize(("default", "taken"), [("", "frame"), ("Transcode", "other")])
def test_solvers_of_the_model_of_a_document(default, taken):
    head = f"DefaultModel={default}\n" if default else ""
    weights = WeightStore(None)
    weights.recipes = {}
    keys = "ConfigSection(Frame)=frame\nConfigSection(Transcode)=other\n[frame]\nSolvers.Momentum=0.25\n[other]\nSolvers.Momentum=0.75\n"
    graph_of(f"{head}[sp]\n[c]\nInput=sp\nType=Fc\nNbOutputs=2\n{keys}", weights=weights)
    assert weights.recipes["c"].solvers["weights"].momentum == (0.25 if taken == "frame" else 0.75)
