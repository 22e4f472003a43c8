"""What a translation writes for tensors of a file, node by node: constants, grids, clamps, shapes, names, and what it refuses.

They look at `n2d2py.frontend.tflite.translation` and `n2d2py.frontend.tflite.model`; results are those of `onnx.reference`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from support.flat_files import Fields, flat_graph, flat_grid, flat_model, flat_operator, flat_tensor, write_flat

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.frontend.onnx.contract import ROUNDING
from n2d2py.frontend.tflite.file import RefusedOperator, TfliteFile, TfliteOperator, TfliteTensor
from n2d2py.frontend.tflite.model import load_tflite
from n2d2py.frontend.tflite.translation import Translation, channels_first, moved_axis

Lower = Callable[[Translation, TfliteOperator], None]


def tensor(
    name: str, shape: Sequence[int], dtype: Any = np.float32, scale=(), zero=(), axis: int = 0, values=None, refusal: str = ""
):
    zero = zero or (0,) * len(scale)
    grid = np.array(scale, np.float32), np.array(zero, np.int64)
    return TfliteTensor(
        name, tuple(shape), np.dtype(dtype), *grid, axis, None if values is None else np.asarray(values), refusal
    )


def constant(name: str, values, scale=(), zero=(), axis: int = 0) -> TfliteTensor:
    values = np.asarray(values)
    return tensor(name, values.shape, values.dtype, scale, zero, axis, values)


def translation(*tensors: TfliteTensor) -> Translation:
    return Translation(TfliteFile("net", tensors, (), (), ()))


def model_of(tensors: Sequence[TfliteTensor], lower: Lower, inputs=(0,), outputs=(1,), read=None) -> onnx.ModelProto:
    """The graph of one operator, which `lower` translates."""
    operator = TfliteOperator(0, "MADE", tuple(read or inputs), tuple(outputs), None)
    return Translation(TfliteFile("net", tuple(tensors), (operator,), tuple(inputs), tuple(outputs))).run({"MADE": lower}, {})


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}


def refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(RefusedOperator, match=f"^{re.escape(text)}$"):
        call()


# ---- axes and shapes --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rank", "places"),
    [(4, [0, 2, 3, 1]), (1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (5, [0, 1, 2, 3, 4]), (6, [0, 1, 2, 3, 4, 5])],
)
def test_axes_in_the_graph(rank, places):
    assert [moved_axis(axis, rank) for axis in range(rank)] == places
    assert [moved_axis(axis, rank) for axis in range(-rank, 0)] == places
    for axis in (rank, -rank - 1):
        refused(lambda axis=axis: moved_axis(axis, rank), f"its axis {axis} is none of {rank}")


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((2, 3, 4, 5), (2, 5, 3, 4)),
        ([2, 3, 4, 5], (2, 5, 3, 4)),
        ((2, 3, 4), (2, 3, 4)),
        ([7], (7,)),
        ((), ()),
        ((1, 2, 3, 4, 5),) * 2,
    ],
)
def test_shapes_in_the_graph(shape, wanted):
    assert channels_first(shape) == wanted


RESHAPES = [
    ((2, 3, 4, 5), (2, 60), ["Transpose", "Reshape"]),
    ((2, 60), (2, 3, 4, 5), ["Reshape", "Transpose"]),
    ((2, 3, 4, 5), (2, 4, 3, 5), ["Transpose", "Reshape", "Transpose"]),
    ((2, 3, 4, 1), (2, 12), ["Reshape"]),
    ((2, 12), (2, 3, 4, 1), ["Reshape"]),
    ((2, 1, 1, 5), (10,), ["Reshape"]),
    ((10,), (2, 1, 1, 5), ["Reshape"]),
    ((2, 1, 3, 5), (30,), ["Transpose", "Reshape"]),
    ((2, 3, 1, 5), (30,), ["Transpose", "Reshape"]),
    ((2, 3, 1, 2), (2, 6), ["Transpose", "Reshape"]),
    ((6,), (1, 2, 1, 3), ["Reshape", "Transpose"]),
    ((2, 3, 4), (6, 4), ["Reshape"]),
    ((2, 2, 2, 2, 1), (4, 4), ["Reshape"]),
    ((3, 2, 2, 1), (1, 1, 4, 3), ["Reshape", "Transpose"]),
    ((1, 1, 4, 3), (3, 4, 1, 1), ["Transpose", "Reshape"]),
]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(("shape", "wanted", "nodes"), RESHAPES)
def test_elements_stay_in_the_order_of_the_file(shape, wanted, nodes, named):
    def lower(t: Translation, operator: TfliteOperator) -> None:
        def make(name: str) -> None:
            if named:
                assert t.reshaped("x", shape, wanted, name) == name
            else:
                t.emit("Identity", [t.reshaped("x", shape, wanted)], name)

        t.result(1, make)

    model = model_of([tensor("x", shape), tensor("y", wanted)], lower)
    assert kinds(model) == nodes + ([] if named else ["Identity"])
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    given = values.transpose(0, 3, 1, 2) if len(shape) == 4 else values
    (found,) = ReferenceEvaluator(model).run(None, {"x": given})
    y = values.reshape(wanted)
    assert np.array_equal(found, y.transpose(0, 3, 1, 2) if len(wanted) == 4 else y)


def test_names_of_reshaped_tensors():
    def lower(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit("Identity", [t.reshaped("x", (1, 2, 3, 4), (1, 3, 2, 4))], name))

    model = model_of([tensor("x", (1, 2, 3, 4)), tensor("y", (1, 3, 2, 4))], lower)
    assert [node.output[0] for node in model.graph.node] == ["x_nhwc", "x_reshaped", "x_nchw", "y"]
    assert list(constants(model)) == ["x_shape"] and constants(model)["x_shape"].tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize(
    ("shape", "wanted", "text"), [((2, 3), (5,), "6 elements do not fill 5"), ((7,), (2, 3), "7 elements do not fill 2 x 3")]
)
def test_other_numbers_of_elements(shape, wanted, text):
    refused(lambda: translation().reshaped("x", shape, wanted), text)


@pytest.mark.parametrize(
    ("shape", "declared", "text"),
    [
        ((2, 3), (3, 2), "its result is 2 x 3, but is declared as 3 x 2"),
        ([2, 3], (2, 3), ""),
        ((2, 3), (2, 3, 1), "its result is 2 x 3, but is declared as 2 x 3 x 1"),
        ((), (1,), "its result is , but is declared as 1"),
    ],
)
def test_results_have_the_shape_that_they_are_declared_in(shape, declared, text):
    t = translation(tensor("y", declared))
    if text:
        refused(lambda: t.expect(0, shape), text)
    else:
        t.expect(0, shape)


@pytest.mark.parametrize("wanted", [(1, 6), (1, 2, 3)])
def test_a_result_of_another_shape_is_named_after_it(wanted):
    def lower(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit_shaped("Neg", ["x"], name, [1, 6], wanted, "flat"))

    model = model_of([tensor("x", (1, 6)), tensor("y", wanted)], lower)
    whole = wanted == (1, 6)
    assert [(node.op_type, node.output[0]) for node in model.graph.node] == (
        [("Neg", "y")] if whole else [("Neg", "y_flat"), ("Reshape", "y")]
    )
    (found,) = ReferenceEvaluator(model).run(None, {"x": np.arange(6, dtype=np.float32).reshape(1, 6)})
    assert np.array_equal(found, -np.arange(6).reshape(wanted))


# ---- tensors ----------------------------------------------------------------------------------------
def test_tensors_that_operators_need():
    t = translation(
        tensor("a", (1,)), tensor("b", (1,), refusal="is of type STRING"), constant("c", np.array([1, -2], np.int32))
    )
    assert t.tensor(0).name == "a"
    refused(lambda: t.tensor(-1), "it lacks an input")
    refused(lambda: t.tensor(1), "its tensor 'b' is of type STRING")
    refused(lambda: t.values(0, "axis"), "its axis is computed at run time")
    refused(lambda: t.values(-1, "axis"), "it lacks an input")
    assert t.values(2, "axis").tolist() == [1, -2]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint32])
def test_integers_of_constants(dtype):
    found = translation(constant("c", np.array([[1, 2], [3, 100]], dtype))).numbers(0, "axis")
    assert found == [1, 2, 3, 100] and all(type(value) is int for value in found)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.bool_])
def test_constants_that_are_no_integers(dtype):
    t = translation(constant("c", np.array([0, 1], dtype)))
    refused(lambda: t.numbers(0, "axis"), f"its axis is of type {np.dtype(dtype).name}")


@pytest.mark.parametrize(
    ("dtype", "scale", "text"),
    [
        (np.int8, [0.5], ""),
        (np.uint8, [0.5], ""),
        (np.int8, [], "'t' is of int8 without a scale"),
        (np.float32, [], "'t' is of float32 without a scale"),
        (np.bool_, [0.5], "'t' is of bool without a scale"),
        (np.float32, [0.5], "'t' is of float32 without a scale"),
        (np.int8, [0.5, 1], "'t' is quantized by channel"),
        (np.int16, [0.5, 1], "'t' is quantized by channel"),
        (np.int16, [0.5], "'t' is of int16: tensors of 16 bits (int16x8) are not supported"),
        (np.int32, [0.5], "'t' is of int32: tensors of 16 bits (int16x8) are not supported"),
    ],
)
def test_integers_that_stand_for_real_numbers(dtype, scale, text):
    t, one = translation(), tensor("t", (2,), dtype, scale)
    if text:
        refused(lambda: t.need_quantized(one), text)
    else:
        t.need_quantized(one)


@pytest.mark.parametrize(
    ("dtype", "truth", "text"),
    [(np.float32, True, "'x' is of float32"), (np.bool_, False, "'x' is of bool"), (np.int8, True, "'x' is of int8")],
)
def test_truth_values_and_real_numbers(dtype, truth, text):
    t = translation(constant("x", np.zeros(2, dtype)), tensor("x", (2,), dtype))
    refused(lambda: t.real(0, truth=truth), text)
    refused(lambda: t.real(1, truth=truth), text)
    refused(lambda: t.result(1, lambda name: None, truth=truth), text)


def given_constant(one: TfliteTensor, rank: int, truth: bool = False) -> onnx.ModelProto:
    """A graph whose result is a constant operand."""
    made: list[str] = []

    def lower(t: Translation, operator: TfliteOperator) -> None:
        made.append(t.real(1, rank, truth))
        t.result(2, lambda name: t.emit("Identity", ["x"], name))

    model = model_of([tensor("x", (1,)), one, tensor("y", (1,))], lower, outputs=(2,))
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(made[0]))
    return model


OPERANDS = [
    ((), 0, (1,)),
    ((), 1, (1,)),
    ((), 2, (1, 1)),
    ((), 4, (1, 1, 1, 1)),
    ((3,), 0, (3,)),
    ((3,), 1, (3,)),
    ((3,), 2, (1, 3)),
    ((3,), 4, (1, 3, 1, 1)),
    ((2, 3), 0, (2, 3)),
    ((2, 3), 1, (2, 3)),
    ((2, 3), 3, (1, 2, 3)),
    ((2, 3), 4, (1, 3, 1, 2)),
    ((2, 3, 4), 0, (2, 3, 4)),
    ((2, 3, 4), 4, (1, 4, 2, 3)),
    ((2, 3, 4, 5), 0, (2, 5, 3, 4)),
    ((2, 3, 4, 5), 2, (2, 5, 3, 4)),
    ((2, 3, 4, 5), 5, (1, 2, 3, 4, 5)),
    ((1, 2, 3, 4, 5), 0, (1, 2, 3, 4, 5)),
]


def _filled(values: np.ndarray, rank: int) -> np.ndarray:
    values = values.reshape((1,) * (max(rank, 1) - values.ndim) + values.shape)
    return values.transpose(0, 3, 1, 2) if values.ndim == 4 else values


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.bool_])
@pytest.mark.parametrize(("shape", "rank", "wanted"), OPERANDS)
def test_constant_operands(shape, rank, wanted, dtype):
    """They are filled up from the left, to one axis at least, then turned; real numbers are float32."""
    values = (np.arange(np.prod(shape, dtype=int)) % 5).astype(dtype).reshape(shape)
    model = given_constant(constant("c", values), rank, dtype is np.bool_)
    found = constants(model)["c_2"]
    assert found.shape == wanted and found.dtype == (np.bool_ if dtype is np.bool_ else np.float32)
    assert np.array_equal(found, _filled(values, rank))


@pytest.mark.parametrize("zero", [0, 5, -128])
@pytest.mark.parametrize(("shape", "rank", "wanted"), OPERANDS)
def test_constant_operands_of_one_scale(shape, rank, wanted, zero):
    """Whatever the axis is that the file names; a zero point of 0 is left out."""
    values = (np.arange(np.prod(shape, dtype=int)) % 200 - 100).astype(np.int8).reshape(shape)
    model = given_constant(constant("c", values, [0.25], [zero], axis=7), rank)
    (node,) = (each for each in model.graph.node if each.op_type == "DequantizeLinear")
    names = ["c_stored", "c_scale", *(["c_zero_point"] if zero else [])]
    assert list(node.input) == names and node.output[0] == "c_real" and node.attribute[0].i == 0
    found = constants(model)
    assert found["c_stored"].shape == wanted and found["c_stored"].dtype == np.int8 and found["c_scale"].shape == (1,)
    assert not zero or (found["c_zero_point"].dtype == np.int8 and found["c_zero_point"].tolist() == [zero])
    _, result = ReferenceEvaluator(model).run(None, {"x": np.zeros(1, np.float32)})
    assert np.array_equal(result, _filled((values.astype(np.int32) - zero) * np.float32(0.25), rank))


@pytest.mark.parametrize(
    ("shape", "axis", "rank", "place"),
    [
        ((3,), 0, 0, 0),
        ((3,), 0, 2, 1),
        ((3,), 0, 4, 1),
        ((2, 3), 0, 0, 0),
        ((2, 3), 1, 0, 1),
        ((2, 3), 0, 3, 1),
        ((2, 3), 0, 4, 3),
        ((2, 3), 1, 4, 1),
        ((2, 3, 4), 0, 4, 2),
        ((2, 3, 4, 5), 0, 0, 0),
        ((2, 3, 4, 5), 1, 0, 2),
        ((2, 3, 4, 5), 2, 0, 3),
        ((2, 3, 4, 5), 3, 0, 1),
        ((2, 3, 4, 5), 3, 5, 4),
    ],
)
@pytest.mark.parametrize("zeros", [False, True])
def test_constant_operands_of_a_scale_for_each_index(shape, axis, rank, place, zeros):
    count = shape[axis]
    scale, zero = [0.5**at for at in range(count)], [3 * at for at in range(count)] if zeros else [0] * count
    values = (np.arange(np.prod(shape)) - 20).astype(np.int8).reshape(shape)
    model = given_constant(constant("c", values, scale, zero, axis), rank)
    (node,) = (each for each in model.graph.node if each.op_type == "DequantizeLinear")
    assert (node.attribute[0].name, node.attribute[0].i, len(node.input)) == ("axis", place, 3 if zeros else 2)
    _, result = ReferenceEvaluator(model).run(None, {"x": np.zeros(1, np.float32)})
    along = [-1 if at == axis else 1 for at in range(len(shape))]
    real = (values - np.array(zero).reshape(along)) * np.array(scale, np.float32).reshape(along)
    assert np.array_equal(result, _filled(real.astype(np.float32), rank))


def test_parameters_that_are_refused():
    t = translation()
    refused(lambda: t.parameter(tensor("w", (2,)), np.copy, 0), "'w' is computed at run time")
    refused(lambda: t.parameter(constant("w", np.array([1, 2], np.int8)), np.copy, 0), "'w' is of int8 without a scale")
    refused(lambda: t.parameter(constant("w", np.array([True])), np.copy, 0), "'w' is of bool without a scale")
    several = constant("w", np.zeros((2, 3), np.int8), [1, 2], axis=0)
    refused(lambda: t.parameter(several, np.copy, 1), "the scales of 'w' are not those of its outputs")
    refused(lambda: t.parameter(several, np.transpose, 0), "the scales of 'w' are not those of its outputs")


def test_a_parameter_of_another_name():
    t = translation(tensor("w", (1,)))
    assert t.parameter(constant("w", np.array([1], np.float16)), np.copy, 0, "bias") == "bias"
    assert t.parameter(constant("w", np.array([1], np.float32)), np.copy, 0) == "w_2"
    assert t.parameter(constant("w", np.array([1], np.int8), [0.5]), np.copy, 0, "bias") == "bias_real"


# ---- computed tensors -------------------------------------------------------------------------------
INT8 = {"dtype": np.int8, "scale": [0.5], "zero": [3]}


def test_a_grid_is_read_once():
    """Both readers take one DequantizeLinear, in the grid of the tensor."""

    def lower(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit("Add", [t.real(0), t.real(0)], name))

    model = model_of([tensor("x", (4,), **INT8), tensor("y", (4,), np.uint8, [0.25], [7])], lower)
    assert kinds(model) == ["QuantizeLinear", "DequantizeLinear", "Add", "QuantizeLinear"]
    assert [node.output[0] for node in model.graph.node] == ["x_quantized", "x_dequantized", "y_real", "y"]
    found = constants(model)
    assert (found["x_scale"], found["x_zero_point"], found["y_scale"], found["y_zero_point"]) == (0.5, 3, 0.25, 7)
    assert found["x_zero_point"].dtype == np.int8 and found["y_zero_point"].dtype == np.uint8
    assert model.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8
    (y,) = ReferenceEvaluator(model).run(None, {"x": np.array([-1, 0.5, 1, 100], np.float32)})
    assert np.asarray(y).tolist() == [0, 11, 15, 255]


def test_a_computed_tensor_is_dequantized_once():
    tensors = [tensor("x", (4,)), tensor("h", (4,), **INT8), tensor("y", (4,))]
    operators = (TfliteOperator(0, "NEG", (0,), (1,), None), TfliteOperator(1, "ADD", (1, 1), (2,), None))

    def negative(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit("Neg", [t.real(0)], name))

    def double(t: Translation, operator: TfliteOperator) -> None:
        t.result(2, lambda name: t.emit("Add", [t.real(1), t.real(1)], name))

    file = TfliteFile("net", tuple(tensors), operators, (0,), (2,))
    t = Translation(file)
    model = t.run({"NEG": negative, "ADD": double}, {})
    assert [node.output[0] for node in model.graph.node] == ["h_real", "h", "h_dequantized", "y"]
    assert t.places == {"h_real": "0 NEG h", "h": "0 NEG h", "h_dequantized": "1 ADD y", "y": "1 ADD y"}


def test_a_computed_number_keeps_its_shape():
    def lower(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit("Identity", [t.real(0)], name))

    assert kinds(model_of([tensor("x", ()), tensor("y", ())], lower)) == ["Identity"]


@pytest.mark.parametrize(("rank", "dims"), [(0, None), (1, None), (2, None), (3, [1, 2, 3]), (4, [1, 3, 1, 2])])
def test_a_computed_operand_is_filled_up(rank, dims):
    def lower(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit("Identity", [t.real(0, rank)], name))

    model = model_of([tensor("x", (2, 3)), tensor("y", (2, 3))], lower)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = ReferenceEvaluator(model).run(None, {"x": values})
    assert list(np.shape(found)) == (dims or [2, 3]) and ("Reshape" in kinds(model)) == (dims is not None)
    assert np.array_equal(found, _filled(values, rank))


# A clamp of int8 in the scale 0.5: -128 stands for the low end, and 127 for the high one, at these zero points.
CLAMPS = [
    (np.int8, 0.5, -128, None, []),
    (np.int8, 0.5, -128, (0, np.inf), []),
    (np.int8, 0.5, -127, (0, np.inf), ["Relu"]),
    (np.int8, 0.5, -129 + 256, (0, np.inf), ["Relu"]),
    (np.uint8, 0.5, 0, (0, np.inf), []),
    (np.uint8, 0.5, 1, (0, np.inf), ["Relu"]),
    (np.float32, None, None, (0, np.inf), ["Relu"]),
    (np.float32, None, None, (0, 6), ["Clip"]),
    (np.float32, None, None, (-1, np.inf), ["Clip"]),
    (np.float32, None, None, None, []),
    (np.int8, 6 / 255, -128, (0, 6), []),
    (np.int8, 6 / 254, -128, (0, 6), ["Clip"]),
    (np.int8, 6 / 256, -128, (0, 6), []),
    (np.int8, 6 / 256, -127, (0, 6), ["Clip"]),
    (np.int8, 1 / 128, 0, (-1, 1), []),
    (np.int8, 1 / 127, 0, (-1, 1), ["Clip"]),
    (np.int8, 1 / 127, 1, (-1, 1), ["Clip"]),
    (np.int8, 1 / 127, -1, (-1, 1), ["Clip"]),
    (np.int8, 1 / 129, -1, (-1, 1), []),
    (np.int8, 1 / 129, 1, (-1, 1), []),
    (np.uint8, 2 / 257, 128, (-1, 1), []),
    (np.uint8, 6 / 255, 0, (0, 6), []),
    (np.uint8, 6 / 254, 0, (0, 6), ["Clip"]),
    (np.uint8, 6 / 256, 1, (0, 6), ["Clip"]),
]


@pytest.mark.parametrize(("dtype", "scale", "zero", "limits", "nodes"), CLAMPS)
def test_clamps_that_the_type_does_itself_are_left_out(dtype, scale, zero, limits, nodes):
    def lower(t: Translation, operator: TfliteOperator) -> None:
        t.result(1, lambda name: t.emit("Neg", ["x"], name), limits)

    grid: dict[str, Any] = {} if scale is None else {"scale": [scale], "zero": [zero]}
    model = model_of([tensor("x", (4,)), tensor("y", (4,), dtype, **grid)], lower)
    assert kinds(model) == ["Neg", *nodes, *([] if scale is None else ["QuantizeLinear"])]
    name = "y" if scale is None else "y_real"
    assert model.graph.node[0].output[0] == (f"{name}_linear" if nodes else name)
    if nodes == ["Clip"]:
        found = constants(model)
        assert list(model.graph.node[1].input) == [f"{name}_linear", f"{name}_low", f"{name}_high"]
        assert (found[f"{name}_low"], found[f"{name}_high"]) == tuple(map(np.float32, limits))
        assert found[f"{name}_low"].dtype == np.float32


def test_an_alias_is_the_real_numbers_of_another_tensor():
    model = model_of([tensor("x", (4,), **INT8), tensor("y", (4,))], lambda t, operator: t.alias(1, 0))
    assert kinds(model) == ["QuantizeLinear", "DequantizeLinear", "Identity"]
    assert list(model.graph.node[-1].input) == ["x_dequantized"] and list(model.graph.node[-1].output) == ["y"]


KNOWN = [
    (constant("c", np.array([[1, 2], [3, 4]], np.float16)), [[1, 2], [3, 4]]),
    (constant("c", np.array([[1, 2], [3, 4]], np.int32)), [[1, 2], [3, 4]]),
    (constant("c", np.array([[1, 2], [3, 4]], np.int8), [0.5], [3]), [[-1, -0.5], [0, 0.5]]),
    (constant("c", np.array([[1, 2], [3, 4]], np.uint8), [0.5], [3], axis=1), [[-1, -0.5], [0, 0.5]]),
    (constant("c", np.array([[1, 2], [3, 4]], np.int8), [0.5, 4], [0, 2], axis=0), [[0.5, 1], [4, 8]]),
    (constant("c", np.array([[1, 2], [3, 4]], np.int8), [0.5, 4], [0, 2], axis=1), [[0.5, 0], [1.5, 8]]),
    (constant("c", np.int8(-128), [0.25], [127]), -63.75),
    (constant("c", np.array([-128, 127], np.int8), [1], [-128]), [0, 255]),
]


@pytest.mark.parametrize(("one", "wanted"), KNOWN)
def test_results_that_are_constants(one, wanted):
    """They are the real numbers, in the order of the file, under the name of the result."""
    t = translation(one, tensor("y", one.shape), tensor("x", (2,)))
    t.known(1, 0)
    assert t.tensor(1).name == "y" and t.values(1, "input").dtype == np.float32
    assert t.values(1, "input").tolist() == wanted
    refused(lambda: t.known(1, 2), "its input is computed at run time")


def test_names_that_nothing_has():
    t = translation(tensor("a", (1,)), tensor("a_2", (1,)))
    assert [t.fresh("b"), t.fresh("b"), t.fresh("a"), t.fresh("a")] == ["b", "b_2", "a_3", "a_4"]
    assert t.constant("b", np.float32(1)) == "b_3"


# ---- the whole --------------------------------------------------------------------------------------
def identity(t: Translation, operator: TfliteOperator) -> None:
    t.result(operator.output, lambda name: t.emit("Identity", [t.real(operator.inputs[0])], name))


def chain(*codes: str, custom=(), inputs=(0,), outputs=None, more=()) -> TfliteFile:
    """Operators one behind the other: the tensor 0 is read by the first, which writes the tensor 1."""
    tensors = [tensor(f"t{at}", (2,)) for at in range(len(codes) + 1)]
    operators = [TfliteOperator(at, code, (at,), (at + 1,), None, at in custom) for at, code in enumerate(codes)]
    return TfliteFile("net", (*tensors, *more), tuple(operators), inputs, outputs or (len(codes),))


def lines(file: TfliteFile, lowerings: dict[str, Lower], custom: dict[str, Lower] | None = None) -> list[str]:
    with pytest.raises(N2D2Error) as caught:
        Translation(file).run(lowerings, custom or {})
    return [f"{error.code} {error.where} {error.what}" for error in caught.value.errors]


def test_the_model():
    model = Translation(chain("A", "B")).run({"A": identity, "B": identity}, {})
    assert (model.opset_import[0].version, model.opset_import[0].domain, len(model.opset_import)) == (21, "", 1)
    assert (model.ir_version, model.producer_name, model.graph.name) == (10, "tflite", "net")
    assert [each.name for each in model.graph.input] == ["t0"] and [each.name for each in model.graph.output] == ["t2"]
    assert not model.graph.node[0].metadata_props


def test_operators_of_a_kind_are_refused_in_one_line():
    def refuse(t: Translation, operator: TfliteOperator) -> None:
        raise RefusedOperator("of its size" if operator.index < 3 else "of its kind")

    file = TfliteFile(
        "net",
        tuple(tensor(f"t{at}", (2,)) for at in range(6)),
        tuple(TfliteOperator(at, code, (0,), (at + 1,), None) for at, code in enumerate("ABAAC")),
        (0,),
        (1, 2, 3, 4, 5),
    )
    assert lines(file, {"A": refuse, "B": refuse}) == [
        "E310 net [0 A t1] A (2 operators, the first one here) cannot be imported: of its size",
        "E310 net [1 B t2] B (1 operator) cannot be imported: of its size",
        "E310 net [3 A t4] A (1 operator) cannot be imported: of its kind",
        "E310 net [4 C t5] C (1 operator) cannot be imported: the operator is not supported",
    ]
    with pytest.raises(ErrorList) as caught:
        Translation(file).run({}, {})
    assert caught.value.errors[0].remedy == "replace the operator and convert the model again, or export the model as ONNX"


def test_what_reads_a_refused_result_is_not_looked_at():
    """Nor what reads the result of that; an operator that is not known is said all the same."""
    seen: list[int] = []

    def look(t: Translation, operator: TfliteOperator) -> None:
        seen.append(operator.index)
        if operator.index == 1:
            raise RefusedOperator("so")
        identity(t, operator)

    assert lines(chain("A", "A", "A", "A", "B"), {"A": look}) == [
        "E310 net [1 A t2] A (1 operator) cannot be imported: so",
        "E310 net [4 B t5] B (1 operator) cannot be imported: the operator is not supported",
    ]
    assert seen == [0, 1]


def test_custom_operators_have_translations_of_their_own():
    file = chain("A", "A", custom=(1,))
    assert lines(file, {"A": identity}) == [
        "E310 net [1 A t2] A (1 operator) cannot be imported: the custom operator is not supported"
    ]
    assert lines(file, {}, {"A": identity}) == [
        "E310 net [0 A t1] A (1 operator) cannot be imported: the operator is not supported"
    ]
    assert kinds(Translation(file).run({"A": identity}, {"A": identity})) == ["Identity", "Identity"]


def test_operators_that_lead_to_no_output_are_left_out():
    assert kinds(Translation(chain("A", "B", "C", outputs=(2,))).run({"A": identity, "B": identity}, {})) == ["Identity"] * 2
    assert lines(chain("A", "B", "C"), {"A": identity, "B": identity}) == [
        "E310 net [2 C t3] C (1 operator) cannot be imported: the operator is not supported"
    ]


@pytest.mark.parametrize(("code", "taken"), [("RESHAPE", True), ("EXPAND", False)])
def test_a_computed_shape_is_not_needed(code, taken):
    tensors = tuple(tensor(f"t{at}", (2,)) for at in range(3))
    operators = (TfliteOperator(0, "SHAPE", (0,), (1,), None), TfliteOperator(1, code, (0, 1), (2,), None))
    file = TfliteFile("net", tensors, operators, (0,), (2,))
    if taken:
        assert kinds(Translation(file).run({code: identity}, {})) == ["Identity"]
    else:
        assert lines(file, {code: identity}) == [
            "E310 net [0 SHAPE t1] SHAPE (1 operator) cannot be imported: the operator is not supported"
        ]


@pytest.mark.parametrize(
    ("code", "dtype", "zero", "scale", "wanted"),
    [
        ("CONV_2D", np.int8, 3, [0.5], "twice"),
        ("DEPTHWISE_CONV_2D", np.float32, 0, [], "twice"),
        ("TRANSPOSE_CONV", np.uint8, 3, [0.5], "twice"),
        ("MEAN", np.int8, 3, [0.5], "twice"),
        ("FULLY_CONNECTED", np.int8, 3, [0.5], ""),
        ("MAX_POOL_2D", np.uint8, -128, [0.5], ""),
        ("AVERAGE_POOL_2D", np.uint8, 3, [0.5], "up"),
        ("AVERAGE_POOL_2D", np.int8, -128, [0.5], "down"),
        ("AVERAGE_POOL_2D", np.int8, -127, [0.5], ""),
        ("AVERAGE_POOL_2D", np.int8, 127, [0.5], ""),
        ("AVERAGE_POOL_2D", np.float32, 0, [], ""),
    ],
)
def test_how_the_reference_kernels_round(code, dtype, zero, scale, wanted):
    x = tensor("x", (2,), dtype, scale, [zero] if scale else ())
    operators = (TfliteOperator(0, code, (0,), (1,), None), TfliteOperator(1, "NEG", (1,), (2,), None))
    file = TfliteFile("net", (x, tensor("y", (2,)), tensor("z", (2,))), operators, (0,), (2,))
    model = Translation(file).run({code: identity, "NEG": identity}, {})
    first, second = (node for node in model.graph.node if node.op_type == "Identity")
    assert [(entry.key, entry.value) for entry in first.metadata_props] == ([(ROUNDING, wanted)] if wanted else [])
    assert not second.metadata_props


@pytest.mark.parametrize(
    ("inputs", "text"),
    [((), "it has 0 inputs and 1 outputs"), ((0, 0), "it has 2 inputs and 1 outputs"), ((-1,), "it lacks an input")],
)
def test_an_average_pool_of_other_inputs(inputs, text):
    file = TfliteFile(
        "net", (tensor("x", (2,)), tensor("y", (2,))), (TfliteOperator(0, "AVERAGE_POOL_2D", inputs, (1,), None),), (0,), (1,)
    )
    assert lines(file, {"AVERAGE_POOL_2D": identity}) == [
        f"E310 net [0 AVERAGE_POOL_2D y] AVERAGE_POOL_2D (1 operator) cannot be imported: {text}"
    ]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (tensor("x", (2, 0)), "it has no elements"),
        (tensor("x", (0, 2)), "it has no elements"),
        (tensor("x", (2,), np.int8), "'x' is of int8 without a scale"),
        (tensor("x", (2,), np.bool_), "'x' is of bool without a scale"),
        (tensor("x", (2,), np.int16, [1.0]), "'x' is of int16: tensors of 16 bits (int16x8) are not supported"),
        (tensor("x", (2,), refusal="is of type STRING"), "its tensor 'x' is of type STRING"),
    ],
)
def test_inputs_that_cannot_be_used(one, text):
    file = TfliteFile("net", (one, tensor("y", (2,))), (TfliteOperator(0, "A", (0,), (1,), None),), (0,), (1,))
    assert lines(file, {"A": identity}) == [f"E305 net the input 'x' cannot be used: {text}"]


def test_inputs_are_real_numbers_in_the_order_of_the_graph():
    tensors = [tensor("a", (2, 3, 4, 5), np.float16), tensor("b", (3, 4), **INT8), tensor("y", (2, 3, 4, 5))]
    t = Translation(TfliteFile("net", tuple(tensors), (TfliteOperator(0, "A", (0, 1), (2,), None),), (0, 1), (2,)))
    model = t.run({"A": identity}, {})
    types = [each.type.tensor_type for each in model.graph.input]
    assert [each.elem_type for each in types] == [onnx.TensorProto.FLOAT] * 2
    assert [[dim.dim_value for dim in each.shape.dim] for each in types] == [[2, 5, 3, 4], [3, 4]]
    assert [dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim] == [2, 5, 3, 4]
    assert t.places == {"b_quantized": "input b", "b_dequantized": "input b", "y": "0 A y"}


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_what_an_input_is_may_be_given_again(dtype):
    grid = {} if dtype is np.float32 else {"scale": [0.5], "zero": [3]}
    t = translation(tensor("x", (2, 3, 4, 5), dtype, **grid))
    t.fed(0, "x")
    assert t.given(0, False).name == "x"
    again = t.given(0, True)
    assert again.name == "x_kept" and again.type.tensor_type.elem_type == (
        onnx.TensorProto.INT8 if grid else onnx.TensorProto.FLOAT
    )
    assert [dim.dim_value for dim in again.type.tensor_type.shape.dim] == [2, 5, 3, 4]
    assert "x_kept" in t.places


# ---- the model of a file ----------------------------------------------------------------------------
def loaded(folder, tensors: list[Fields], inputs: Sequence[int] = (0,)):
    """A RELU of the first tensor; all inputs but that are read by nothing."""
    graph = flat_graph([*tensors, dict(tensors[0])], [flat_operator(0, [0], [len(tensors)])], inputs, [len(tensors)])
    return load_tflite(write_flat(folder, flat_model([graph], [19])), ignore=(), ignore_init=False, seed=1)


@pytest.mark.parametrize(
    ("kind", "zero", "offset"),
    [(3, 0, 0.0), (3, 3, -0.375), (3, 255, -31.875), (9, -128, 0.0), (9, 0, -16.0), (9, 127, -31.875), (9, -3, -15.625)],
)
def test_what_a_byte_of_a_picture_is(kind, zero, offset, tmp_path):
    """The stored integer: of int8 less 128; as many factors and offsets as the image has channels."""
    model = loaded(tmp_path, [flat_tensor((1, 4, 5, 3), kind, name="x", more=flat_grid([0.125], [zero]))])
    found = {entry.key: entry.value for entry in model.proto.metadata_props}
    assert found == {
        "n2d2py.factors": str([0.125] * 3),
        "n2d2py.offsets": str([offset] * 3),
        "n2d2py.formula": "the scale and zero point of the input",
    }


@pytest.mark.parametrize(
    ("tensors", "inputs"),
    [
        ([flat_tensor((1, 4, 5, 3), 0, name="x")], [0]),
        ([flat_tensor((1, 4, 5), 9, name="x", more=flat_grid([0.125], [1]))], [0]),
        ([flat_tensor((1, 4, 5, 3, 1), 9, name="x", more=flat_grid([0.125], [1]))], [0]),
        ([flat_tensor((1, 4, 5, 3), 9, name=name, more=flat_grid([0.125], [1])) for name in "xz"], [0, 1]),
    ],
)
def test_inputs_whose_bytes_say_nothing(tensors, inputs, tmp_path):
    assert not loaded(tmp_path, tensors, inputs).proto.metadata_props


IMAGES = "images are height, width, channels in the file; the network takes channels, height, width"


def _turned(rows: int, columns: int) -> str:
    return (
        f"the input 'x' of {rows} x {columns} is {rows} channels of {columns} values: the exported function takes the "
        f"{rows} channels of each value side by side, the transpose of the file's order"
    )


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((1, 4, 5, 3), [IMAGES]),
        ((1, 4, 5, 1), [IMAGES]),
        ((1, 4), []),
        ((1, 2, 2), [_turned(2, 2)]),
        ((1, 2, 40), [_turned(2, 40)]),
        ((1, 40, 2), [_turned(40, 2)]),
        ((1, 1, 40), []),
        ((1, 40, 1), []),
        ((1, 2, 3, 4, 5), []),
    ],
)
def test_what_is_said_of_the_order_of_inputs(shape, said, tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("n2d2py.log.notice", lambda text, *given: notes.append(text % given))
    loaded(tmp_path, [flat_tensor(shape, name="x")])
    assert [note.partition("m.tflite: ")[2] for note in notes if "m.tflite" in note] == said
