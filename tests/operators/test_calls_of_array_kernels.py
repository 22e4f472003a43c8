"""What the C++ of operators on arrays says: calls of kernels with each number in its place, loops, tables, constants of every type.

Of `n2d2py.operators.arrays` and of `n2d2py.operators.arrays.conv_pool`, `n2d2py.operators.arrays.gather`,
`n2d2py.operators.arrays.index_select`, `n2d2py.operators.arrays.interpolate`, `n2d2py.operators.arrays.map`,
`n2d2py.operators.arrays.matmul`, `n2d2py.operators.arrays.norm`, `n2d2py.operators.arrays.reduce`.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from support.lowered_layers import code_of, lowered

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, plain_type
from n2d2py.exports.cpp.parts import LayerConfig
from n2d2py.graph.forms import Custom
from n2d2py.operators.arrays.concat import ArrayConcat
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.index_select import ArrayIndexSelect
from n2d2py.operators.arrays.interpolate import ArrayInterpolate
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.norm import ArrayMaskedSoftmax, ArrayNorm, ArraySoftmax
from n2d2py.operators.arrays.reduce import ArrayCumSum, ArrayReduce
from n2d2py.operators.arrays.topk import ArrayTopK

I64, BOOL = plain_type("int64"), plain_type("bool")
LINE = np.arange(6, dtype=np.float32)
MASK = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]], bool)
NONE = "static_cast<const float*>(nullptr), static_cast<const float*>(nullptr)"
# operator, sizes of the inputs, size of the output, type of the output, types of the inputs, parameters, header, calls
CALLS: dict[str, tuple[Any, ...]] = {
    "joined": (
        ArrayConcat(3, (4, 2, 5), (0, -1, 1)),
        (12, 15),
        33,
        FLOAT32,
        None,
        {"operand1": LINE},
        "array_move",
        [
            "arrayConcat<3, 4, 11, 0>(IN0, OUT)",
            "arrayConcat<3, 2, 11, 4>(y_operand1, OUT)",
            "arrayConcat<3, 5, 11, 6>(IN1, OUT)",
        ],
    ),
    "largest": (
        ArrayTopK(2, 5, 3, 4),
        (30,),
        24,
        I64,
        [FLOAT32],
        {},
        "array_reduce",
        ["arrayTopK<2, 5, 3, 4, true>(IN0, OUT)"],
    ),
    "smallest": (
        ArrayTopK(2, 5, 3, 4, False),
        (30,),
        24,
        I64,
        [FLOAT32],
        {},
        "array_reduce",
        ["arrayTopK<2, 5, 3, 4, false>(IN0, OUT)"],
    ),
    "running sums": (
        ArrayCumSum(2, 3, 4),
        (24,),
        24,
        FLOAT32,
        None,
        {},
        "array_reduce",
        ["arrayCumSum<2, 3, 4, false, false, false>(IN0, OUT)"],
    ),
    "running sums, exclusive": (
        ArrayCumSum(2, 3, 4, exclusive=True),
        (24,),
        24,
        FLOAT32,
        None,
        {},
        "array_reduce",
        ["arrayCumSum<2, 3, 4, true, false, false>(IN0, OUT)"],
    ),
    "running sums, reversed": (
        ArrayCumSum(2, 3, 4, reverse=True),
        (24,),
        24,
        FLOAT32,
        None,
        {},
        "array_reduce",
        ["arrayCumSum<2, 3, 4, false, true, false>(IN0, OUT)"],
    ),
    "running products": (
        ArrayCumSum(2, 3, 4, product=True),
        (24,),
        24,
        FLOAT32,
        None,
        {},
        "array_reduce",
        ["arrayCumSum<2, 3, 4, false, false, true>(IN0, OUT)"],
    ),
    "resampled": (
        ArrayInterpolate(
            2, 4, 3, ((0, 1), (1, 2), (2, 3), (3, 3), (0, 0)), ((0.5, 0.5), (0.25, 0.75), (1.0, 0.0), (1.0, 0.0), (0.0, 1.0))
        ),
        (24,),
        30,
        FLOAT32,
        None,
        {},
        "array_norm",
        ["arrayInterpolate<2, 4, 3, 5, 2>(IN0, y_positions, y_weights, OUT)"],
    ),
    "chosen lines": (
        ArrayGather(2, 5, 3, 4),
        (30, 4),
        24,
        FLOAT32,
        [FLOAT32, I64],
        {},
        "array_move",
        ["arrayGather<2, 5, 3, 4, false>(IN0, IN1, OUT)"],
    ),
    "chosen elements of a constant": (
        ArrayGather(2, 5, 3, 4, True, (-1, 0)),
        (24,),
        24,
        FLOAT32,
        [I64],
        {"operand0": np.zeros(30, np.float32)},
        "array_move",
        ["arrayGather<2, 5, 3, 4, true>(y_operand0, IN0, OUT)"],
    ),
    "written lines": (
        ArrayScatter(1, 5, 3, 4, combine="max", slots=(0, -1, 1)),
        (15, 12),
        15,
        FLOAT32,
        None,
        {"operand1": np.array([1, 2, 0, 4])},
        "array_move",
        ["arrayScatter<5, 3, 4, n2d2::ScatterMax>(IN0, y_operand1, IN1, OUT)"],
    ),
    "written over": (
        ArrayScatter(1, 5, 3, 4),
        (15, 4, 12),
        15,
        FLOAT32,
        [FLOAT32, I64, FLOAT32],
        {},
        "array_move",
        ["arrayScatter<5, 3, 4, n2d2::ScatterNone>(IN0, IN1, IN2, OUT)"],
    ),
    "product": (
        ArrayMatMul((3, 2, 4), (1, 4, 5)),
        (24, 20),
        30,
        FLOAT32,
        None,
        {},
        "array_matmul",
        ["arrayMatMul<n2d2::Axis<3, 8, 0, 10, n2d2::AxisEnd >, 2, 4, 5, 4, 1, 5, 1, 5, 1>(IN0, IN1, 1.0, OUT)"],
    ),
    "product of a constant": (
        ArrayMatMul((2, 1, 2, 4), (2, 3, 4, 5), (0, -1), scale=0.5),
        (16,),
        60,
        FLOAT32,
        None,
        {"operand1": np.zeros(120, np.float32)},
        "array_matmul",
        [
            "arrayMatMul<n2d2::Axis<2, 8, 60, 30, n2d2::Axis<3, 0, 20, 10, n2d2::AxisEnd > >, 2, 4, 5, 4, 1, 5, 1, 5, 1>(IN0, y_operand1, 0.5, OUT)"
        ],
    ),
    "product within": (
        ArrayMatMul((2, 4), (4, 5), views=((20, 3, 8, 2), (30, 7, 1, 4), (10, 0, 1, 2))),
        (20, 30),
        10,
        FLOAT32,
        None,
        {},
        "array_matmul",
        ["arrayMatMul<n2d2::AxisEnd, 2, 4, 5, 8, 2, 1, 4, 1, 2>(IN0 + 3, IN1 + 7, 1.0, OUT)"],
    ),
    "product of a row": (
        ArrayMatMul((1, 4), (4, 5)),
        (4, 20),
        5,
        FLOAT32,
        None,
        {},
        "array_matmul",
        ["arrayMatMul<n2d2::AxisEnd, 1, 4, 5, 0, 1, 5, 1, 0, 1>(IN0, IN1, 1.0, OUT)"],
    ),
    "softmax": (ArraySoftmax(2, 3, 4), (24,), 24, FLOAT32, None, {}, "array_norm", ["arraySoftmax<2, 3, 4, false>(IN0, OUT)"]),
    "logarithm of a softmax": (
        ArraySoftmax(2, 3, 4, True),
        (24,),
        24,
        FLOAT32,
        None,
        {},
        "array_norm",
        ["arraySoftmax<2, 3, 4, true>(IN0, OUT)"],
    ),
    "masked softmax": (
        ArrayMaskedSoftmax(6, 4, 1),
        (24,),
        24,
        FLOAT32,
        None,
        {"mask": MASK},
        "array_norm",
        ["arrayMaskedSoftmax<6, 4, 3>(IN0, y_mask, OUT)"],
    ),
    "norm": (
        ArrayNorm(3, 4, 1e-5),
        (12,),
        12,
        FLOAT32,
        None,
        {},
        "array_norm",
        [f"arrayNorm<3, 4, true, 0, false>(IN0, 1e-05, 0.0, {NONE}, OUT)"],
    ),
    "norm with gains": (
        ArrayNorm(3, 4, 1e-3, False),
        (12,),
        12,
        FLOAT32,
        None,
        {"gain": LINE[:4], "shift": LINE[2:]},
        "array_norm",
        ["arrayNorm<3, 4, false, 0, true>(IN0, 0.001, 0.0, y_gain, y_shift, OUT)"],
    ),
    "means": (
        ArrayNorm(3, 4, 1e-5, part="mean"),
        (12,),
        3,
        FLOAT32,
        None,
        {},
        "array_norm",
        [f"arrayNorm<3, 4, true, 1, false>(IN0, 1e-05, 0.0, {NONE}, OUT)"],
    ),
    "deviations": (
        ArrayNorm(3, 4, 1e-5, part="inverse"),
        (12,),
        3,
        FLOAT32,
        None,
        {},
        "array_norm",
        [f"arrayNorm<3, 4, true, 2, false>(IN0, 1e-05, 0.0, {NONE}, OUT)"],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    op, sizes, output, kind, kinds, params, header, calls = CALLS[name]
    code = code_of(op, [(1, size) for size in sizes], (1, output), kind, kinds, form=Custom(params))
    assert code.headers == (f"n2d2/{header}.hpp",)
    wanted = [re.sub(r"IN(\d)", r"n2d2::elements<x\1_plane>(in\1)", f"n2d2::{call};") for call in calls]
    assert [str(call) for call in code.calls] == [call.replace("OUT", "n2d2::elements<y_plane>(out)") for call in wanted]


def test_tables_of_a_resampling():
    op = ArrayInterpolate(2, 4, 3, ((0, 1), (1, 2), (2, 3)), ((0.5, 0.5), (0.25, 0.75), (1.0, 0.0)))
    for kind, name in ((FLOAT32, "float"), (FLOAT64, "double")):
        code = code_of(op, [(1, 24)], (1, 18), kind)
        assert [(each.name, each.ctype, each.values.reshape(-1).tolist()) for each in code.arrays] == [
            ("y_positions", "std::int32_t", [0, 1, 1, 2, 2, 3]),
            ("y_weights", name, [0.5, 0.5, 0.25, 0.75, 1.0, 0.0]),
        ]


def test_a_mask_is_stored_in_bits():
    code = code_of(ArrayMaskedSoftmax(6, 4, 1), [(1, 24)], (1, 24), FLOAT32, form=Custom({"mask": MASK}))
    assert [(each.name, each.ctype, each.values.tolist()) for each in code.arrays] == [("y_mask", "std::uint8_t", [13, 3, 8])]


AXES = {
    "two operands": (
        ArrayMap("Add", (2, 3, 4), ((2, 1, 4), (1, 3, 1)), (0, 1)),
        (8, 3),
        24,
        "Add",
        "Axis<2, 4, 0, 0, n2d2::Axis<3, 0, 1, 0, n2d2::Axis<4, 1, 0, 0",
    ),
    "alike": (ArrayMap("Add", (2, 3, 4), ((2, 3, 4), (2, 3, 4)), (0, 1)), (24, 24), 24, "Add", "Axis<24, 1, 1, 0"),
    "alike but for the first axis": (
        ArrayMap("Mul", (2, 3, 4), ((2, 3, 4), (1, 3, 4)), (0, 1)),
        (24, 12),
        24,
        "Mul",
        "Axis<2, 12, 0, 0, n2d2::Axis<12, 1, 1, 0",
    ),
    "one value": (ArrayMap("Sub", (2, 3), ((2, 3), (1, 1)), (0, 1)), (6, 1), 6, "Sub", "Axis<6, 1, 0, 0"),
    "ones": (ArrayMap("Add", (1, 3, 1), ((1, 3, 1), (1, 3, 1)), (0, 1)), (3, 3), 3, "Add", "Axis<3, 1, 1, 0"),
    "a single element": (ArrayMap("Neg", (1, 1), ((1, 1),)), (1,), 1, "Neg", ""),
}


@pytest.mark.parametrize("name", AXES)
def test_loops_over_operands(name):
    op, sizes, output, function, axes = AXES[name]
    types, _, _ = lowered(op, [(1, size) for size in sizes], (1, output), FLOAT32)
    assert str(types["Function"]) == f"n2d2::maps::{function}" and str(types["Output"]) == "y_plane"
    ends = " >" * axes.count("Axis")
    assert str(types["Axes"]) == (f"n2d2::{axes}, n2d2::AxisEnd{ends}" if axes else "n2d2::AxisEnd")


@pytest.mark.parametrize(("kind", "function"), [("bool", "CastBool"), ("int32", "Cast"), ("int8", "Cast"), ("", "Cast")])
def test_casts_to_truth_have_a_function_of_their_own(kind, function):
    source, target = (FLOAT32, plain_type(kind)) if kind else (I64, FLOAT32)
    code = code_of(ArrayMap("Cast", (2, 3), ((2, 3),), (0,), kind), [(1, 6)], (1, 6), target, [source])
    (config,) = [struct for struct in code.structs if isinstance(struct, LayerConfig)]
    assert str(config.types["Function"]) == f"n2d2::maps::{function}"


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("kind", [*INTEGERS, "bool"])
def test_constants_of_every_type(kind):
    """Truth values are stored as bytes."""
    values = np.array([1, 0, 1], kind)
    op = ArrayMap("Equal", (3,), ((3,), (3,)), (0, -1), "bool")
    code = code_of(op, [(1, 3)], (1, 3), BOOL, [plain_type(kind)], form=Custom({"operand1": values}))
    (array,) = code.arrays
    assert array.ctype == ("std::uint8_t" if kind == "bool" else f"std::{kind}_t")
    assert array.values.dtype == (np.uint8 if kind == "bool" else values.dtype) and array.values.tolist() == [1, 0, 1]


@pytest.mark.parametrize(("kind", "name"), [(FLOAT32, "float"), (FLOAT64, "double")])
def test_real_constants_have_the_type_of_the_real_numbers(kind, name):
    """Of the output, or of an input where that has truth values."""
    for function, result in (("Add", kind), ("Greater", BOOL)):
        op = ArrayMap(function, (3,), ((3,), (3,)), (0, -1), "bool" if result is BOOL else "")
        code = code_of(op, [(1, 3)], (1, 3), result, [kind], form=Custom({"operand1": LINE[:3]}))
        assert [(array.ctype, array.values.dtype.kind) for array in code.arrays] == [(name, "f")]


REDUCED = {
    "some": (
        ArrayReduce("Sum", (2, 3, 4, 5), (1, 3)),
        8,
        "arrayReduce",
        "Axis<2, 60, 0, 0, n2d2::Axis<4, 5, 0, 0",
        "Axis<3, 20, 0, 0, n2d2::Axis<5, 1, 0, 0",
    ),
    "the last": (ArrayReduce("Max", (2, 3, 4, 5), (3,)), 24, "arrayReduce", "Axis<24, 5, 0, 0", "Axis<5, 1, 0, 0"),
    "the first two": (
        ArrayReduce("LogSumExp", (2, 3, 4, 5), (0, 1)),
        20,
        "arrayLogSumExp",
        "Axis<20, 1, 0, 0",
        "Axis<6, 20, 0, 0",
    ),
    "all": (ArrayReduce("Mean", (2, 3, 4, 5), (0, 1, 2, 3)), 1, "arrayReduce", "", "Axis<120, 1, 0, 0"),
    "the last extreme": (
        ArrayReduce("ArgMaxLast", (2, 3, 4, 5), (1,), "int64"),
        40,
        "arrayReduce",
        "Axis<2, 60, 0, 0, n2d2::Axis<20, 1, 0, 0",
        "Axis<3, 20, 0, 0",
    ),
}


@pytest.mark.parametrize("name", REDUCED)
def test_loops_over_kept_and_reduced_axes(name):
    op, output, kernel, kept, reduced = REDUCED[name]
    kind = I64 if op.result else FLOAT32
    code = code_of(op, [(1, 120)], (1, output), kind, [FLOAT32])
    assert [str(call) for call in code.calls] == [f"n2d2::{kernel}<y_config>(in0, out);"]
    (types,) = [struct.types for struct in code.structs if isinstance(struct, LayerConfig)]
    for role, axes in (("Kept", kept), ("Reduced", reduced)):
        ends = " >" * axes.count("Axis")
        assert str(types[role]) == (f"n2d2::{axes}, n2d2::AxisEnd{ends}" if axes else "n2d2::AxisEnd")
    functor = None if kernel == "arrayLogSumExp" else f"n2d2::reductions::{op.function}<float>"
    assert (str(types["Function"]) if "Function" in types else None) == functor


WINDOWS = {
    "Conv": ({"groups": 2}, 6, "arrayConvolution<y_config>(IN0, IN1, OUT)"),
    "Max": ({"slots": (0,)}, 4, "arrayPool<y_config, n2d2::WindowMax >(IN0, OUT)"),
    "MaxIndex": (
        {"slots": (0,), "result": "int64", "column_major": True},
        4,
        "arrayPool<y_config, n2d2::WindowMaxIndex >(IN0, OUT)",
    ),
    "Average": ({"slots": (0,), "counted": (1, 2, 3)}, 4, "arrayPool<y_config, n2d2::WindowAverage >(IN0, OUT)"),
    "Lp": ({"slots": (0,), "order": 3}, 4, "arrayPool<y_config, n2d2::WindowNorm<3> >(IN0, OUT)"),
}


@pytest.mark.parametrize("function", WINDOWS)
def test_windows(function):
    fields, outputs, call = WINDOWS[function]
    op = ArrayConvPool(function, (2, 4, 3, 6, 7), outputs, (2, 3, 4), (2, 3, 1), (1, 2, 5), (1, 0, 2), (1, 4, 3), **fields)
    kind = I64 if function == "MaxIndex" else FLOAT32
    sizes = op.operand_sizes()
    assert sizes == ((1008, 6 * 2 * 6) if function == "Conv" else (1008,))
    code = code_of(op, [(1, size) for size in sizes], (1, 2 * outputs * 24), kind, [FLOAT32] * len(sizes))
    spelled = re.sub(r"IN(\d)", r"n2d2::elements<x\1_plane>(in\1)", call).replace("OUT", "n2d2::elements<y_plane>(out)")
    assert [str(each) for each in code.calls] == [f"n2d2::{spelled};"] and code.headers == ("n2d2/array_matmul.hpp",)
    (constants,) = [struct.constants for struct in code.structs if isinstance(struct, LayerConfig)]
    counts = function == "Average"
    wanted = {
        "Batch": 2,
        "Outputs": outputs,
        "Groups": 2 if function == "Conv" else 1,
        "ColumnMajor": function == "MaxIndex",
        "Depth": 2 if function == "Conv" else 1,
    }
    for axis, size, output, kernel, stride, pad, dilation, after in (
        ("D", 3, 2, 2, 1, 1, 1, 1),
        ("H", 6, 3, 3, 2, 0, 4, 2),
        ("W", 7, 4, 1, 5, 2, 3, 3),
    ):
        wanted |= {f"Input{axis}": size, f"Output{axis}": output, f"Kernel{axis}": kernel, f"Stride{axis}": stride}
        wanted |= {f"Pad{axis}": pad, f"Dilation{axis}": dilation}
        wanted |= {f"First{axis}": -pad if counts else 0, f"Last{axis}": size + after if counts else size}
    assert {name: int(value) for name, value in constants.items()} == {name: int(value) for name, value in wanted.items()}


TAKEN = {
    "runs": (((0, 12), (1, 4, 7)), 1, "n2d2::Axis<2, 12, 0, 0, n2d2::Axis<3, 3, 0, 0, n2d2::AxisEnd > >", []),
    "backwards": (((20, 10, 0), (3, 2)), 23, "n2d2::Axis<3, -10, 0, 0, n2d2::Axis<2, -1, 0, 0, n2d2::AxisEnd > >", []),
    "merged": (((0, 12), (0, 4, 8), (0, 1, 2, 3)), 0, "n2d2::Axis<24, 1, 0, 0, n2d2::AxisEnd >", []),
    "one element": (((5,), (7,)), 12, "n2d2::AxisEnd", []),
    "two elements are a run": (((9, 4),), 9, "n2d2::Axis<2, -5, 0, 0, n2d2::AxisEnd >", []),
    "three that are none": (((9, 4, 5),), 0, "n2d2::TakeAxis<3, y_offsets0, n2d2::AxisEnd >", [[9, 4, 5]]),
    "filled": (((0, -1),), 0, "n2d2::TakeAxis<2, y_offsets0, n2d2::AxisEnd >", [[0, -1]]),
    "filled alone": (((-1,), (0, 1)), 0, "n2d2::TakeAxis<1, y_offsets0, n2d2::Axis<2, 1, 0, 0, n2d2::AxisEnd > >", [[-1]]),
    "a table between runs": (
        ((3, 15), (7, 3, 5, 1), (2, 3)),
        5,
        "n2d2::Axis<2, 12, 0, 0, n2d2::TakeAxis<4, y_offsets1, n2d2::Axis<2, 1, 0, 0, n2d2::AxisEnd > > >",
        [[7, 3, 5, 1]],
    ),
    "repeated": (((0, 0, 0), (1, 2)), 1, "n2d2::Axis<3, 0, 0, 0, n2d2::Axis<2, 1, 0, 0, n2d2::AxisEnd > >", []),
}


@pytest.mark.parametrize("name", TAKEN)
def test_orders_are_runs_and_tables(name):
    offsets, first, axes, tables = TAKEN[name]
    op = ArrayIndexSelect(30, offsets, 2.5)
    code = code_of(op, [(1, 30)], (1, op.output_size()), NumType(8, scale=0.5))
    (config,) = [struct for struct in code.structs if isinstance(struct, LayerConfig)]
    assert (str(config.types["Axes"]), config.constants["First"]) == (axes, first)
    assert [array.values.tolist() for array in code.arrays] == tables
    assert all(array.ctype == "std::int32_t" for array in code.arrays)
    assert [str(call) for call in code.calls] == ["n2d2::arrayIndexSelect<y_config>(in0, out);"]


@pytest.mark.parametrize(
    ("kind", "stored"),
    [(FLOAT32, 2.5), (NumType(8, scale=0.5), 5), (NumType(8, scale=0.5, zero_point=-3), 2), (plain_type("int32"), 2)],
)
def test_the_fill_value_as_its_type_stores_it(kind, stored):
    _, functions, _ = lowered(ArrayIndexSelect(3, ((0, -1),), 2.5), [(1, 3)], (1, 2), kind)
    assert functions == {"y_fill": {"value": stored}}
