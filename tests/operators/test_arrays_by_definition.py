"""Operators on arrays by what NumPy says: where nothing but their sizes is told, in the type of their input, with constants.

Of `n2d2py.operators.arrays` and `n2d2py.operators.arrays.windows`, `n2d2py.operators.arrays.gather`,
`n2d2py.operators.index_select`, `n2d2py.operators.arrays.windows`, `n2d2py.operators.arrays.map`,
`n2d2py.operators.arrays.matmul`, `n2d2py.operators.normalize`, `n2d2py.operators.arrays.recurrent`, `n2d2py.operators.arrays.reduce`.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from support.ops import ArrayGather, ArrayMap, IndexSelect
from support.tables import every

from n2d2py.arithmetic import NumType, plain_type
from n2d2py.graph import Node

rng = np.random.default_rng(11)
X = rng.normal(size=(3, 24))
LINES = np.array([[0, 3], [1, -1], [2, 2]], np.int64)


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
