"""Integer forms of layers: one type for each kind of integer arithmetic, with its constants.

Rescale, clamp and bound belong to QuantNode, since every form may have them (n2d2py/graph/quant.py).
"""

from dataclasses import dataclass, field, fields

import numpy as np

from n2d2py.registry import dataclass_transform


@dataclass_transform(frozen_default=True, eq_default=False)
class Form:
    """Base of all forms, which are frozen dataclasses. The fields of a form are its constants."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, eq=False)(cls)

    @property
    def constants(self) -> dict[str, np.ndarray]:
        """The constants by role."""
        return dict(vars(self))


class Moved(Form):
    """Stored values are copied, compared or, as plain integers, added: no constants and no rescale."""


class Rescaled(Form):
    """Values, or sums over windows, are rescaled; the operator's attributes are the only constants."""


class StoredSums(Rescaled):
    """Sums over windows of stored integers minus `origin` (1), which the rescale adds again instead of the zero point."""

    origin: np.ndarray


class Weighted(Form):
    """acc = bias + sum of weights times inputs.

    weights: int8, int16 or int32, (O, C / groups, H, W) or (O, C), or (C) for gains. bias: (O), int32, or int64 if the bound of
    the accumulator requires it. The bias includes the zero point of the input, except in a Deconv.
    """

    weights: np.ndarray
    bias: np.ndarray


class Aligned(Form):
    """Inputs are brought to one scale and combined: terms m_i (q_i - zero point); a sum also adds `offset`.

    multipliers: (number of inputs), offset: (1); int32, or int64 if the bound of the accumulator requires it. A product has
    multipliers of 1.
    """

    multipliers: np.ndarray
    offset: np.ndarray


class Dequantized(Form):
    """Real numbers scale_i (q_i - zero point) are combined in float32, as in a pre-quantized network.

    scales: (number of inputs), float32.
    """

    scales: np.ndarray


class Table(Form):
    """Lookup table: the output is table[q - qmin].

    table: (number of stored input values), in the type of the output.
    """

    table: np.ndarray


class Interpolated(Form):
    """Linear interpolation between knots: arithmetic/interpolated.py.

    knots: (number of segments + 1), int32.
    """

    knots: np.ndarray


class Exponentials(Form):
    """Integer softmax: arithmetic/attention.py.

    powers: (256), uint16, exp(-i steps) in 2^-15 for 8-bit inputs; for 16-bit inputs (3), int32: multiplier, shift and limit.
    numerator: (1), int64, 2^32 / output scale.
    """

    powers: np.ndarray
    numerator: np.ndarray


class MaskedExponentials(Exponentials):
    """Integer softmax with a mask.

    mask: (rows, ceil(size / 8)), uint8: element i of a row counts if bit i % 8 of byte i // 8 is set.
    """

    mask: np.ndarray


class Normalized(Form):
    """acc = gains * ((elements of a row - mean) / deviation) + offsets: arithmetic/attention.py.

    gains: (row length) or (1), int16. offsets: the same shape, int32, or int64 if the bound of the accumulator requires it.
    epsilon: (1), int64, added to the squared deviation. fraction: (1), int32, fractional bits of the normalized elements.
    """

    gains: np.ndarray
    offsets: np.ndarray
    epsilon: np.ndarray
    fraction: np.ndarray


class Shifted(Form):
    """acc = multiplier * (q - zero point) + constant_multiplier * stored, element by element.

    multiplier, constant_multiplier: (1), int32, or int64 if the bound of the accumulator requires it. stored: (elements), int8
    or int16.
    """

    multiplier: np.ndarray
    constant_multiplier: np.ndarray
    stored: np.ndarray


class _Named(Form):
    """Constants with roles that the operator names."""

    by_role: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def constants(self) -> dict[str, np.ndarray]:
        return self.by_role


class Custom(_Named):
    """Constants of an operator that defines its own integer arithmetic, such as that of a plug-in."""


class Real(_Named):
    """A layer in floating point. `by_role` has the roles of the graph's Node, in the type of the layer.

    The roles stay because float arithmetic is defined once, for nodes with and without number types.
    """


_KINDS = StoredSums, Weighted, Aligned, Dequantized, Table, Interpolated, Exponentials, MaskedExponentials, Normalized, Shifted
_FORMS: dict[frozenset[str], type[Form]] = {frozenset(each.name for each in fields(form)): form for form in _KINDS}
"""The forms by the roles of their constants, used by files only."""


def form_of(constants: dict[str, np.ndarray], integer: bool, rescaled: bool) -> Form:
    """Return the form with these constants by role, as a file stores them. `integer`: the layer has a clamp or a rescale;
    `rescaled`: it has a rescale."""
    if not integer:
        return Real(constants)
    if not constants:
        return Rescaled() if rescaled else Moved()
    form = _FORMS.get(frozenset(constants))
    return Custom(constants) if form is None else form(**constants)
