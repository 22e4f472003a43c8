"""A model without its heavy constants has everything else: what looks at its structure alone cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

from n2d2py.frontend.onnx.skeleton import skeleton

HEAVY = 1 << 16


def model():
    built = parser.parse_model(
        '<ir_version: 8, producer_name: "tool", opset_import: ["" : 17, "own" : 3]> g (float[N,3] x) => (float[N,3] y) '
        "<int64[2] light = {4, 5}> { a = Relu (x)\n y = own.Body (a) }"
    )
    built.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, ["N", 3]))
    built.metadata_props.add(key="who", value="a tool")
    built.functions.append(
        helper.make_function(
            "own", "Body", ["p"], ["q"], [helper.make_node("Abs", ["p"], ["q"])], [helper.make_opsetid("", 17)]
        )
    )
    return built


def of_bytes(size: int) -> TensorProto:
    """A tensor that takes so many bytes in the file."""
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8)
    tensor.dims.append(size)
    tensor.raw_data = bytes(size - 100)
    tensor.raw_data = bytes(size - 100 + size - tensor.ByteSize())
    assert tensor.ByteSize() == size
    return tensor


def test_light_models_stay_as_they_are():
    built = model()
    made = skeleton(built)
    assert made == built and made is not built and made.graph is not built.graph


@pytest.mark.parametrize("size, kept", [(HEAVY - 1, True), (HEAVY, True), (HEAVY + 1, False), (2 * HEAVY, False)])
def test_constants_up_to_64_kib_are_kept(size, kept):
    built = model()
    built.graph.initializer.append(of_bytes(size))
    made = skeleton(built)
    assert [tensor.name for tensor in made.graph.initializer] == (["light", "w"] if kept else ["light"])
    assert [value.name for value in made.graph.input] == (["x"] if kept else ["x", "w"])
    assert kept == (made == built) and len(built.graph.initializer) == 2


def test_heavy_constants_become_inputs_of_their_shape_and_type():
    built = model()
    kinds = {"big": np.float16, "counts": np.int64, "real": np.float32}
    shapes = {"big": (300, 200), "counts": (7, 3, 1000), "real": (1 << 15,)}
    for name, kind in kinds.items():
        built.graph.initializer.append(numpy_helper.from_array(np.zeros(shapes[name], kind), name))
    made = skeleton(built)
    assert [tensor.name for tensor in made.graph.initializer] == ["light"]
    found = {value.name: value.type.tensor_type for value in made.graph.input[1:]}
    assert {name: tuple(one.dim_value for one in kind.shape.dim) for name, kind in found.items()} == shapes
    assert {name: helper.tensor_dtype_to_np_dtype(kind.elem_type) for name, kind in found.items()} == kinds
    del made.graph.input[1:]
    del built.graph.initializer[1:]
    assert made == built


def test_heavy_constants_that_are_inputs_already_stay_one():
    """As files of the third version of the format list them."""
    built = model()
    built.graph.initializer.append(of_bytes(HEAVY + 1))
    built.graph.input.append(helper.make_tensor_value_info("w", TensorProto.UINT8, [HEAVY + 1]))
    assert [value.name for value in skeleton(built).graph.input] == ["x", "w"]


def test_a_model_without_a_graph_has_an_empty_one():
    built = model()
    built.ClearField("graph")
    made = skeleton(built)
    assert made.HasField("graph") and not made.graph.ListFields() and made.producer_name == "tool"
