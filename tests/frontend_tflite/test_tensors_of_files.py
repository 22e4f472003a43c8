"""What tables of a .tflite file may hold, to the last number on both sides of each limit; every file is written field by field.

They look at `n2d2py.frontend.tflite.file` and `n2d2py.frontend.tflite.schema`.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.flat_files import (
    Fields,
    flat_file,
    flat_graph,
    flat_grid,
    flat_model,
    flat_operator,
    flat_tensor,
    ints,
    write_flat,
)

from n2d2py.errors import N2D2Error
from n2d2py.frontend.tflite import file as tflite_file
from n2d2py.frontend.tflite.file import RefusedOperator, TfliteFile, TfliteOperator, TfliteTensor, read_tflite

FLOAT32, FLOAT16, INT32, UINT8, INT64, BOOL, INT16, INT8, UINT16, INT4 = 0, 1, 2, 3, 4, 6, 7, 9, 16, 17
ADD, RELU, CALL_ONCE, VAR_HANDLE, ASSIGN_VARIABLE = 0, 19, 129, 142, 144
RESOURCE = 13
REMEDY = "; remedy: convert or download the model again"


def whole(text: str) -> str:
    """What a whole sentence of an error matches."""
    return f"^{re.escape(text)}$"


def what(folder: Path, model: Fields) -> str:
    """What an error says of a file."""
    with pytest.raises(N2D2Error) as caught:
        read_tflite(write_flat(folder, model))
    assert caught.value.code in ("E302", "E310")
    return f"{caught.value.code} {caught.value.what}"


def damage(folder: Path, model: Fields) -> str:
    found = what(folder, model)
    head = "E302 the file is damaged or truncated ("
    assert found.startswith(head) and found.endswith(")")
    return found[len(head) : -1]


def one(tensor: Fields, *buffers: bytes) -> Fields:
    """A file of one tensor that nothing computes."""
    return flat_model([flat_graph([tensor], [], [], [])], buffers=(b"", *buffers))


def read_one(folder: Path, tensor: Fields, *buffers: bytes) -> TfliteTensor:
    (found,) = read_tflite(write_flat(folder, one(tensor, *buffers))).tensors
    return found


# ---- shapes, names, buffers -------------------------------------------------------------------------
@pytest.mark.parametrize(
    "shape", [(), (0,), (0, 5), (1,) * 8, (2, 1, 1, 1, 1, 1, 1, 3), (2**16, 2**15), (2**31 - 1,), (3, 715827882)]
)
def test_shapes_that_are_read(shape, tmp_path):
    found = read_one(tmp_path, flat_tensor(shape))
    assert (found.shape, found.values, found.refusal, found.axis) == (shape, None, "", 0)
    assert (found.dtype, found.scale.size, found.zero_point.size, found.is_quantized) == (np.float32, 0, 0, False)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1,) * 9, "1 x 1 x 1 x 1 x 1 x 1 x 1 x 1 x 1"),
        ((*range(1, 10), 77), "1 x 2 x 3 x 4 x 5 x 6 x 7 x 8 x 9"),
        ((-1,), "-1"),
        ((-1, -1), "-1 x -1"),
        ((4, 0, -1), "4 x 0 x -1"),
        ((3, 715827883), "3 x 715827883"),
        ((2**16, 2**15, 2), "65536 x 32768 x 2"),
    ],
)
def test_shapes_that_are_damaged(shape, text, tmp_path):
    assert damage(tmp_path, one(flat_tensor(shape, name="w"))) == f"the tensor 'w' has the shape {text}"


def test_names_are_made_unique(tmp_path):
    """A tensor without a name is called by its index; a name that is there already is numbered."""
    tensors = [flat_tensor(name=name) for name in ("a", "", "a", "tensor_4", "", "a")]
    file = read_tflite(write_flat(tmp_path, flat_model([flat_graph(tensors, [], [], [])])))
    assert [tensor.name for tensor in file.tensors] == ["a", "tensor_1", "a_2", "tensor_4", "tensor_4_2", "a_3"]


def test_buffers_by_their_index(tmp_path):
    first, second = (np.array(values, "<f4") for values in ([1, 2], [3, 4]))
    buffers = (first.tobytes(), second.tobytes())
    for number, wanted in ((1, first), (2, second)):
        found = read_one(tmp_path, flat_tensor((2,), buffer=number), *buffers).values
        assert found is not None and np.array_equal(found, wanted)
    assert read_one(tmp_path, flat_tensor((2,), buffer=0), *buffers).values is None
    assert damage(tmp_path, one(flat_tensor((2,), buffer=3, name="w"), *buffers)) == "the tensor 'w' has the buffer 3 of 3"


@pytest.mark.parametrize("kind", [FLOAT32, INT8, UINT8, BOOL])
def test_a_file_without_buffers(kind, tmp_path):
    """A tensor that names the first one has none."""
    model = one(flat_tensor((1,), kind))
    assert model.pop(4)
    (found,) = read_tflite(write_flat(tmp_path, model)).tensors
    assert found.values is None and not found.is_quantized and (found.scale.size, found.zero_point.size) == (0, 0)
    model = one(flat_tensor((1,), kind, 1, "w"))
    assert model.pop(4)
    assert damage(tmp_path, model) == "the tensor 'w' has the buffer 1 of 0"


@pytest.mark.parametrize(("offset", "taken"), [(0, "table"), (1, "table"), (2, "place"), (64, "place"), (-4, "place")])
def test_buffers_behind_the_tables(offset, taken, tmp_path):
    """A place of 0 or 1 says that the bytes stand in the table; others may reach to the end of the file."""
    listed = {0: ints(7, 8, 9, 6, kind="u1"), 1: ("<Q", 0), 2: ("<Q", 4)}
    model = one(flat_tensor((4,), UINT8, 1))
    model[4] = [{}, listed]
    size = len(flat_file(model))
    at = offset % size
    listed[1] = ("<Q", at)
    data = flat_file(model)
    (found,) = read_tflite(write_flat(tmp_path, model)).tensors
    wanted = [7, 8, 9, 6] if taken == "table" else list(data[at : at + 4])
    assert found.values is not None and found.values.tolist() == wanted


@pytest.mark.parametrize(("at", "size"), [(-3, 4), (0, 4), (2, 10**6), (2**40, 4)])
def test_buffers_that_end_behind_the_file(at, size, tmp_path):
    listed = {1: ("<Q", 2), 2: ("<Q", size)}
    model = one(flat_tensor((4,), UINT8, 1))
    model[4] = [{}, listed]
    end = len(flat_file(model))
    place = end + at if at <= 0 else at
    listed[1] = ("<Q", place)
    assert damage(tmp_path, model) == f"the buffer at {place} of {size} bytes ends behind the file"


# ---- types and values -------------------------------------------------------------------------------
KINDS = [
    (0, "<f4", np.float32, [-1.5, 0, 3]),
    (1, "<f2", np.float16, [-1.5, 0, 3]),
    (2, "<i4", np.int32, [-70000, 0, 2**31 - 1]),
    (3, "u1", np.uint8, [0, 128, 255]),
    (4, "<i8", np.int64, [-(2**40), 0, 5]),
    (6, "u1", np.bool_, [0, 1, 1]),
    (7, "<i2", np.int16, [-300, 0, 32767]),
    (9, "i1", np.int8, [-128, 0, 127]),
    (10, "<f8", np.float64, [-1.5, 0, 3]),
    (12, "<u8", np.uint64, [0, 1, 2**63]),
    (15, "<u4", np.uint32, [0, 1, 2**31]),
    (16, "<u2", np.uint16, [0, 1, 65535]),
]


@pytest.mark.parametrize(("kind", "stored", "dtype", "values"), KINDS)
def test_values_of_each_type(kind, stored, dtype, values, tmp_path):
    found = read_one(tmp_path, flat_tensor((3, 1), kind, 1), np.array(values, stored).tobytes())
    assert found.values is not None and found.values.dtype == dtype and found.values.dtype.isnative
    assert found.values.tolist() == [[dtype(value).item()] for value in values]


@pytest.mark.parametrize(("kind", "width", "name"), [(0, 4, "float32"), (1, 2, "float16"), (9, 1, "int8"), (4, 8, "int64")])
@pytest.mark.parametrize("more", [-1, 1])
def test_buffers_of_another_length(kind, width, name, more, tmp_path):
    text = damage(tmp_path, one(flat_tensor((300, 5), kind, 1, "w"), bytes(1500 * width + more)))
    assert text == f"the tensor 'w' of 300 x 5 {name} has {1500 * width + more:,} bytes, not {1500 * width:,}"


@pytest.mark.parametrize(
    ("shape", "stored", "values"),
    [
        ((1,), b"\x0f", [-1]),
        ((1,), b"\xf7", [7]),
        ((2,), b"\x87", [7, -8]),
        ((3,), b"\x10\x02", [0, 1, 2]),
        ((2, 2), b"\x21\xfc", [[1, 2], [-4, -1]]),
    ],
)
def test_two_values_of_four_bits_in_a_byte(shape, stored, values, tmp_path):
    found = read_one(tmp_path, flat_tensor(shape, INT4, 1), stored)
    assert found.values is not None and found.values.dtype == np.int8 and found.values.tolist() == values


@pytest.mark.parametrize(("count", "size", "wanted"), [(1, 2, 1), (2, 2, 1), (3, 1, 2), (3, 3, 2), (4, 1, 2), (4, 3, 2)])
def test_values_of_four_bits_fill_half_as_many_bytes(count, size, wanted, tmp_path):
    text = damage(tmp_path, one(flat_tensor((count,), INT4, 1, "w"), bytes(size)))
    assert text == f"the tensor 'w' of {count} int8 has {size} bytes, not {wanted}"


REFUSALS = [
    (flat_tensor((1,), 5), "is of type STRING"),
    (flat_tensor((1,), 8), "is of type COMPLEX64"),
    (flat_tensor((1,), 11), "is of type COMPLEX128"),
    (flat_tensor((1,), 13), "is of type RESOURCE"),
    (flat_tensor((1,), 14), "is of type VARIANT"),
    (flat_tensor((1,), 18), "is of type BFLOAT16"),
    (flat_tensor((1,), 19), "is of type INT2"),
    (flat_tensor((1,), 20), "is of type UINT4"),
    (flat_tensor((1,), 21), "is of type FLOAT8_E4M3FN"),
    (flat_tensor((1,), 22), "is of type FLOAT8_E5M2"),
    (flat_tensor((1,), 23), "is of type number 23"),
    (flat_tensor((1,), 127), "is of type number 127"),
    (flat_tensor((1,), -1), "is of type number -1"),
    (flat_tensor((1,), 5, more={5: ("<B", 1)}), "is of type STRING"),
    (flat_tensor((1,), more={5: ("<B", 1)}), "is a variable, which keeps its value from run to run"),
    (flat_tensor((1,), more={10: ("<I", 1)}), "has its values in another file"),
    (flat_tensor((1,), more={5: ("<B", 1), 10: ("<I", 3)}), "is a variable, which keeps its value from run to run"),
    (flat_tensor((1,), more={4: {4: ("<B", 1)}}), "is quantized in a way of its own, without scale and zero point"),
    (flat_tensor((1,), more={4: {4: ("<B", 2)}, 10: ("<I", 1)}), "has its values in another file"),
    (flat_tensor((1,), more={5: ("<B", 0), 10: ("<I", 0), 4: {4: ("<B", 0)}}), ""),
    (flat_tensor((1,), more={7: ints(1), 8: ("<B", 1)}), ""),
]  # fmt: skip


@pytest.mark.parametrize(("tensor", "text"), REFUSALS)
def test_tensors_that_cannot_be_used(tensor, text, tmp_path):
    """They are in the file, without scales and values, for the message of an operator that reads them."""
    found = read_one(tmp_path, tensor)
    assert (found.refusal, found.dtype, found.axis, found.values) == (text, np.dtype(np.float32), 0, None)
    assert (found.scale.size, found.zero_point.size) == (0, 0)


@pytest.mark.parametrize(("kind", "dtype"), [(9, np.int8), (1, np.float16), (23, np.float32)])
def test_a_refused_tensor_has_no_grid(kind, dtype, tmp_path):
    """Nor is it looked at: its scales would be damaged."""
    found = read_one(tmp_path, flat_tensor((2,), kind, more={5: ("<B", 1), **flat_grid([0.5, -1, 2], [1, 2], 1)}))
    assert found.refusal and (found.scale.size, found.zero_point.size, found.axis) == (0, 0, 0)
    assert found.dtype == dtype and not found.is_quantized


# ---- scales -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("scale", "zero", "axis", "wanted"),
    [
        ([0.5], [], 0, [0]),
        ([0.5], [3], 0, [3]),
        ([0.5], [3], 7, [3]),
        ([0.5], [-128], -1, [-128]),
        ([0.5, 1], [], 0, [0, 0]),
        ([0.5, 1], [1, 2], 0, [1, 2]),
        ([0.5, 1, 2], [1, 2, 3], 1, [1, 2, 3]),
        ([0.5, 1, 2, 4, 8], [127, -128, 0, 0, 1], 2, [127, -128, 0, 0, 1]),
    ],
)
def test_scales_along_an_axis(scale, zero, axis, wanted, tmp_path):
    found = read_one(tmp_path, flat_tensor((2, 3, 5), INT8, more=flat_grid(scale, zero, axis)))
    assert found.scale.tolist() == scale and found.zero_point.tolist() == wanted and found.axis == axis
    assert found.is_quantized


@pytest.mark.parametrize(("kind", "scale"), [(FLOAT32, [0.5]), (BOOL, [0.5]), (FLOAT16, [0.5, -1]), (INT8, []), (UINT8, [])])
def test_scales_of_what_has_none(kind, scale, tmp_path):
    """Real numbers and truth values have no scale, and zero points without a scale say nothing."""
    found = read_one(tmp_path, flat_tensor((3,), kind, more=flat_grid(scale, [1, 2, 3])))
    assert (found.scale.size, found.zero_point.size, found.is_quantized) == (0, 0, False)


@pytest.mark.parametrize(
    ("scale", "zero", "axis", "text"),
    [
        ([0.5], [1, 2], 0, "has 1 scales and 2 zero points"),
        ([0.5, 1], [1], 0, "has 2 scales and 1 zero points"),
        ([0.5, 1], [1, 2, 3], 0, "has 2 scales and 3 zero points"),
        ([0.5, 1], [1, 2], 1, "has 2 scales for the axis 1 of 2 x 3 x 5"),
        ([0.5, 1, 2], [], 0, "has 3 scales for the axis 0 of 2 x 3 x 5"),
        ([0.5, 1, 2, 4, 8], [], -1, "has 5 scales for the axis -1 of 2 x 3 x 5"),
        ([0.5, 1], [], 3, "has 2 scales for the axis 3 of 2 x 3 x 5"),
        ([0.0], [], 0, "has a scale that is no positive number"),
        ([-0.5], [], 0, "has a scale that is no positive number"),
        ([np.inf], [], 0, "has a scale that is no positive number"),
        ([np.nan], [], 0, "has a scale that is no positive number"),
        ([0.5, np.inf], [], 0, "has a scale that is no positive number"),
        ([0.0, 0.5], [], 0, "has a scale that is no positive number"),
    ],
)
def test_scales_that_are_damaged(scale, zero, axis, text, tmp_path):
    tensor = flat_tensor((2, 3, 5), INT8, name="w", more=flat_grid(scale, zero, axis))
    assert damage(tmp_path, one(tensor)) == f"the tensor 'w' {text}"


@pytest.mark.parametrize(
    ("kind", "low", "high", "bits"),
    [
        (INT4, -8, 7, 4),
        (INT8, -128, 127, 8),
        (UINT8, 0, 255, 8),
        (INT16, -32768, 32767, 16),
        (UINT16, 0, 65535, 16),
        (INT32, -(2**31), 2**31 - 1, 32),
    ],
)
def test_zero_points_are_of_the_type(kind, low, high, bits, tmp_path):
    for zero in ([low, high], [high, low], [high, high], [low, low]):
        found = read_one(tmp_path, flat_tensor((2,), kind, more=flat_grid([1, 2], zero)))
        assert found.zero_point.tolist() == zero
    for zero in ([low - 1, high], [high, low - 1], [low, high + 1], [high + 1, low], [low - 1, low - 1], [high + 1] * 2):
        tensor = flat_tensor((2,), kind, name="w", more=flat_grid([1, 2], zero))
        assert damage(tmp_path, one(tensor)) == f"the tensor 'w' has a zero point outside of its {bits} bits"


def test_a_sparse_tensor_of_four_bits_is_refused(tmp_path):
    found = read_one(tmp_path, flat_tensor((2,), INT4, more={6: {}, **flat_grid([1], [1])}))
    assert found.refusal == "is sparse and of 4 bits"
    assert (found.scale.size, found.zero_point.size, found.values, found.axis) == (0, 0, None, 0)


@pytest.mark.parametrize(
    ("size", "dtype", "wanted"),
    [
        (0, np.int8, False),
        (1, np.int8, True),
        (2, np.uint8, True),
        (1, np.int32, True),
        (1, np.float32, False),
        (1, bool, False),
    ],
)
def test_integers_with_a_scale_are_quantized(size, dtype, wanted):
    assert TfliteTensor("t", (2,), np.dtype(dtype), np.ones(size, np.float32), np.zeros(size, np.int64)).is_quantized == wanted


# ---- operators --------------------------------------------------------------------------------------
CODES = [
    ({}, "ADD", False),
    ({0: ("<b", 3)}, "CONV_2D", False),
    ({3: ("<i", 3)}, "CONV_2D", False),
    ({0: ("<b", 3), 3: ("<i", 0)}, "CONV_2D", False),
    ({0: ("<b", 3), 3: ("<i", 14)}, "LOGISTIC", False),
    ({0: ("<b", 14), 3: ("<i", 3)}, "LOGISTIC", False),
    ({0: ("<b", 127), 3: ("<i", 150)}, "GELU", False),
    ({0: ("<b", 127), 3: ("<i", 161)}, "RIGHT_SHIFT", False),
    ({0: ("<b", 127), 3: ("<i", 162)}, "OPERATOR_162", False),
    ({0: ("<b", 127), 3: ("<i", 100000)}, "OPERATOR_100000", False),
    ({0: ("<b", -1), 3: ("<i", -1)}, "OPERATOR_-1", False),
    ({0: ("<b", -9), 3: ("<i", -2)}, "OPERATOR_-2", False),
    ({0: ("<b", 31)}, "CALL", False),
    ({0: ("<b", 33)}, "EMBEDDING_LOOKUP_SPARSE", False),
    ({0: ("<b", 32)}, "CUSTOM", True),
    ({0: ("<b", 32), 1: ""}, "CUSTOM", True),
    ({0: ("<b", 32), 1: "Mine"}, "Mine", True),
    ({3: ("<i", 32), 1: "Mine"}, "Mine", True),
    ({0: ("<b", 33), 1: "Mine"}, "EMBEDDING_LOOKUP_SPARSE", False),
]


@pytest.mark.parametrize(("code", "name", "custom"), CODES)
def test_codes_of_operators(code, name, custom, tmp_path):
    """The larger one of the old number, of one byte, and the new one."""
    model = flat_model([flat_graph([flat_tensor(), flat_tensor()], [flat_operator(1, [0], [1])], [0], [1])])
    model[1] = [{0: ("<b", 1)}, code]
    (operator,) = read_tflite(write_flat(tmp_path, model)).operators
    assert (operator.index, operator.code, operator.custom, operator.options, operator.given) == (0, name, custom, None, b"")
    assert (operator.inputs, operator.outputs, operator.input, operator.output) == ((0,), (1,), 0, 1)


def test_options_and_bytes_of_operators(tmp_path):
    """Options count where their type is named; a custom operator has bytes."""
    more = [
        {3: ("<B", 7), 4: {0: ("<i", 5)}},
        {3: ("<B", 0), 4: {0: ("<i", 5)}},
        {4: {0: ("<i", 5)}},
        {3: ("<B", 7)},
        {5: ints(1, 2, 255, kind="u1")},
    ]
    operators = [flat_operator(0, [at], [at + 1], each) for at, each in enumerate(more)]
    model = flat_model([flat_graph([flat_tensor() for _ in range(6)], operators, [0], [5])], [RELU])
    found = read_tflite(write_flat(tmp_path, model)).operators
    assert [each.index for each in found] == [0, 1, 2, 3, 4]
    assert [each.options.integer(0) if each.options else None for each in found] == [5, None, None, None, None]
    assert [each.given for each in found] == [b"", b"", b"", b"", b"\x01\x02\xff"]


def graph_of(
    operators: list[Fields], inputs=(0,), outputs=(3,), codes=(ADD, ASSIGN_VARIABLE, CALL_ONCE), last: Fields | None = None
):
    """Four tensors: the first is an input, the second a constant, the third without elements, unless said otherwise."""
    tensors = [flat_tensor((2,), name="x"), flat_tensor((2,), buffer=1, name="k"), flat_tensor((0,), name="e")]
    tensors.append(last or flat_tensor((2,), name="y"))
    return flat_model([flat_graph(tensors, operators, inputs, outputs)], codes, (b"", bytes(8)))


TAKEN = {
    "an input and a constant": [flat_operator(0, [0, 1], [3])],
    "no elements": [flat_operator(0, [2], [3])],
    "an input that is left out": [flat_operator(0, [0, -1], [3])],
    "no input": [flat_operator(0, [], [3])],
    "two outputs": [flat_operator(0, [0], [3, 2])],
    "an assignment": [flat_operator(1, [0, 1], []), flat_operator(0, [0], [3])],
}


@pytest.mark.parametrize("name", TAKEN)
def test_operators_that_are_read(name, tmp_path):
    read_tflite(write_flat(tmp_path, graph_of(TAKEN[name])))


WRONG = {
    "a code behind the last": ([flat_operator(3, [0], [3])], "operator 0 has the code 3 of 3"),
    "a tensor behind the last": ([flat_operator(0, [4], [3])], "operator 0 names the tensors 4 of 4"),
    "a result behind the last": ([flat_operator(0, [0], [4])], "operator 0 names the tensors 4 of 4"),
    "an input before the first": ([flat_operator(0, [-2], [3])], "operator 0 names the tensors -2 of 4"),
    "two wrong ones": ([flat_operator(0, [5, -9, 0], [3])], "operator 0 names the tensors 5, -9 of 4"),
    "a result left out": ([flat_operator(0, [0], [-1])], "operator 0 names the tensors -1 of 4"),
    "no result": ([flat_operator(0, [0], [3]), flat_operator(0, [0], [])], "operator 1 names the tensors of no output of 4"),
    "a result later": (
        [flat_operator(0, [0, 3], [2]), flat_operator(0, [0], [3])],
        "operator 0 reads 'y', which nothing writes before it",
    ),
    "its own result": ([flat_operator(0, [3], [3])], "operator 0 reads 'y', which nothing writes before it"),
    "an input written": ([flat_operator(0, [1], [0])], "operator 0 writes 'x', which is written or constant already"),
    "a constant written": ([flat_operator(0, [0], [1])], "operator 0 writes 'k', which is written or constant already"),
    "a result twice": ([flat_operator(0, [0], [3, 3])], "operator 0 writes 'y', which is written or constant already"),
    "a result again": (
        [flat_operator(0, [0], [3]), flat_operator(0, [0], [3])],
        "operator 1 writes 'y', which is written or constant already",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_operators_that_are_damaged(name, tmp_path):
    operators, text = WRONG[name]
    assert damage(tmp_path, graph_of(operators)) == text


def test_the_first_tensor_is_written_before_it_is_read(tmp_path):
    text = damage(tmp_path, graph_of([flat_operator(0, [0], [3])], inputs=()))
    assert text == "operator 0 reads 'x', which nothing writes before it"


def test_a_tensor_that_cannot_be_used_is_read_unwritten(tmp_path):
    """What refuses it says more."""
    last = flat_tensor((2,), RESOURCE, name="y")
    file = read_tflite(write_flat(tmp_path, graph_of([flat_operator(0, [0, 3], [2])], outputs=(2,), last=last)))
    assert file.tensors[3].refusal == "is of type RESOURCE"


@pytest.mark.parametrize(
    ("inputs", "outputs", "text"),
    [
        ((4,), (3,), "the input 4 is none of the 4 tensors"),
        ((-1,), (3,), "the input -1 is none of the 4 tensors"),
        ((0, -7, 9), (3,), "the input -7 is none of the 4 tensors"),
        ((0,), (4,), "the output 4 is none of the 4 tensors"),
        ((0,), (3, -1), "the output -1 is none of the 4 tensors"),
        ((5,), (6,), "the input 5 is none of the 4 tensors"),
        ((0, 0), (3,), "an input is listed twice"),
        ((0, 2, 0), (3,), "an input is listed twice"),
    ],
)
def test_ends_of_a_graph_that_are_damaged(inputs, outputs, text, tmp_path):
    assert damage(tmp_path, graph_of([flat_operator(0, [1], [3])], inputs, outputs)) == text


def test_ends_of_a_graph(tmp_path):
    file = read_tflite(write_flat(tmp_path, graph_of([flat_operator(0, [0], [3])], (2, 0), (3, 0, 3))))
    assert (file.inputs, file.outputs, file.initial) == ((2, 0), (3, 0, 3), {})
    assert file.path.endswith("m.tflite")


@pytest.mark.parametrize("ends", [(), (4, 5), (4, 5, 6)])
def test_operators_of_other_ends(ends):
    text = whole(f"it has {len(ends)} inputs and 1 outputs")
    with pytest.raises(RefusedOperator, match=text):
        assert TfliteOperator(0, "ADD", ends, (1,), None).input
    text = whole(f"it has 1 inputs and {len(ends)} outputs")
    with pytest.raises(RefusedOperator, match=text):
        assert TfliteOperator(0, "ADD", (1,), ends, None).output


@pytest.mark.parametrize(
    ("inputs", "outputs", "text"),
    [
        ((0, 1), (2,), "3 ADD c"),
        ((0,), (1, 2), "3 ADD b"),
        ((1,), (0,), "3 ADD a"),
        ((0, 1), (), "3 ADD a"),
        ((2, 1), (), "3 ADD c"),
        ((-1, 1), (), "3 ADD"),
        ((), (), "3 ADD"),
    ],
)
def test_labels_of_operators(inputs, outputs, text):
    """The index, the name, and the first result, or the first input of one without results."""
    none = np.zeros(0)
    tensors = tuple(TfliteTensor(name, (), np.dtype(np.float32), none, none) for name in "abc")
    operator = TfliteOperator(3, "ADD", inputs, outputs, None)
    file = TfliteFile("net.tflite", tensors, (operator,), (), ())
    assert file.label(operator) == text and str(file.place(operator)) == f"net.tflite [{text}]"


# ---- graphs and whole files -------------------------------------------------------------------------
GRAPHS = "graphs, one is supported, and others that give variables their first values"


@pytest.mark.parametrize("version", [2, 4, 0])
def test_other_versions(version, tmp_path):
    model = flat_model([flat_graph([], [], [], [])], version=version)
    assert what(tmp_path, model) == f"E302 the schema of the file has version {version}, not 3"


def test_a_file_without_graph(tmp_path):
    assert what(tmp_path, flat_model([])) == f"E310 the file has 0 {GRAPHS}"


def handle(tensor: int, name: str = "v") -> Fields:
    """VAR_HANDLE, the first code; the container of a variable stands before its name."""
    return flat_operator(0, [], [tensor], {3: ("<B", 1), 4: {0: "container", 1: name}})


def once(graph: int) -> Fields:
    """CALL_ONCE, the second code."""
    return flat_operator(1, [], [], {3: ("<B", 1), 4: {0: ("<i", graph)}})


def beginning(operators: list[Fields], stored: bytes = b"\x05", buffer: int = 1) -> Fields:
    """A graph that runs once: a constant, two handles, one that nothing writes, and another constant."""
    tensors = [
        flat_tensor((1,), INT8, buffer, "k"),
        flat_tensor((), RESOURCE, name="h"),
        flat_tensor((), RESOURCE, name="g"),
        flat_tensor((1,), INT8, name="u"),
        flat_tensor((1,), INT8, buffer, "c"),
    ]
    return flat_graph(tensors, operators, [3], [])


def started(calls: list[Fields], *graphs: Fields) -> Fields:
    main = flat_graph([flat_tensor((1,), INT8)], calls, [0], [0])
    return flat_model([main, *graphs], (VAR_HANDLE, CALL_ONCE, ASSIGN_VARIABLE, ADD), (b"", b"\x05", b"\x06"))


def assign(*inputs: int) -> Fields:
    return flat_operator(2, inputs, [])


@pytest.mark.parametrize(
    ("calls", "count"),
    [([], 2), ([once(2)], 2), ([once(0)], 2), ([once(1)], 3), ([once(2), once(1), once(3)], 3), ([once(1)], 1)],
)
def test_each_further_graph_runs_once(calls, count, tmp_path):
    model = started(calls, *(beginning([handle(1), assign(1, 0)]) for _ in range(count - 1)))
    assert what(tmp_path, model) == f"E310 the file has {count} {GRAPHS}"


def test_a_call_without_options_names_no_graph(tmp_path):
    calls = [flat_operator(1, [], [])]
    assert what(tmp_path, started(calls, beginning([]))) == f"E310 the file has 2 {GRAPHS}"
    assert read_tflite(write_flat(tmp_path, started(calls))).initial == {}


@pytest.mark.parametrize("calls", [[1, 2], [2, 1], [1, 2, 1]])
def test_the_last_graph_says_how_a_variable_starts(calls, tmp_path):
    """Whatever the order of the calls."""
    first = beginning([handle(1), assign(1, 0), handle(2, "other"), assign(2, 4)])
    second = beginning([handle(1), assign(1, 0)], buffer=2)
    initial = read_tflite(write_flat(tmp_path, started([once(at) for at in calls], first, second))).initial
    assert {name: (tensor.name, np.array(tensor.values).tolist()) for name, tensor in initial.items()} == {
        "v": ("k", [6]),
        "other": ("c", [5]),
    }


@pytest.mark.parametrize(
    ("operator", "code"),
    [
        (flat_operator(3, [1, 0], [3]), None),
        (assign(1), "ASSIGN_VARIABLE"),
        (assign(1, 0, 0), "ASSIGN_VARIABLE"),
        (assign(), "ASSIGN_VARIABLE"),
        (assign(2, 0), "ASSIGN_VARIABLE"),
        (assign(0, 1), "ASSIGN_VARIABLE"),
        (assign(-1, 0), "ASSIGN_VARIABLE"),
        (assign(1, -1), "ASSIGN_VARIABLE"),
        (assign(1, 3), "ASSIGN_VARIABLE"),
        (flat_operator(1, [], []), "CALL_ONCE"),
        (flat_operator(3, [1, 0], [2]), "ADD"),
    ],
)
def test_what_runs_once_gives_constants(operator, code, tmp_path):
    model = started([once(1)], beginning([handle(1), operator]))
    if code is None:
        assert "'u', which is written or constant already" in damage(tmp_path, model)
        return
    assert what(tmp_path, model) == f"E310 {code} of the graph 1, which runs once, gives no variable a constant"


def test_variables_by_the_tensors_that_stand_for_them(tmp_path):
    """The first result of a handle; a handle without options has no name."""
    tensors = [flat_tensor((), RESOURCE) for _ in range(4)]
    two = handle(1, "b")
    two[2] = ints(1, 2)
    operators = [handle(0, "a"), two, flat_operator(0, [], [3])]
    file = read_tflite(write_flat(tmp_path, flat_model([flat_graph(tensors, operators, [], [])], [VAR_HANDLE])))
    assert file.variables() == {0: "a", 1: "b"}
    assert file.variables() == {0: "a", 1: "b"}


def test_other_operators_stand_for_no_variable(tmp_path):
    operators = [flat_operator(0, [], [0], {3: ("<B", 1), 4: {1: "a"}})]
    file = read_tflite(write_flat(tmp_path, flat_model([flat_graph([flat_tensor()], operators, [], [])], [ADD])))
    assert file.variables() == {}


LIMIT = 100_000


@pytest.mark.parametrize("place", ["graphs", "codes", "buffers", "tensors", "operators"])
def test_tables_in_a_row(place, tmp_path):
    """More than 100,000 are not read."""
    graph, operator = flat_graph([flat_tensor()], [], [0], [0]), flat_operator(0, [], [0])
    model = flat_model([graph], [ADD])
    many: list[Fields] = [{"graphs": graph, "codes": {}, "buffers": {}, "tensors": flat_tensor(), "operators": operator}[place]]
    holder, slot = {"graphs": (model, 2), "codes": (model, 1), "buffers": (model, 4)}.get(
        place, (graph, {"tensors": 0, "operators": 3}.get(place, 0))
    )
    holder[slot] = many * (LIMIT + 1)
    assert damage(tmp_path, model) == "it has 100,001 tables in a row, at most 100,000 are read"


def test_as_many_tables_as_are_read(tmp_path):
    model = flat_model([flat_graph([flat_tensor()], [], [0], [0])])
    model[1] = [{}] * LIMIT
    assert len(read_tflite(write_flat(tmp_path, model)).tensors) == 1


@pytest.mark.parametrize(("size", "taken"), [(2**31 - 1, True), (2**31, False), (2**32, False)])
def test_the_size_of_a_file(size, taken, tmp_path, monkeypatch):
    path = write_flat(tmp_path, one(flat_tensor()))
    monkeypatch.setattr(tflite_file, "os", SimpleNamespace(fstat=lambda descriptor: SimpleNamespace(st_size=size)))
    if taken:
        assert len(read_tflite(path).tensors) == 1
        return
    with pytest.raises(N2D2Error) as caught:
        read_tflite(path)
    assert caught.value.what == f"the file has {size:,} bytes, at most 2,147,483,648 are read"


def test_files_that_cannot_be_opened(tmp_path):
    missing, folder = tmp_path / "none.tflite", tmp_path / "folder.tflite"
    folder.mkdir()
    for path, text in ((missing, "the TFLite file does not exist"), (folder, "the TFLite file cannot be read (")):
        with pytest.raises(N2D2Error) as caught:
            read_tflite(path)
        assert caught.value.code == "E301" and caught.value.what.startswith(text) and str(path) in caught.value.line()
        assert (caught.value.what == text) == (path == missing)


@pytest.mark.parametrize("data", [b"", struct.pack("<I", 8) + b"TFL2", b"TFL3", b"\0TFL3\0\0\0", b"\0\0\0\0\0TFL3"])
def test_files_without_the_mark(data, tmp_path):
    (tmp_path / "m.tflite").write_bytes(data)
    with pytest.raises(N2D2Error) as caught:
        read_tflite(tmp_path / "m.tflite")
    assert (caught.value.code, caught.value.what) == ("E302", "the file is damaged, truncated or not a TFLite model")
    assert caught.value.remedy == "convert or download the model again"
