"""Operators on arrays by what NumPy says: where nothing but their sizes is told, in the type of their input, with constants.

Of `n2d2py.operators.arrays` and `n2d2py.operators.arrays.conv_pool`, `n2d2py.operators.arrays.gather`,
`n2d2py.operators.index_select`, `n2d2py.operators.arrays.interpolate`, `n2d2py.operators.arrays.map`,
`n2d2py.operators.arrays.matmul`, `n2d2py.operators.normalize`, `n2d2py.operators.arrays.recurrent`, `n2d2py.operators.arrays.reduce`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType, plain_type
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.operators.arrays.gather import ArrayGather, ArrayScatter
from n2d2py.operators.arrays.interpolate import ArrayInterpolate
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.matmul import ArrayMatMul
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.arrays.reduce import ArrayCumSum, ArrayReduce
from n2d2py.operators.arrays.topk import ArrayTopK
from n2d2py.operators.concat import Concat
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.softmax import Softmax

rng = np.random.default_rng(11)
X = rng.normal(size=(3, 24))
CUBE = X.reshape(3, 2, 4, 3)
POOL = ((1, 2, 1, 4, 3), 2, (1, 3, 2), (1, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1))
WEIGHTS = rng.normal(size=(3, 16))
WINDOWS = np.lib.stride_tricks.sliding_window_view(CUBE, (2, 2), (2, 3))  # (3, 2, 3, 2, 2, 2)
CONVOLVED = np.einsum("nchwij,nocij->nohw", WINDOWS, WEIGHTS.reshape(3, 2, 2, 2, 2))
LINES = np.array([[0, 3], [1, -1], [2, 2]], np.int64)


def spread(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5)


def powers(x: np.ndarray) -> np.ndarray:
    made = np.exp(x - x.max(2, keepdims=True))
    return made / made.sum(2, keepdims=True)


# operator, inputs, result
PLAIN: dict[str, tuple[Any, list[np.ndarray], np.ndarray]] = {
    "running sums": (ArrayCumSum(2, 4, 3), [X], np.cumsum(CUBE, 2)),
    "sums": (ArrayReduce("Sum", (2, 4, 3), (1,)), [X], CUBE.sum(2)),
    "largest": (ArrayTopK(2, 4, 3, 4), [X], np.argsort(-CUBE, 2)),
    "norm": (Normalize(4, 0.5), [X], spread(X.reshape(3, 6, 4))),
    "softmax": (Softmax(4, inner=3), [X], powers(CUBE)),
    "product": (ArrayMatMul((2, 4, 3), (1, 3, 5)), [X, WEIGHTS[:, :15]], CUBE @ WEIGHTS[:, :15].reshape(3, 1, 3, 5)),
    "lines": (ArrayGather(2, 4, 3, 2), [X, LINES], np.stack([CUBE[n][:, LINES[n]] for n in range(3)])),
    "convolution": (ArrayConvPool("Conv", *POOL), [X, WEIGHTS], CONVOLVED),
    "mean": (ArrayConvPool("Average", *POOL, slots=(0,)), [X], WINDOWS.mean((-2, -1))),
    "norm of windows": (ArrayConvPool("Lp", *POOL, slots=(0,)), [X], np.sqrt(np.square(WINDOWS).sum((-2, -1)))),
    "order": (
        IndexSelect(((0, 13, -1), (2, 5))),
        [X],
        np.stack([X[:, 2], X[:, 5], X[:, 15], X[:, 18], 0 * X[:, 0], 0 * X[:, 0]], 1),
    ),
    "join": (Concat(1, 6), [X], X),
    "function": (ArrayMap("Abs", (2, 4, 3), ((2, 4, 3),)), [X], np.abs(X)),
    "written": (
        ArrayScatter(8, 3, 1),
        [X, LINES[:, :1], WEIGHTS[:, :3]],
        np.stack(
            [
                np.r_[
                    np.delete(CUBE[n].reshape(8, 3), LINES[n, 0], 0)[: LINES[n, 0]].ravel(),
                    WEIGHTS[n, :3],
                    CUBE[n].reshape(8, 3)[LINES[n, 0] + 1 :].ravel(),
                ]
                for n in range(3)
            ]
        ),
    ),
    "resampled": (
        ArrayInterpolate(2, 4, 3, ((0, 1), (3, 2)), ((0.25, 0.75), (2.0, -1.0))),
        [X],
        np.stack([0.25 * CUBE[:, :, 0] + 0.75 * CUBE[:, :, 1], 2 * CUBE[:, :, 3] - CUBE[:, :, 2]], 2),
    ),
}


@every("kind", [np.float32, np.float64])
@every("name", PLAIN)
def test_where_only_sizes_are_told(name, kind):
    """Real numbers keep their width."""
    op, inputs, wanted = PLAIN[name]
    inputs = [x.astype(kind) if x.dtype.kind == "f" else x for x in inputs]
    names = [f"x{index}" for index in range(len(inputs))]
    node = Node("y", op, names, ["y"])
    (found,) = op.run(inputs, node)
    assert found.shape == (3, wanted.size // 3)
    assert found.dtype == (np.int64 if name == "largest" else kind)
    tolerance = 1e-5 if kind == np.float32 else 1e-12
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance)
    assert op.output_shapes([(1, x.shape[1]) for x in inputs], node) == [(1, wanted.size // 3)]
    assert op.output_kinds(["" if x.dtype.kind == "f" else "int64" for x in inputs], node) == [
        "int64" if name == "largest" else ""
    ]


CONSTANT = rng.uniform(0.5, 2, 3).astype(np.float32)


@every(("function", "by"), [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide), ("Pow", np.power)])
@every("first", [False, True])
def test_constants_have_the_type_of_the_input(function, by, first):
    """So a result of 64 bits is exact in 64 bits."""
    x = np.abs(X[:, :6]) + 0.5
    shapes, slots = ((2, 3), (1, 3)), (0, -1)
    op = ArrayMap(function, (2, 3), shapes[::-1] if first else shapes, slots[::-1] if first else slots)
    node = Node("y", op, ["x"], ["y"], {f"operand{0 if first else 1}": CONSTANT})
    (found,) = op.run([x], node)
    operands = (CONSTANT.astype(np.float64), x.reshape(3, 2, 3)) if first else (x.reshape(3, 2, 3), CONSTANT.astype(np.float64))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.reshape(3, 2, 3), by(*operands), rtol=1e-12)
    (short,) = op.run([x.astype(np.float32)], node)
    assert short.dtype == np.float32


def test_truth_values_in_front_do_not_say_what_real_numbers_are():
    condition, x = X[:, :6] > 0, X[:, 6:12]
    op = ArrayMap("Where", (2, 3), ((2, 3), (1, 3), (2, 3)), (0, -1, 1))
    (found,) = op.run([condition, x], Node("y", op, ["c", "x"], ["y"], {"operand1": CONSTANT}))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(
        found.reshape(3, 2, 3), np.where(condition.reshape(3, 2, 3), CONSTANT.astype(np.float64), x.reshape(3, 2, 3))
    )


def test_elements_of_a_constant_are_real_numbers_of_32_bits():
    op = ArrayGather(1, 3, 1, 2, slots=(-1, 0))
    (found,) = op.run([LINES], Node("y", op, ["i"], ["y"], {"operand0": CONSTANT}))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, CONSTANT[np.clip(np.where(LINES < 0, LINES + 3, LINES), 0, 2)])


SHAPES = [
    (ArrayMap("Abs", (2, 4, 3), ((2, 4, 3),)), [(1, 24, 1, 1)], 24, "24x1x1"),
    (ArrayMap("Abs", (2, 4, 3), ((2, 4, 3),)), [(1, 23)], 24, "23"),
    (ArrayMatMul((2, 4, 3), (1, 3, 5)), [(1, 24), (1, 15, 1)], 15, "15x1"),
    (ArrayMatMul((2, 4, 3), (1, 3, 5)), [(1, 24), (1, 14)], 15, "14"),
    (ArrayMatMul((2, 4, 3), (1, 3, 5), (-1, 0)), [(1, 24)], 15, "24"),
    (ArrayRecurrent("GRU", 5, 7, 11, given=("initial_h",)), [(1, 35), (1, 12)], 11, "12"),
]


@every(("op", "shapes", "size", "given"), SHAPES)
def test_inputs_are_vectors_of_their_size(op, shapes, size, given):
    names = [f"x{index}" for index in range(len(shapes))]
    with pytest.raises(N2D2Error) as caught:
        op.output_shapes(shapes, Node("y", op, names, ["y"]))
    assert caught.value.code == "E208"
    assert caught.value.what.startswith(f"{op.kind} 'y' ") and caught.value.what.endswith(f" {given}")


QUOTIENTS = [
    (7, 2, 3),
    (-7, 2, -3),
    (7, -2, -3),
    (-7, -2, 3),
    (6, 3, 2),
    (-6, 3, -2),
    (5, 0, 0),
    (-5, 0, 0),
    (0, 4, 0),
    (1, 3, 0),
    (-1, 3, 0),
]


def test_quotients_of_whole_numbers_are_cut():
    """Towards 0; those by 0 are 0."""
    a, b, wanted = (np.array(column, np.int32)[None] for column in zip(*QUOTIENTS, strict=True))
    op = ArrayMap("Div", (len(QUOTIENTS),), ((len(QUOTIENTS),),) * 2, (0, 1), "int32")
    (found,) = op.run([a, b], Node("y", op, ["a", "b"], ["y"]))
    assert found.tolist() == wanted.tolist() and found.dtype == np.int32


@every(
    ("function", "kind", "value", "by", "wanted"),
    [
        ("ShiftLeft", "uint8", 3, 7, 128),
        ("ShiftLeft", "uint8", 3, 8, 0),
        ("ShiftLeft", "uint8", 3, 0, 3),
        ("ShiftLeft", "int8", 3, -1, 0),
        ("ShiftRight", "uint8", 200, 7, 1),
        ("ShiftRight", "uint8", 200, 8, 0),
        ("ShiftRight", "int8", -100, 7, -1),
        ("ShiftRight", "int8", -100, 8, -1),
        ("ShiftRight", "int8", -100, 2, -25),
        ("ShiftRight", "int8", 100, 8, 0),
        ("ShiftRight", "int8", 0, 9, 0),
        ("ShiftRight", "int8", -100, -1, -1),
        ("ShiftLeft", "int8", -100, 8, 0),
        ("ShiftRight", "uint32", 2**31, 31, 1),
        ("ShiftRight", "uint32", 2**31, 32, 0),
        ("ShiftLeft", "uint16", 1, 15, 32768),
    ],
)
def test_shifts_beyond_the_bits(function, kind, value, by, wanted):
    """Nothing is left, of a negative number shifted to the right its sign."""
    op = ArrayMap(function, (1,), ((1,), (1,)), (0, 1), kind)
    (found,) = op.run([np.array([[value]], kind), np.array([[by]], kind)], Node("y", op, ["a", "b"], ["y"]))
    assert found.tolist() == [[wanted]] and found.dtype == np.dtype(kind)


@every(
    ("kind", "value", "stored"),
    [
        (plain_type("int32"), 2.75, 2),
        (plain_type("bool"), 1.0, True),
        (NumType(32, is_float=True), 2.75, 2.75),
        (NumType(8, scale=0.5), 2.75, 6),
        (NumType(8, scale=0.5), -2.25, -4),
        (NumType(8, False, scale=0.5, zero_point=10), -2.0, 6),
        (NumType(8, scale=0.5), 1000.0, 127),
    ],
)
def test_fill_values_of_each_type(kind, value, stored):
    op = IndexSelect(((1, -1, 0),), value)
    graph: Any = SimpleNamespace(type=lambda _: kind)
    x = np.array([[3, 1]], kind.dtype)
    (found,) = op.run_integer([x], Node("y", op, ["x"], ["y"]), graph)
    assert found.dtype == kind.dtype and found.tolist() == [[x[0, 1], stored, x[0, 0]]]
    assert op.stored_fill(kind) == stored
