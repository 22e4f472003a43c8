"""Layers of the float network, and their precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from n2d2py.errors import Location
from n2d2py.graph.port import OneOutput

if TYPE_CHECKING:
    from n2d2py.contracts.functions import FunctionRow
    from n2d2py.contracts.operator import Op

OpT = TypeVar("OpT", bound="Op")


TWICE, TWICE_UINT8, ONCE, INT8, UINT8, OTHER = "twice", "twice uint8", "once", "int8", "uint8", "other"
"""Rules of TFLite's kernels (`Node.rounding`): the product with a multiplier and its shift are rounded; the same, of scales
multiplied in float32; the product alone; the mean of stored int8, of stored uint8, ties away from 0; one that no layer has."""


@dataclass(eq=False)
class Node(OneOutput, Generic[OpT]):
    """One layer: an operator, the tensors it reads and writes, its constants. Nodes compare by identity.

    Lists of tensors are replaced, never modified, so that graphs notice every change (`edits`).

    Attributes:
        name: the layer's name, as in the INI section or the ONNX node's first output.
        params: constants by role: "weights" (OCHW or OC), "bias" (O), "scale", "mean", ...
        unbiased: the layer has no bias; the zeros in `params` replace it (`complete_params`).
        activation: element-wise function applied to the result.
        source: names of the layers merged into it, its own first.
        helper: created for its consumer, such as a concatenation of inputs, and not declared itself.
        rounding: rule of the kernel of its quantized file (`contracts/quant/file_rounding.py`); "" rounds once, ties to even.
    """

    name: str
    op: OpT
    inputs: list[str]
    outputs: list[str]
    params: dict[str, np.ndarray] = field(default_factory=dict)
    activation: FunctionRow | None = None
    location: Location | None = None
    source: list[str] = field(default_factory=list)
    helper: bool = False
    unbiased: bool = False
    rounding: str = ""

    edits: ClassVar[int] = 0
    """Number of replacements of `inputs` or `outputs` of any node."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("inputs", "outputs") and name in self.__dict__:
            Node.edits += 1
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        if not self.source:
            self.source = [self.name]

    @property
    def only_moves(self) -> bool:
        """True if the layer moves values of its first input, or means of them, and applies no function to them."""
        return self.op.moves_values and self.activation is None

    def compute(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return the results in floating point, after the activation, of inputs (n, ...)."""
        results = self.op.run(inputs, self)
        return results if self.activation is None else [self.activation(y) for y in results]

    @property
    def place(self) -> Location:
        """Return the location for messages; the layer's name if nothing better is known."""
        return self.location or Location(section=self.name)


class TargetForm(Enum):
    """Form of a layer on a target that has floating point between its integer layers."""

    REAL = "floating point"
    SUMS = "sums of integers, as real numbers"
    INTEGERS = "integers"


@dataclass(frozen=True)
class Precision:
    """Requested precision of a layer (None if not set), and its form on the target.

    Attributes:
        bits: `QuantBits`, the width of the integers that the layer reads and writes, 8 or 16.
        weight_bits: `QuantWeightBits`, the width of its weights, 2 to 8 or 16.
        quantize: `Quantize`, False for a layer that stays in floating point.
        target: its form on a target with floating point between integer layers.
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
