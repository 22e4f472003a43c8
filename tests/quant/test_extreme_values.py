"""Networks whose values or weights are at the ends of float32: exported, or refused by a number; NumPy complains of nothing."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.extra_targets import HAS_NVDLA

from n2d2py.cli import main

EXPORTS = (
    ("CPP", "-nbbits", "16", "-quality", "fast"),
    ("CPP", "-act-rescaling-mode", "Fixed-point16", "-act-clipping-mode", "KL-Divergence"),
    *[("NVDLA",)] * HAS_NVDLA,
    ("ONNX",),
    ("NCNN",),
)


def network(scale: float, bound: float) -> onnx.ModelProto:
    """A convolution whose first weights are times `scale`, clipped to [0, bound]."""
    weights = np.random.default_rng(1).standard_normal((4, 4, 3, 3)).astype(np.float32)
    weights[:2] *= np.float32(scale)
    constants = {"w": weights, "low": np.float32(0), "high": np.float32(bound)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Clip", ["c", "low", "high"], ["k"]),
        helper.make_node("GlobalAveragePool", ["k"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, 1, shape) for n, shape in (("x", [1, 4, 6, 6]), ("y", [1, 4, 1, 1]))]
    arrays = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "n", ends[:1], ends[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("options", "scale", "bound"),
    [
        pytest.param(options, *ends, marks=[pytest.mark.slow] * ((first + second) % 2), id=f"{' '.join(options)} {ends}")
        for first, options in enumerate(EXPORTS)
        for second, ends in enumerate([(1, 1e-45), (1e-45, 6), (1e30, 1e-30)])
    ],
)
def test_ends_of_float32(tmp_path, capsys, options, scale, bound):
    onnx.save(network(scale, bound), tmp_path / "n.onnx")
    status = main([str(tmp_path / "n.onnx"), "-export", *options, "-calib", "2", "-db-export", "0", "-o", str(tmp_path)])
    text = capsys.readouterr().err
    assert status in (0, 1) and "E099" not in text and "RuntimeWarning" not in text
    assert status == 0 or (options[0] == "NVDLA" and "E715" in text)


def test_weights_of_a_transposed_convolution_fit_its_input(tmp_path, capsys):
    """A pad of channels leaves a shape that only array operators take; the weights are for 2 of the 3 channels."""
    pads = numpy_helper.from_array(np.array([0, 1, 1, 0, 0, 0, 0, 1]), "pads")
    weights = numpy_helper.from_array(np.ones((2, 4, 3, 3), np.float32), "w")
    ends = [helper.make_tensor_value_info(n, 1, shape) for n, shape in (("x", [1, 2, 5, 5]), ("y", None))]
    nodes = [helper.make_node("Pad", ["x", "pads"], ["p"]), helper.make_node("ConvTranspose", ["p", "w"], ["y"])]
    graph = helper.make_graph(nodes, "n", ends[:1], ends[1:], [pads, weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    assert main([str(tmp_path / "n.onnx"), "-describe"]) == 1
    assert "E310" in capsys.readouterr().err
