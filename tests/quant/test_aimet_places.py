"""Where AIMET's encodings put their quantizers: the axis of the channels, readers, constants without readers, names that are taken."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.frontend.onnx.encodings import quantize_by


def model(*nodes: onnx.NodeProto, **constants: tuple[int, ...]) -> onnx.ModelProto:
    """A model with an input x, constants of these shapes, and the last node's result as its output."""
    graph = helper.make_graph(
        list(nodes),
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones(shape, np.float32), name) for name, shape in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def encodings(folder: Path, axis: int | None = None, **channels: int) -> Path:
    """A file with an encoding for each tensor, of so many channels."""
    if axis is None:
        entries = [
            {
                "name": name,
                "dtype": "INT",
                "enc_type": "PER_CHANNEL" if count > 1 else "PER_TENSOR",
                "bw": 8,
                "is_sym": True,
                "scale": [0.5] * count,
                "offset": [-128] * count,
            }
            for name, count in channels.items()
        ]
        data = {"version": "1.0.0", "activation_encodings": entries, "param_encodings": []}
    else:
        entries = [
            {"name": name, "output_dtype": "int8", "y_scale": [0.5] * count, "axis": axis} for name, count in channels.items()
        ]
        data = {"version": "2.0.0", "encodings": entries}
    path = folder / "net.encodings"
    path.write_text(json.dumps(data))
    return path


def quantizers(proto: onnx.ModelProto) -> dict[str, tuple[str, tuple[int, ...]]]:
    """By result of each quantizer its source and the shape of its scale."""
    constants = {each.name: tuple(each.dims) for each in proto.graph.initializer}
    return {node.output[0]: (node.input[0], constants[node.input[1]]) for node in proto.graph.node if node.op_type == "Quant"}


OPERATORS: dict[str, tuple[str, int, tuple[int, ...], dict, int]] = {
    # operator, number of the operand, its shape, attributes, axis of its output channels
    "Conv": ("Conv", 1, (2, 3, 4, 5), {}, 0),
    "ConvTranspose": ("ConvTranspose", 1, (2, 3, 4, 5), {}, 1),
    "Gemm": ("Gemm", 1, (2, 3), {}, 1),
    "Gemm, transposed": ("Gemm", 1, (2, 3), {"transB": 1}, 0),
    "Gemm, said not to be transposed": ("Gemm", 1, (2, 3), {"transB": 0, "transA": 1}, 1),
    "Gemm, first operand": ("Gemm", 0, (2, 3), {}, 0),
    "MatMul": ("MatMul", 1, (2, 3), {}, 1),
    "MatMul of rank 3": ("MatMul", 1, (2, 3, 4), {}, 2),
    "MatMul, first operand": ("MatMul", 0, (2, 3), {}, 0),
    "MatMul of a vector": ("MatMul", 1, (3,), {}, 0),
    "bias": ("Conv", 2, (3,), {}, 0),
    "bias of a transposed convolution": ("ConvTranspose", 2, (3, 1), {}, 0),
    "Mul": ("Mul", 1, (2, 3), {}, 0),
}


@pytest.mark.parametrize("case", OPERATORS)
def test_channels_are_those_of_the_outputs(case, tmp_path):
    kind, position, shape, attributes, axis = OPERATORS[case]
    for count in set(shape):
        inputs = ["x", "x", "x"][: max(position + 1, 2)]
        inputs[position] = "w"
        proto = model(helper.make_node(kind, inputs, ["y"], **attributes), w=shape)
        path = encodings(tmp_path, w=count)
        if count == shape[axis]:
            quantize_by(proto, path)
            wanted = tuple(count if each == axis else 1 for each in range(len(shape))) if count > 1 else ()
            assert quantizers(proto) == {"w_quantized": ("w", wanted)}
            assert list(proto.graph.node[-1].input) == [name.replace("w", "w_quantized") for name in inputs]
        elif count > 1:
            with pytest.raises(N2D2Error, match=f"has {count} channels, which do not fit the tensor"):
                quantize_by(proto, path)


@pytest.mark.parametrize(("axis", "found"), [(0, 0), (1, 1), (2, 2), (-1, 2), (-2, 1), (-3, 0), (3, None), (-4, None)])
def test_an_axis_that_is_given(axis, found, tmp_path):
    for count, at in ((2, 0), (3, 1), (4, 2)):
        proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]), w=(2, 3, 4))
        path = encodings(tmp_path, axis, w=count)
        if at == found:
            quantize_by(proto, path)
            assert quantizers(proto)["w_quantized"][1] == tuple(count if each == at else 1 for each in range(3))
        else:
            with pytest.raises(N2D2Error, match="do not fit the tensor"):
                quantize_by(proto, path)


def test_one_scale_has_no_axis(tmp_path):
    for axis in (None, 0, 1, 7):
        proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]), w=(2, 3))
        quantize_by(proto, encodings(tmp_path, axis, w=1))
        assert quantizers(proto) == {"w_quantized": ("w", ())}


def test_readers_with_other_axes_have_quantizers_of_their_own(tmp_path):
    nodes = (
        helper.make_node("Gemm", ["x", "w"], ["a"]),
        helper.make_node("Gemm", ["x", "w"], ["b"], transB=1),
        helper.make_node("MatMul", ["b", "w"], ["y"]),
    )
    proto = model(*nodes, w=(3, 3))
    quantize_by(proto, encodings(tmp_path, w=3))
    assert sorted(shape for _, shape in quantizers(proto).values()) == [(1, 3), (3, 1)]
    read = {node.output[0]: node.input[1] for node in proto.graph.node if node.op_type != "Quant"}
    assert read["a"] == read["y"] != read["b"]
    proto = model(*nodes, w=(3, 3))
    quantize_by(proto, encodings(tmp_path, w=1))
    assert len(quantizers(proto)) == 1


def test_a_constant_that_nobody_reads_has_no_quantizer(tmp_path):
    """Not even channels that do not fit it are looked at."""
    proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]), w=(2, 3), alone=(4, 5))
    quantize_by(proto, encodings(tmp_path, w=3, alone=7))
    assert quantizers(proto) == {"w_quantized": ("w", (1, 3))}


def test_inputs_results_and_outputs(tmp_path):
    """What a node makes keeps its name behind the quantizer, and so does an output; an input is read through its own."""
    nodes = helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])
    proto = model(*nodes)
    quantize_by(proto, encodings(tmp_path, x=1, a=1, y=1))
    assert quantizers(proto) == {"x_quantized": ("x", ()), "a": ("a_real", ()), "y": ("y_real", ())}
    assert [(node.op_type, list(node.output)) for node in proto.graph.node] == [
        ("Quant", ["x_quantized"]),
        ("Relu", ["a_real"]),
        ("Quant", ["a"]),
        ("Add", ["y_real"]),
        ("Quant", ["y"]),
    ]
    assert list(proto.graph.node[3].input) == ["a", "x_quantized"] and proto.graph.output[0].name == "y"
    assert [entry.domain for entry in proto.opset_import] == ["", "qonnx.custom_op.general"]
    quantize_by(proto, encodings(tmp_path, a_real=1))
    assert [entry.domain for entry in proto.opset_import] == ["", "qonnx.custom_op.general"]
    for name in ("x", "y"):
        with pytest.raises(N2D2Error, match="has 2 channels"):
            quantize_by(model(*nodes), encodings(tmp_path, **{name: 2}))


def test_the_second_result_of_a_node(tmp_path):
    proto = model(helper.make_node("Split", ["x"], ["a", "b"], axis=0), helper.make_node("Add", ["a", "b"], ["y"]))
    quantize_by(proto, encodings(tmp_path, b=1))
    assert quantizers(proto) == {"b": ("b_real", ())}
    assert list(proto.graph.node[0].output) == ["a", "b_real"]


def test_names_that_are_taken_get_a_number(tmp_path):
    proto = model(helper.make_node("MatMul", ["x", "w"], ["w_quantized"]), w=(2, 3))
    quantize_by(proto, encodings(tmp_path, w=3))
    ((result, (source, _)),) = quantizers(proto).items()
    assert source == "w" and result not in ("w", "w_quantized") and proto.graph.node[-1].input[1] == result
    names = [name for node in proto.graph.node for name in node.output] + [each.name for each in proto.graph.initializer]
    assert len(set(names)) == len(names)


def test_initializers_that_are_inputs_as_well_are_constants(tmp_path):
    proto = model(helper.make_node("MatMul", ["x", "w"], ["y"]), w=(2, 3))
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2, 3]))
    quantize_by(proto, encodings(tmp_path, w=3))
    assert quantizers(proto) == {"w_quantized": ("w", (1, 3))}


def test_what_the_model_does_not_have_is_warned_of(tmp_path):
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    for more, found in (({}, []), ({"other": 1}, ["W306"])):
        log.setup(quiet=True)
        quantize_by(model(node, w=(2, 3)), encodings(tmp_path, w=3, **more))
        assert [warning.code for warning in log.warnings_seen()] == found
    with pytest.raises(N2D2Error, match="none of its tensors is in the model"):
        quantize_by(model(node, w=(2, 3)), encodings(tmp_path, other=1))
