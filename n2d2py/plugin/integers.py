"""The integer form of a plug-in's operator: sums of integers that the tool rescales to the output's integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.quant.forming import common_multipliers, peak


@dataclass(frozen=True)
class Integers:
    """Result of `Operator.quantize`.

    Attributes:
        scale: real value of 1 in a sum, such as the product of the scales of two factors.
        bound: largest magnitude that a sum, or any part of it, can reach.
        constants: whole numbers that `Operator.sums` and the kernel get, by name, in this order.
    """

    scale: float
    bound: int
    constants: Mapping[str, np.ndarray | int | Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """Facts that `Operator.quantize` may use.

    Attributes:
        inputs: number type of each input: scale, zero_point, qmin, qmax, bits, signed.
        output: that of the output.
        params: the constants of the layer in floating point, by name.
        bits: of the network, 8 or 16.
    """

    inputs: Sequence[NumType]
    output: NumType
    params: Mapping[str, np.ndarray]
    bits: int

    @property
    def scale(self) -> float:
        """Scale of the first input."""
        return self.inputs[0].scale

    def peak(self, index: int = 0) -> int:
        """Largest magnitude of input `index`, without its zero point."""
        return peak(self.inputs[index])

    def aligned(self) -> tuple[list[int], float]:
        """Whole multipliers m that bring all inputs to one scale, and that scale: m[i] * q[i] * scale is about real.

        14 bits for 8-bit inputs.
        """
        multipliers, unit = common_multipliers(np.array([kind.scale for kind in self.inputs]), 14 if self.bits == 8 else 22)
        return multipliers, unit
