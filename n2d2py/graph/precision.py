"""Precision of single layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class TargetForm(Enum):
    """Form of a layer on a target that has floating point between its integer layers."""

    REAL = "floating point"
    SUMS = "sums of integers, as real numbers"
    INTEGERS = "integers"


@dataclass(frozen=True)
class Precision:
    """`QuantBits`, `QuantWeightBits` and `Quantize` of a layer (None if not set), and its form on the target.

    Attributes:
        bits: width of the integers that the layer reads and writes, 8 or 16.
        weight_bits: width of its weights, 2 to 8 or 16.
        quantize: False for a layer that stays in floating point.
        target: its form on a target with floating point between integer layers (quant/types/float_regions.py).
    """

    bits: int | None = None
    weight_bits: int | None = None
    quantize: bool | None = None
    target: TargetForm | None = None

    @staticmethod
    def of(values: Mapping[str, Any]) -> Precision:
        """Return the precision from typed INI values by key (PRECISION_KEYS of n2d2py/ini/params.py)."""
        bits, weight_bits = (None if (text := values[key]) is None else int(text) for key in ("QuantBits", "QuantWeightBits"))
        return Precision(bits, weight_bits, values["Quantize"])

    def over(self, other: Precision | None) -> Precision:
        """Return this precision, with the values of `other` for what is not set."""
        if other is None:
            return self
        return replace(other, **{name: value for name, value in vars(self).items() if value is not None})
