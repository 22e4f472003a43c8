"""Operators that are imported by their definition in ONNX, against the evaluator of the onnx package."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support.onnx_models import text_model
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph


@every("attributes", ["", "<align_corners = 0>", "<align_corners = 1>"])
@every("size", [(2, 3, 5, 6), (2, 3, 4, 5, 6)])
def test_affine_grid(size, attributes):
    """Its definition reads an attribute that may be absent, and gives Range vectors of one element."""
    count, axes = size[0], len(size) - 2
    ends = f"float[{count},{axes},{axes + 1}] theta => float[{','.join(map(str, (count, *size[2:], axes)))}] y"
    model = text_model(ends, f"y = AffineGrid {attributes} (theta, size)", {"size": np.array(size)}, opset=20)
    theta = np.random.default_rng(0).normal(size=(count, axes, axes + 1)).astype(np.float32)
    wanted = np.asarray(ReferenceEvaluator(model).run(None, {"theta": theta})[0])
    graph = import_onnx(model)
    (name,) = graph.inputs
    found = run_graph(graph, {name: theta.reshape(graph.shape(name))})[graph.outputs[0]]
    np.testing.assert_allclose(np.asarray(found).reshape(wanted.shape), wanted, atol=1e-5)


@every(
    "node", ["Shrink (x)", "Shrink <lambd = 0.25> (x)", "Shrink <bias = 0.125> (x)", "Shrink <bias = 0.125, lambd = 1.0> (x)"]
)
def test_attributes_that_are_given_or_not(node):
    model = text_model("float[1,3,4,5] x => float[a,b,c,d] y", f"y = {node}", opset=18)
    x = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(np.float32)
    wanted = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
    found = run_graph(graph := import_onnx(model), {"x": x})[graph.outputs[0]]
    np.testing.assert_array_equal(np.asarray(found).reshape(wanted.shape), wanted)


F = np.float32


def built(node: str, opset: int, **constants: np.ndarray) -> onnx.ModelProto:
    """A model of x (1, 2, 6, 8) whose output y has no declared shape."""
    ends = "float[1,2,6,8] x => float[1] y"
    return text_model(ends, node, constants, opset=opset, domains='"d" : 1', has_shapes=False)


NODES = {
    "y = Shrink (x)": (18, {}),
    "y = Shrink <lambd = 0.25> (x)": (18, {}),
    "y = Shrink <bias = 0.5> (x)": (19, {}),
    "y = CenterCropPad (x, sizes)": (18, {"sizes": np.array([1, 2, 4, 10])}),
    "y = CenterCropPad <axes = [2, 3]> (x, two)": (18, {"two": np.array([4, 10])}),
    "y = CenterCropPad <axes = [-1]> (x, one)": (18, {"one": np.array([5])}),
    "y = RotaryEmbedding <rotary_embedding_dim = 4> (x, cos, sin)": (
        23,
        {"cos": np.full((1, 6, 2), 0.6, F), "sin": np.full((1, 6, 2), 0.8, F)},
    ),
    "y = RotaryEmbedding <interleaved = 1, rotary_embedding_dim = 4> (x, cos, sin)": (
        23,
        {"cos": np.full((1, 6, 2), 0.6, F), "sin": np.full((1, 6, 2), 0.8, F)},
    ),
    "a = Relu (x)\n c = Cos (angle)\n s = Sin (angle)\n y = RotaryEmbedding <rotary_embedding_dim = 4> (a, c, s)": (
        23,
        {"angle": np.arange(12, dtype=F).reshape(1, 6, 2) / 8},
    ),
    "a = Relu (x)\n b = Neg (a)\n c = Constant <value_ints = [1, 2, 5, 9]> ()\n y = CenterCropPad (b, c)": (18, {}),
    "w = HannWindow (size)\n y = Mul (x, w)": (17, {"size": np.array(8)}),
    "w = HammingWindow <periodic = 0> (size)\n y = Mul (x, w)": (17, {"size": np.array(8)}),
    "y = Swish <alpha = 0.5> (x)": (24, {}),
    "y = Swish (x)": (24, {}),
}


@every("node", NODES)
def test_as_the_reference_computes(node):
    opset, constants = NODES[node]
    if onnx.defs.onnx_opset_version() < opset:
        pytest.skip("an older onnx does not have it")
    model = built(node, opset, **constants)
    x = np.random.default_rng(0).normal(size=(1, 2, 6, 8)).astype(F)
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = run_graph(import_onnx(model), {"x": x}).values()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-6)


def test_the_types_of_constants_that_are_inputs_as_well():
    model = built("y = CenterCropPad (x, sizes)", 18, sizes=np.array([1, 2, 4, 10]))
    model.graph.input.append(onnx.helper.make_tensor_value_info("sizes", onnx.TensorProto.INT64, [4]))
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("sizes", onnx.TensorProto.INT64, [4]))
    graph = import_onnx(model)
    assert graph.inputs == ["x"] and graph.shape(graph.outputs[0]) == (1, 2, 4, 10)
