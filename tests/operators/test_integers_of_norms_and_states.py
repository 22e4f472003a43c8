"""The integers of normalisations (`n2d2py.operators.arrays.norm`) and recurrent layers (`n2d2py.operators.arrays.recurrent`), by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Custom, Normalized
from n2d2py.operators.arrays.norm import ArrayNorm, ArraySoftmax
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.quant.contract import LayerTypes, quantize_layer, refused
from n2d2py.quant.options import QuantOptions

GAINS, SHIFTS = np.array([0.3, -1.7, 0.0, 2.5]), np.array([0.5, -0.25, 1.0, 0.125])


def normalized(
    op: ArrayNorm, bits: int = 8, scale: float = 1.0, x_scale: float = 0.5, **params
) -> tuple[Normalized, QuantNode]:
    types = LayerTypes([NumType(8, scale=x_scale)], NumType(bits, scale=scale), QuantOptions(bits=bits))
    made = quantize_layer(Node("y", op, ["x"], ["y"], params), types)
    return made.form_as(Normalized), made


@pytest.mark.parametrize(
    ("bits", "scale", "fraction", "unit", "shift", "bound"),
    [
        (8, 1.0, 12, 2.0**-24, 2**24, 8194 * 10240 + 2**21),
        (8, 2.0, 12, 2.0**-25, 2**24, 8194 * 10240 + 2**21),
        (16, 1.0, 16, 2.0**-28, 2**28, 131074 * 10240 + 2**25),
        (16, 0.25, 16, 2.0**-26, 2**28, 131074 * 10240 + 2**25),
    ],
)
def test_gains_have_14_bits(bits, scale, fraction, unit, shift, bound):
    """Those of 2.5 at most: in units of 1 / 4096."""
    form, made = normalized(ArrayNorm(3, 4, 1e-3), bits, scale, gain=GAINS, shift=SHIFTS)
    assert form.gains.tolist() == [1229, -6963, 0, 10240] and form.gains.dtype == np.int16
    assert form.offsets.tolist() == [shift // 2, -shift // 4, shift, shift // 8] and form.offsets.dtype == np.int32
    assert form.fraction.tolist() == [fraction] and made.bound == bound
    assert made.rescaling.effective().tolist() == [unit]


@pytest.mark.parametrize(("inner", "gain"), [(255, 10923), (256, 5461), (1023, 5461), (1024, 2731), (4096, 1365)])
def test_longer_lines_leave_fewer_bits_for_gains(inner, gain):
    """A third: in 14 bits and fewer, so that sums of 32 bits hold its product with the square root of the length."""
    form, _ = normalized(ArrayNorm(2, inner, 1e-3), gain=np.full(inner, 1 / 3), shift=np.zeros(inner))
    assert set(form.gains.tolist()) == {gain}
    wide, _ = normalized(ArrayNorm(2, inner, 1e-3), 16, gain=np.full(inner, 1 / 3), shift=np.zeros(inner))
    assert set(wide.gains.tolist()) == {10923}


def test_a_norm_without_gains_has_one():
    form, made = normalized(ArrayNorm(3, 4, 1e-3), scale=0.5)
    assert (form.gains.tolist(), form.offsets.tolist(), made.bound) == ([1], [0], 8194)
    assert made.rescaling.effective().tolist() == [2.0**-11]


@pytest.mark.parametrize(
    ("inner", "epsilon", "scale", "stored"),
    [
        (4, 1e-3, 0.01, 160),
        (8, 1e-3, 0.5, 1),
        (8, 0.01, 0.5, 3),
        (8, 1e-9, 0.5, 1),
        (4, 0.25, 2.0, 1),
        (16, 2.0**51, 1.0, 2**59),
        (16, 2.0**53, 1.0, 2**60),
        (16, 2.0**90, 1.0, 2**60),
    ],
)
def test_epsilon_in_units_of_the_sums(inner, epsilon, scale, stored):
    """Of squared sums over a line: the square of its length times epsilon, by the square of the scale; 1 to 2^60."""
    form, _ = normalized(ArrayNorm(3, inner, epsilon), x_scale=scale)
    assert form.epsilon.tolist() == [stored] and form.epsilon.dtype == np.int64


@pytest.mark.parametrize(
    ("offset", "kind"), [(2**31 - 1, np.int32), (2**31, np.int64), (-(2**31), np.int64), (2**53 - 1, np.int64), (2**53, None)]
)
def test_gains_of_zero_leave_the_shifts(offset, kind):
    """In units of 2^-26, the least that a gain of 14 bits has."""
    params = {"gain": np.zeros(4), "shift": np.array([0.0, offset * 2.0**-12, 0.0, 2.0**-12])}
    if kind is None:
        with pytest.raises(N2D2Error, match="a normalisation whose bias is beyond 53 bits of its gains"):
            normalized(ArrayNorm(3, 4, 1e-3), **params)
        return
    form, made = normalized(ArrayNorm(3, 4, 1e-3), **params)
    factor = made.rescaling.effective()[0] * 2.0**12
    assert form.gains.tolist() == [0, 0, 0, 0]
    assert (form.offsets * factor).tolist() == [0, offset, 0, 1] and form.offsets.dtype == kind
    assert made.bound * factor == abs(offset)


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (ArrayNorm(2, 4, 1e-3, part="mean"), "the mean of a normalisation"),
        (ArrayNorm(2, 4, 1e-3, part="inverse"), "the inverse of a normalisation"),
        (ArrayNorm(2, 16384, 1e-3), None),
        (ArrayNorm(2, 16385, 1e-3), "a normalisation of more than 16384 elements"),
    ],
)
def test_norms_that_have_integers(op, reason):
    assert refused(Node("y", op, ["x"], ["y"])) == reason


@pytest.mark.parametrize(("scale", "numerator"), [(1 / 256, 2**40), (1 / 127, 127 * 2**32), (3.0, 1431655765)])
@pytest.mark.parametrize("rescaling", ["Floating-point", "Fixed-point16"])
def test_the_numerator_of_a_softmax(scale, numerator, rescaling):
    """2^32 by the scale of the shares; in floating point their scale itself."""
    options = QuantOptions(rescaling=rescaling)
    types = LayerTypes([NumType(8, scale=0.1)], NumType(8, scale=scale), options)
    made: Any = quantize_layer(Node("y", ArraySoftmax(2, 3, 4), ["x"], ["y"]), types)
    assert made.form.numerator.tolist() == [numerator]
    if rescaling == "Floating-point":
        np.testing.assert_allclose(made.rescale.effective(), [1 / scale], rtol=1e-6)
    else:
        assert made.rescale is None


# ---- recurrent layers ----------------------------------------------------------------------------
def recurrent(
    op: ArrayRecurrent, kinds: list[NumType], scale: float = 1 / 128, bits: int = 8, **given
) -> tuple[dict[str, np.ndarray], QuantNode]:
    """The form of a layer whose parameters are 0 but for `given`."""
    gates = 4 if op.cell == "LSTM" else 3
    sizes = {
        "input_weights": (gates * op.hidden, op.size),
        "recurrent_weights": (gates * op.hidden, op.hidden),
        "gate_bias": (gates * op.hidden,),
        "recurrent_bias": (op.hidden,),
        "initial_h": (op.hidden,),
        "initial_c": (op.hidden,),
    }
    params = {role: given.get(role, np.zeros(size)) for role, size in sizes.items() if role not in op.given}
    types = LayerTypes(kinds, NumType(bits, scale=scale), QuantOptions(bits=bits))
    made = quantize_layer(Node("y", op, [f"x{index}" for index in range(len(kinds))], ["y"], params), types)
    return made.form_as(Custom).by_role, made


ONE = ArrayRecurrent("LSTM", 1, 2, 1)


def rows(*values: float) -> np.ndarray:
    """Weights of which the first row is given, the others are 0."""
    made = np.zeros((4, len(values)))
    made[0] = values
    return made


@pytest.mark.parametrize(("bits", "top", "kind"), [(8, 127, np.int8), (16, 32767, np.int16)])
def test_weights_of_a_row_have_one_scale(bits, top, kind):
    """The largest of each row is the largest integer; a row of zeros has scale 1."""
    weights, states = np.array([[top, -2.0], [1.0, 0.5], [0.0, 0.0], [-0.25, 0.25]]), np.array([[0.5], [0.0], [2.0], [-1.0]])
    form, _ = recurrent(ONE, [NumType(bits, scale=2.0**-12)], bits=bits, input_weights=weights, recurrent_weights=states)
    half = round(0.5 * top)
    assert form["input_weights"].tolist() == [[top, -2], [top, half], [0, 0], [-top, top]]
    assert form["recurrent_weights"].tolist() == [[top], [0], [top], [-top]]
    assert form["input_weights"].dtype == form["recurrent_weights"].dtype == kind
    step = 2.0 ** int(form["shift"][0])
    scales = np.array([1.0, 1 / top, 1 / (top * 2.0**-12), 0.25 / top])
    assert form["input_multipliers"].tolist() == np.rint(scales * 2.0**-12 * 4096 * step).tolist()
    assert form["recurrent_multipliers"].tolist() == np.rint(np.array([0.5, top, 2.0, 1.0]) / top / 8 * step).tolist()
    assert form["reaches"].tolist() == [max(top + 2, top + half, 2 * top) * top, top * 32767]


@pytest.mark.parametrize(
    ("scale", "shift"),
    [((2**31 - 1) * 2.0**-42, 29), ((2**31 - 2) * 2.0**-42, 30), (2.0**-12, 30), (2.0**-11, 29), (2.0**-13, 31)],
)
def test_multipliers_have_31_bits(scale, shift):
    """Weights of 127 have scale 1, which the scale of the input and 2^12 are multiplied by."""
    form, _ = recurrent(ONE, [NumType(8, scale=scale)], input_weights=np.full((4, 2), 127.0))
    assert form["shift"].tolist() == [shift] and form["shift"].dtype == np.int32
    assert form["input_multipliers"].tolist() == [round(scale * 2.0 ** (12 + shift))] * 4


@pytest.mark.parametrize(
    ("bias", "shift"),
    [
        (2.0**23, 25),
        (2.0**24, 24),
        (2.0**24 - 1, 25),
        (2.0**25, 23),
        (2.0**39, 9),
        (2.0**40, 8),
        (2.0**41 - 2.0**20, 8),
        (2.0**41, None),
    ],
)
@pytest.mark.parametrize("part", ["gate_bias", "recurrent_bias"])
def test_sums_stay_below_2_to_the_61(bias, shift, part):
    """A bias has 12 bits more behind the point; layers whose sums leave less than 8 bits are refused."""
    kind, count = NumType(8, scale=2.0**-30), 4 if part == "gate_bias" else 1
    values: Any = np.zeros(count)
    values[-1] = -bias
    if shift is None:
        with pytest.raises(N2D2Error, match="a recurrent layer whose weights or biases are too large"):
            recurrent(ONE, [kind], **{part: values})
        return
    form, _ = recurrent(ONE, [kind], **{part: values})
    assert form["shift"].tolist() == [shift]
    assert form[part].tolist()[-1] == -bias * 2.0 ** (12 + shift)


def test_no_multiplier_is_shifted_by_more_than_46():
    states = np.full((4, 1), 127 * 2.0**-40)
    weights = np.full((4, 2), 127 * 2.0**-40)
    form, _ = recurrent(ONE, [NumType(8, scale=2.0**-20)], input_weights=weights, recurrent_weights=states)
    assert form["shift"].tolist() == [46]
    assert form["recurrent_multipliers"].tolist() == [8] * 4


@pytest.mark.parametrize(
    ("steps", "start", "fraction"),
    [
        (1, (0,), 15),
        (2, (0,), 14),
        (3, (0,), 13),
        (4, (0,), 13),
        (5, (0,), 12),
        (8, (0,), 12),
        (9, (0,), 11),
        (17, (0,), 10),
        (1, (0.5, -3.0), 13),
        (2, (-3.0, 0.5), 12),
        (1, (1.0, -1.0), 14),
        (3, (13.0, 15.0), 10),
    ],
)
def test_a_cell_grows_by_one_at_each_step(steps, start, fraction):
    """16 bits hold its sign, its range and 8 to 15 bits behind the point."""
    hidden = len(start)
    op = ArrayRecurrent("LSTM", steps, 2, hidden, part="cell")
    form, made = recurrent(op, [NumType(8, scale=0.01)], scale=0.25, initial_c=np.array(start, np.float64))
    assert form["cell_fraction"].tolist() == [fraction]
    assert form["initial_c"].tolist() == [min(max(round(c * 2**fraction), -32767), 32767) for c in start]
    assert made.bound == 32767
    np.testing.assert_allclose(made.rescaling.effective(), 4 * 2.0**-fraction, rtol=1e-4)


def test_hidden_states_have_15_bits():
    op = ArrayRecurrent("LSTM", 1, 2, 4)
    form, made = recurrent(op, [NumType(8, scale=0.01)], scale=1 / 64, initial_h=np.array([1.0, -1.0, 0.5, 2.0**-15]))
    assert form["initial_h"].tolist() == [32767, -32767, 16384, 1] and form["initial_h"].dtype == np.int16
    np.testing.assert_allclose(made.rescaling.effective(), 2.0**-9, rtol=1e-4)


@pytest.mark.parametrize(
    ("scale", "stored"),
    [
        (2.0**-7, (2**30, 22)),
        (3 * 2.0**-9, (192 << 22, 22)),
        (2.0**-8, (2**30, 23)),
        (2.0**15, (2**30, 7)),
        (2.0**14, (2**30, 8)),
        (2.0**-40, (2**21, 46)),
        (2.0**-32, (2**29, 46)),
        (2.0**-31, (2**30, 46)),
    ],
)
def test_states_that_are_given_are_brought_to_15_bits(scale, stored):
    op = ArrayRecurrent("GRU", 1, 2, 3, given=("initial_h",))
    form, _ = recurrent(op, [NumType(8, scale=0.01), NumType(8, scale=scale)])
    assert form["given_h"].tolist() == list(stored) and "initial_h" not in form


@pytest.mark.parametrize(
    ("scale", "fraction"),
    [(0.001, 15), (1 / 127, 15), (1.5 / 127, 14), (3.9 / 127, 13), (7 / 127, 12), (15.0 / 127, 11), (1.0, 8)],
)
@pytest.mark.parametrize("given", [("initial_h", "initial_c"), ("initial_c",)])
def test_a_cell_that_is_given_has_the_bits_of_its_range(scale, fraction, given):
    """What it grows by is not added."""
    op = ArrayRecurrent("LSTM", 1, 2, 3, given=given)
    kinds = [NumType(8, scale=0.01), *(NumType(8, scale=scale if role == "initial_c" else 0.5 / 127) for role in given)]
    form, _ = recurrent(op, kinds)
    assert form["cell_fraction"].tolist() == [fraction]
    factor, shift = form["given_c"].tolist()
    assert factor / 2.0**shift == pytest.approx(scale * 2**fraction, rel=1e-6) and 2**29 < factor <= 2**30
