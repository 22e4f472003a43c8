"""An inference takes the same instructions for every input: counted for random and extreme ones in QEMU."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from support.board_export import INPUTS, counted, export_for_boards, need_core

from n2d2py.exports.mcu.boards import CORES
from n2d2py.exports.mcu.stack import varying_layers
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph

FEW = 8
STEADY = [pytest.param(one.name, INPUTS, marks=() if one.name == "cortex-m4" else pytest.mark.slow) for one in CORES]
JUMPING = ("cortex-m0", "rv32imc")
"""Cores without conditional instructions: a few inputs are counted in each run of the tests, all of them in the slow ones."""

LAYERS = """<ir_version: 8, opset_import: ["" : 17]>
layers (float[1,8,10,10] x) => (float[1,7,10,10] y, float[1,6,20,20] u, float[1,8,1,1] g, float[1,10] f,
        float[1,8,20,20] r, float[1,8,20,20] rl, float[1,8,14,14] p, float[1,2,20,20] d, float[1,8,10,10] tr, float[1,4,10,10] sl) {
    a = Conv <pads=[1,1,1,1]> (x, w0)  s = Sigmoid (a)  b = Mul (a, s)
    c = Conv <pads=[1,1,1,1], group=8> (b, w1)  t = Tanh (c)  h = HardSwish (c)  e = Add (t, h)
    l = LeakyRelu <alpha=0.1> (e)
    pm = MaxPool <kernel_shape=[3,3], pads=[1,1,1,1]> (l)
    pa = AveragePool <kernel_shape=[3,3], pads=[1,1,1,1]> (l)
    cc = Concat <axis=1> (pm, pa)  v = Conv (cc, w5)  g = GlobalAveragePool (pa)
    u = ConvTranspose <strides=[2,2]> (pa, w3)  y = Conv <pads=[1,1,1,1]> (v, w4)
    mx = Max (e, c)  mn = Min (mx, pa)  ab = Abs (mn)  fl = Flatten (ab)  f = Gemm <transB=1> (fl, wf)
    r = Resize <mode="nearest"> (l, , scales)  rl = Resize <mode="linear"> (l, , scales)  p = Pad (l, pads)
    d = DepthToSpace <blocksize=2> (l)  tr = Transpose <perm=[0,1,3,2]> (l)  sl = Slice (l, first, stop, axis)
}"""


def layers_model(path: Path, text: str = LAYERS) -> Path:
    """A network of a layer of each kind."""
    generator = np.random.default_rng(3)
    shapes = {
        "w0": (8, 8, 3, 3),
        "w1": (8, 1, 3, 3),
        "w3": (8, 6, 2, 2),
        "w4": (7, 6, 3, 3),
        "w5": (6, 16, 1, 1),
        "wf": (10, 800),
    }
    model = parser.parse_model(text)
    constants = {name: generator.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}
    constants["scales"] = np.array([1, 1, 2, 2], np.float32)
    integers = {"pads": [0, 0, 2, 2, 0, 0, 2, 2], "first": [0], "stop": [4], "axis": [1]}
    constants.update({name: np.array(values, np.int64) for name, values in integers.items()})
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items() if name in used)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("name, count", [*STEADY, *((name, FEW) for name in JUMPING)])
@pytest.mark.parametrize("option", ["-O2", pytest.param("-Os", marks=pytest.mark.slow)])
def test_every_input_takes_the_same_instructions(small, name, count, option):
    assert varying_layers(read_graph(small / GRAPH_FILE)) == {}
    assert len(set(counted(small, name, (f"OPT={option}",), count))) == 1


MODES = [("Fixed-point-p32", "8"), ("Fixed-point16", "8"), ("Double-shift", "8"), ("Fixed-point-p32", "16")]
KINDS = [
    pytest.param(*mode, name, INPUTS, marks=() if (mode, name) == (MODES[0], "cortex-m4") else pytest.mark.slow)
    for mode in MODES
    for name in ("cortex-m4", *JUMPING, "rv32imc_zve32x")
]


@pytest.mark.parametrize(
    "mode, bits, name, count",
    [
        *KINDS,
        (*MODES[0], JUMPING[0], FEW),
        *(pytest.param(*MODES[0], name, FEW, marks=pytest.mark.slow) for name in JUMPING[1:]),
    ],
)
def test_a_layer_of_each_kind(mode, bits, name, count, tmp_path):
    model = layers_model(tmp_path / "layers.onnx")
    folder = export_for_boards(model, tmp_path / "out", "-act-rescaling-mode", mode, "-nbbits", bits)
    folder = folder.with_name(f"export_CPP_MCU_int{bits}")
    assert varying_layers(read_graph(folder / GRAPH_FILE)) == {}
    assert "the same instructions for every input" in (folder / "README.md").read_text()
    assert len(set(counted(folder, name, (), count))) == 1


def test_layers_that_vary_are_named(tmp_path):
    """The largest index is searched: that is named; whether the counts of some inputs differ is chance."""
    need_core("cortex-m4")
    text = """<ir_version: 8, opset_import: ["" : 17]>
    vary (float[1,8,10,10] x) => (int64[1,1] am) {
        fl = Flatten (x)  f = Gemm <transB=1> (fl, wf)  am = ArgMax <axis=1> (f)
    }"""
    model = layers_model(tmp_path / "vary.onnx", text)
    folder = export_for_boards(model, tmp_path / "out", "-test", "-db-export", "3")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["details"]["varying_time"] == {"am": "the time of ArrayReduce was not counted"}
    assert "`am` (the time of ArrayReduce was not counted)" in (folder / "README.md").read_text()
    summary = json.loads((folder / "statistics" / "summary.json").read_text())
    assert summary["instructions"]["processor"] == "cortex-m4" and summary["instructions"]["every_input"] is False
