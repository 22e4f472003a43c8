"""Forms of layers of a QuantGraph: a separate type for each kind of integer arithmetic.

Rescale, clamp and bound are not here: every integer layer may have them, whatever its form (n2d2py/graph/quant.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np


@dataclass(frozen=True, eq=False)
class Form:
    """The base of all forms: the fields of a form are its constants."""

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The constants by role."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True, eq=False)
class Moved(Form):
    """Stored values are moved, compared or, as plain integers, added: no constants and no rescale."""


@dataclass(frozen=True, eq=False)
class Rescaled(Form):
    """Integers that follow from the attributes of the operator alone are rescaled: single values, or sums of windows."""


@dataclass(frozen=True, eq=False)
class StoredSums(Rescaled):
    """Sums of windows of stored integers less `origin` (1), which is added after the rescale, where the zero point is otherwise."""

    origin: np.ndarray


@dataclass(frozen=True, eq=False)
class Weighted(Form):
    """acc = bias + sum of weights times inputs.

    weights: int8, int16 or int32, (O, C / groups, H, W) or (O, C), or (C) of gains; bias: (O), int32, or int64 where the bound of
    the accumulator needs it. The zero point of the input is in the bias, but of a Deconv.
    """

    weights: np.ndarray
    bias: np.ndarray


@dataclass(frozen=True, eq=False)
class Aligned(Form):
    """Inputs brought to one scale, then combined by the operator: terms m_i (q_i - zero point), to a sum of which `offset` is added.

    multipliers: (number of inputs), offset: (1); int32, or int64 where the bound of the accumulator needs it. A product
    has multipliers of 1.
    """

    multipliers: np.ndarray
    offset: np.ndarray


@dataclass(frozen=True, eq=False)
class Dequantized(Form):
    """Real numbers scale_i (q_i - zero point), combined in float32, as the operators of a prequantized network do.

    scales: (number of inputs), float32.
    """

    scales: np.ndarray


@dataclass(frozen=True, eq=False)
class Table(Form):
    """The output is table[q - qmin]. table: (number of stored values of the input), in the type of the output."""

    table: np.ndarray


@dataclass(frozen=True, eq=False)
class Interpolated(Form):
    """The output lies between two knots: arithmetic/interpolated.py. knots: (number of segments + 1), int32."""

    knots: np.ndarray


@dataclass(frozen=True, eq=False)
class Exponentials(Form):
    """The powers of a softmax, in 2^-15, and what their sum divides: arithmetic/attention.py.

    powers: (256), uint16, exp of 0 to -255 steps of an input of bytes; or (3), int32, the multiplier, the shift and the limit that
    compute those of a 16-bit input; numerator: (1), int64, 2^32 / scale of the output.
    """

    powers: np.ndarray
    numerator: np.ndarray


@dataclass(frozen=True, eq=False)
class MaskedExponentials(Exponentials):
    """Those of a softmax of which some elements do not count.

    mask: (lines, ceil(size / 8)), uint8: element i of a line counts where bit i % 8 of byte i // 8 is set.
    """

    mask: np.ndarray


@dataclass(frozen=True, eq=False)
class Normalized(Form):
    """acc = gains * (elements of a row less their mean, over their deviation) + offsets: arithmetic/attention.py.

    gains: (elements of a line), or (1) for all of them, int16; offsets: the same, int32, or int64 where the bound of the accumulator
    needs it; epsilon: (1), int64, what is added to the squared deviation; fraction: (1), int32, fractional bits of what is
    multiplied by the gains.
    """

    gains: np.ndarray
    offsets: np.ndarray
    epsilon: np.ndarray
    fraction: np.ndarray


@dataclass(frozen=True, eq=False)
class Shifted(Form):
    """acc = multiplier * (q - zero point) + constant_multiplier * stored, element by element.

    multiplier, constant_multiplier: (1), int32, or int64 where the bound of the accumulator needs it; stored: (elements), int8 or int16.
    """

    multiplier: np.ndarray
    constant_multiplier: np.ndarray
    stored: np.ndarray


@dataclass(frozen=True, eq=False)
class _Named(Form):
    """Constants whose roles the operator names."""

    by_role: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def constants(self) -> dict[str, np.ndarray]:
        return self.by_role


@dataclass(frozen=True, eq=False)
class Custom(_Named):
    """Integers of an operator that names them itself: the sums of a plug-in's, in the order of its kernel; constants that are joined."""


@dataclass(frozen=True, eq=False)
class Real(_Named):
    """A layer in floating point; `by_role`: the roles of the graph's Node, in the type of the layer.

    They keep their roles because an operator has one floating-point arithmetic, for nodes with and without number types.
    """


_FORMS: dict[frozenset[str], type[Form]] = {
    frozenset(each.name for each in fields(form)): form
    for form in (
        StoredSums,
        Weighted,
        Aligned,
        Dequantized,
        Table,
        Interpolated,
        Exponentials,
        MaskedExponentials,
        Normalized,
        Shifted,
    )
}
"""The forms by the roles of their constants, for files alone."""


def form_of(constants: dict[str, np.ndarray], integer: bool, rescaled: bool) -> Form:
    """The form with these constants by role, as a file stores them.

    `integer`: the layer has a clamp or a rescale; `rescaled`: it has a rescale.
    """
    if not integer:
        return Real(constants)
    if not constants:
        return Rescaled() if rescaled else Moved()
    form = _FORMS.get(frozenset(constants))
    return Custom(constants) if form is None else form(**constants)
