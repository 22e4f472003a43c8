"""The integers of normalisations (`n2d2py.operators.normalize`) and recurrent layers (`n2d2py.operators.arrays.recurrent`), by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Custom, Normalized
from n2d2py.operators.arrays.recurrent import ArrayRecurrent
from n2d2py.operators.normalize import Normalize
from n2d2py.quant.contract import LayerTypes, quantize_layer, refused
from n2d2py.quant.options import QuantOptions

GAINS, SHIFTS = np.array([0.3, -1.7, 0.0, 2.5]), np.array([0.5, -0.25, 1.0, 0.125])


def normalized(
    op: Normalize, bits: int = 8, scale: float = 1.0, x_scale: float = 0.5, **params
) -> tuple[Normalized, QuantNode]:
    types = LayerTypes([NumType(8, scale=x_scale)], NumType(bits, scale=scale), QuantOptions(bits=bits))
    made = quantize_layer(Node("y", op, ["x"], ["y"], params), types)
    return made.form_as(Normalized), made


@every(
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
    form, made = normalized(Normalize(4, 1e-3), bits, scale, gain=GAINS, shift=SHIFTS)
    assert form.gains.tolist() == [1229, -6963, 0, 10240] and form.gains.dtype == np.int16
    assert form.offsets.tolist() == [shift // 2, -shift // 4, shift, shift // 8] and form.offsets.dtype == np.int32
    assert form.fraction.tolist() == [fraction] and made.bound == bound
    assert made.rescaling.effective().tolist() == [unit]


@every(
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
    form, _ = normalized(Normalize(inner, epsilon), x_scale=scale)
    assert form.epsilon.tolist() == [stored] and form.epsilon.dtype == np.int64


@every(
    ("offset", "kind"), [(2**31 - 1, np.int32), (2**31, np.int64), (-(2**31), np.int64), (2**53 - 1, np.int64), (2**53, None)]
)
def test_gains_of_zero_leave_the_shifts(offset, kind):
    """In units of 2^-26, the least that a gain of 14 bits has."""
    params = {"gain": np.zeros(4), "shift": np.array([0.0, offset * 2.0**-12, 0.0, 2.0**-12])}
    if kind is None:
        with pytest.raises(N2D2Error, match="a normalisation whose bias is beyond 53 bits of its gains"):
            normalized(Normalize(4, 1e-3), **params)
        return
    form, made = normalized(Normalize(4, 1e-3), **params)
    factor = made.rescaling.effective()[0] * 2.0**12
    assert form.gains.tolist() == [0, 0, 0, 0]
    assert (form.offsets * factor).tolist() == [0, offset, 0, 1] and form.offsets.dtype == kind
    assert made.bound * factor == abs(offset)


@every(
    ("op", "reason"),
    [
        (Normalize(4, 1e-3, part="mean"), "the mean of a normalisation"),
        (Normalize(4, 1e-3, part="inverse"), "the inverse of a normalisation"),
        (Normalize(16384, 1e-3), None),
        (Normalize(16385, 1e-3), "a normalisation of more than 16384 elements"),
    ],
)
def test_norms_that_have_integers(op, reason):
    assert refused(Node("y", op, ["x"], ["y"])) == reason


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


@every(
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
@every("part", ["gate_bias", "recurrent_bias"])
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


@every(
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


@every(
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
