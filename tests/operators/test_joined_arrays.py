"""Arrays that are joined: which get one type, which have integers, how integers are rescaled (`n2d2py.operators.arrays.concat`)."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Node
from n2d2py.operators.arrays.concat import ArrayConcat, joins
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.concat import Concat
from n2d2py.quant.contract import LayerTypes, quantize_layer, refused
from n2d2py.quant.options import QuantOptions

REALS, WHOLE = np.ones(4, np.float32), np.ones(4, np.int64)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        (ArrayConcat(2, (3, 2), (0, 1)), True),
        (ArrayConcat(2, (3, 2), (0, 1), alike=True), False),
        (ArrayConcat(2, (3, 2), (0, 1), "int32"), False),
        (ArrayConcat(2, (3, 2), (0, -1)), False),
        (ArrayConcat(2, (3, 2), (1, 0)), True),
        (ArrayConcat(2, (3, 2, 1), (0, 1, -1)), False),
        (Concat(), True),
        (ArrayMap("Add", (2,), ((2,), (2,)), (0, 1)), False),
    ],
)
def test_joins_of_real_tensors_get_one_type(op, wanted):
    assert bool(joins(Node("y", op, ["a", "b"], ["y"]))) is wanted


@pytest.mark.parametrize(
    ("slots", "result", "constants", "reason"),
    [
        ((0, 1), "", {}, None),
        ((0, 1), "int32", {}, "arrays of integers joined"),
        ((0, -1), "", {1: REALS}, None),
        ((-1, 0), "", {0: REALS}, None),
        ((0, -1), "", {1: WHOLE}, "arrays of integers joined"),
        ((-1, 0), "", {0: WHOLE}, "arrays of integers joined"),
        ((-1, 0, -1), "", {0: REALS, 2: WHOLE}, "arrays of integers joined"),
        ((-1, 0, -1), "", {0: REALS, 2: REALS}, None),
        ((0, -1), "int32", {1: REALS}, "arrays of integers joined"),
    ],
)
def test_arrays_of_integers_have_no_integers(slots, result, constants, reason):
    op = ArrayConcat(2, (2,) * len(slots), slots, result)
    params = {f"operand{index}": values for index, values in constants.items()}
    assert refused(Node("y", op, ["a", "b"][: len(slots) - len(constants)], ["y"], params)) == reason


A, B, WIDE = NumType(8, scale=0.5), NumType(8, scale=0.125), NumType(8, False, scale=0.25, zero_point=40)


@pytest.mark.parametrize(
    ("inputs", "output", "factors", "bound"),
    [
        ((A, A), A, None, 0),
        ((A, B), A, (1, 0.25), 127),
        ((B, A), A, (0.25, 1), 127),
        ((B, B), A, (0.25, 0.25), 127),
        ((A, WIDE), B, (4, 2), 215),
        ((WIDE, A), B, (2, 4), 215),
    ],
)
def test_inputs_of_other_types_are_rescaled(inputs, output, factors, bound):
    """The bound is the largest distance of an integer to its zero point."""
    node = Node("y", ArrayConcat(2, (3, 2), (0, 1)), ["a", "b"], ["y"])
    made = quantize_layer(node, LayerTypes(list(inputs), output, QuantOptions()))
    if factors is None:
        assert made.rescale is None
    else:
        assert made.bound == bound
        np.testing.assert_allclose(made.rescaling.effective(), factors, rtol=1e-6)


@pytest.mark.parametrize("same", [True, False])
def test_constants_are_stored_in_the_type_of_the_output(same):
    """Then no input is copied as it is, not even one of that type."""
    op = ArrayConcat(2, (3, 2), (0, -1))
    values = np.array([0.5, -1.25, 100.0, 3.0], np.float32)
    made = quantize_layer(Node("y", op, ["a"], ["y"], {"operand1": values}), LayerTypes([A if same else B], A, QuantOptions()))
    assert made.params["operand1"].tolist() == [1, -2, 127, 6]
    np.testing.assert_allclose(made.rescaling.effective(), [1 if same else 0.25], rtol=1e-6)
