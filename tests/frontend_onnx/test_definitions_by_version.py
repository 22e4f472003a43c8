"""Which operators are imported by their definition: of which version and domain, with attributes that have no default."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.expansion import expand_functions
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.frontend.onnx.model import load_onnx
from n2d2py.reference.executor import run_graph

F = np.float32


def built(node: str, opset: int, **constants: np.ndarray) -> onnx.ModelProto:
    """A model of x (1, 2, 6, 8) whose output y has no declared shape."""
    domains = f'"" : {opset}, "d" : 1'
    model = parser.parse_model(f"<ir_version: 10, opset_import: [{domains}]> g (float[1,2,6,8] x) => (float[1] y) {{ {node} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return model


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


def kinds(model: onnx.ModelProto) -> list[str]:
    """The operators of a model after definitions stand in the place of what they define."""
    loaded = load_onnx(model)
    expand_functions(loaded)
    return [node.op_type for node in loaded.proto.graph.node]


@every(
    ("node", "opset"),
    [
        ("y = Relu (x)", 18),
        ("y = LayerNormalization (x, w)", 18),
        ("y = Softmax (x)", 18),
        ("y = HardSwish (x)", 18),
        ("y = MeanVarianceNormalization (x)", 18),
        ("y = GreaterOrEqual (x, w)", 18),
        ("y = Range (w, w, w)", 18),
        ("y = Shape (x)", 18),
        ("y = d.Shrink (x)", 18),
        ("y = d.Nonsense (x)", 18),
        ("y = Det (x)", 18),
    ],
)
def test_operators_that_stay_as_they_are(node, opset):
    """Those with a converter or computed at import, others without a definition, and those of other domains."""
    assert kinds(built(node, opset, w=np.ones(8, F))) == [node.split("= ")[1].split(" (")[0].removeprefix("d.")]


def test_operators_that_become_others():
    assert "Shrink" not in kinds(built("y = Shrink (x)", 18)) and len(kinds(built("y = Shrink (x)", 18))) > 3
    assert kinds(built("a = Relu (x)\n b = Shrink (a)\n y = d.Nonsense (b)", 18))[0] == "Relu"


def test_a_definition_of_a_newer_version_is_none():
    """That of Shrink needs the operators of version 18."""
    with pytest.raises(N2D2Error, match=r"E310: .*Shrink \(1 node\) cannot be imported: the operator is not supported"):
        import_onnx(built("y = Shrink (x)", 17))
