"""Gemm of a QDQ file whose weights have a scale for each column, as they lie in the file: as ONNX Runtime computes it, integer by integer."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import n2d2py
from n2d2py.cli import main


@pytest.mark.parametrize("outputs", [6, 5], ids=["square", "not square"])
@pytest.mark.parametrize("transposed", [0, 1])
def test_scales_lie_along_the_outputs(tmp_path, outputs, transposed):
    rng = np.random.default_rng(0)
    weights = rng.integers(-127, 128, (outputs, 6) if transposed else (6, outputs)).astype(np.int8)
    scales = rng.uniform(0.002, 0.02, outputs).astype(np.float32)
    constants = {"xs": np.float32(0.05), "xz": np.int8(3), "w": weights, "ws": scales, "wz": np.zeros(outputs, np.int8)}
    constants |= {"bs": np.float32(0.05) * scales, "bz": np.zeros(outputs, np.int32), "ys": np.float32(0.1), "yz": np.int8(-4)}
    constants["b"] = rng.integers(-300, 300, outputs).astype(np.int32)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1 - transposed),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"], axis=0),
        helper.make_node("Gemm", ["xd", "wd", "bd"], ["g"], transB=transposed),
        helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["gq"]),
        helper.make_node("DequantizeLinear", ["gq", "ys", "yz"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [1, size]) for name, size in (("x", 6), ("y", outputs))]
    arrays = [numpy_helper.from_array(np.asarray(values), name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], arrays)
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session, x = onnxruntime.InferenceSession(path, options), rng.normal(size=(50, 6)).astype(np.float32) * 2
    real = np.concatenate([session.run(None, {"x": one[None]})[0] for one in x])
    assert main([str(path), "-export", "CPP", "-db-export", "0", "-quiet", "-o", str(tmp_path / "out")]) == 0
    found = np.asarray(n2d2py.load_simulator(tmp_path / "out" / "export_CPP_int8")(x))
    np.testing.assert_array_equal(np.rint(found / 0.1), np.rint(real / 0.1))
