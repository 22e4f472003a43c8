"""Constants that a model computes are counted before they are made: refused exactly where they have more elements than there is room."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.folding import evaluate

F = np.float32
X = np.arange(24, dtype=F).reshape(2, 3, 4)


def counted(*values: np.ndarray | None, **attributes) -> tuple[list[np.ndarray | None], dict]:
    return list(values), attributes


CASES = {
    "ConstantOfShape": counted(np.array([3, 1, 5])),
    "Expand": counted(np.ones((1, 3), F), np.array([4, 3])),
    "Concat": counted(X, X[:, :1], axis=1),
    "Gather": counted(X, np.array([[0, 1, 1], [1, 0, 0]]), axis=0),
    "Tile": counted(X, np.array([2, 1, 3])),
    "Range": counted(np.array(3), np.array(23), np.array(4)),
    "Pad": counted(X, np.array([0, 1, 2, 3, 0, 1])),
    "OneHot": counted(np.array([1, 0, 2, 2]), np.array(7), np.array([0, 1], F), axis=-1),
    **{
        operator: counted(X[:, :, :1], X[:1] + 1)
        for operator in ("Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater", "Pow")
    },
    "Where": counted(X[:1] > 3, X[:, :1, :1], X[:1, :, :1]),
    "MatMul": counted(X, np.ones((4, 5), F)),
    "Resize": counted(X.reshape(1, 2, 3, 4), None, np.array([1, 1, 2, 3], F), mode="nearest"),
}


@pytest.mark.parametrize("operator", CASES)
def test_room_for_the_elements_of_a_result(operator):
    values, attributes = CASES[operator]
    node = helper.make_node(
        operator, [f"x{at}" if value is not None else "" for at, value in enumerate(values)], ["y"], **attributes
    )
    made = evaluate(node, values, 17)[0].size
    assert evaluate(node, values, 17, made)[0].size == made
    with pytest.raises(Unsupported, match=f"its constant value would have {made:,} elements"):
        evaluate(node, values, 17, made - 1)


@pytest.mark.parametrize("columns", [1, 2])
def test_gathered_parts_are_counted_from_above(columns):
    """A part for each index."""
    indices = np.zeros((5, columns), np.int64)
    node = helper.make_node("GatherND", ["x", "i"], ["y"])
    most = indices.size * 3 * 4
    assert evaluate(node, [X, indices], 17, most)[0].size == most // (1 if columns == 1 else 2 * 3)
    with pytest.raises(Unsupported, match=f"{most:,} elements"):
        evaluate(node, [X, indices], 17, most - 1)


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Expand", "Tile"])
def test_an_axis_without_elements_counts_as_one(operator):
    """So that no other axis is unlimited beside it."""
    values = {
        "ConstantOfShape": [np.array([0, 6])],
        "Expand": [np.ones((1, 1), F), np.array([0, 6])],
        "Tile": [np.ones((1, 1), F), np.array([0, 6])],
    }[operator]
    node = helper.make_node(operator, [f"x{at}" for at in range(len(values))], ["y"])
    with pytest.raises(Unsupported, match="6 elements"):
        evaluate(node, values, 17, 5)
    assert evaluate(node, values, 17, 6)[0].size == 0


def test_a_resize_without_sizes_is_not_counted():
    """The evaluation says what it lacks."""
    with pytest.raises(Unsupported) as caught:
        evaluate(helper.make_node("Resize", ["x"], ["y"]), [X * 100], 17, 30)
    assert "elements" not in str(caught.value)
