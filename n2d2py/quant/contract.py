"""Quantizers, which make the integer forms of layers: one for each kind of operator, in one registry.

No other place says whether a layer has an integer form. A quantizer also knows the form of a layer of a prequantized network:
there too the operator decides, and only the scales come from a file instead of statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Aligned, Dequantized, Exponentials, Interpolated, Moved, Rescaled, Table
from n2d2py.graph.shapes import Shape
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.weights.integers import Ranging, Rounding, range_nearest, round_nearest
from n2d2py.registry import Registry

_FILE_MODES = ("Floating-point", "Fixed-point-p32")
"""Rescaling modes that targets have by default: layers of a .tflite file keep the rounding of its kernels."""


@dataclass(frozen=True)
class LayerTypes:
    """Facts for a quantizer: number types of the layer's inputs and of its output, options, rounding of weights, ranges of weights of
    fewer than 8 bits.

    `cell` is the largest cell state that calibration saw, with headroom. `weight_bits` is the width of the layer's weights; None for that of the network. `input_shape` is the shape of the first input.
    `remarks` takes reasons, as clauses, for which the integers of a prequantized network may not be those of its file's kernels.
    """

    inputs: list[NumType]
    output: NumType
    options: QuantOptions
    rounding: Rounding = round_nearest
    ranging: Ranging = range_nearest
    weight_bits: int | None = None
    cell: float | None = None
    input_shape: Shape | None = None
    remarks: list[str] = field(default_factory=list, compare=False)

    def follows_file(self, node: Node) -> bool:
        """True if a layer of bytes has the rounding of the kernel of its file."""
        bytes_alone = max(kind.bits for kind in (*self.inputs, self.output)) <= 8
        return bool(node.rounding) and bytes_alone and self.options.rescaling in _FILE_MODES

    def remark(self, node: Node, reason: str) -> None:
        """Keep a reason for which results of a layer from a .tflite file may not be those of its kernel."""
        if node.rounding:
            mode = self.options.rescaling
            self.remarks.append(reason if mode in _FILE_MODES else f"-act-rescaling-mode {mode}")

    @property
    def wide(self) -> bool:
        """True if the layer reads or writes integers of more than 8 bits."""
        return any(kind.bits > 8 for kind in (*self.inputs, self.output))


class Quantizer:
    """Quantizer of the layers of an operator.

    `remedy`: what the user can do about a layer that is refused.
    """

    remedy: ClassVar[str] = "remove the layer, set Quantize=0 for it, or export in floating point with -nbbits -32"

    def refuses(self, node: Node) -> str | None:
        """Part of a layer without integer form, such as "Unpool with overlapping windows"; None where it has one."""
        return None

    def plain(self, node: Node) -> bool:
        """True if a layer also computes with 32-bit integers unchanged, without scales."""
        return False

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        """The integer form of a layer that is not refused.

        Raises:
            N2D2Error: E504, E510, E511 for what only shows in its types or in its activation.
        """
        raise NotImplementedError

    def in_files(self, node: Node) -> bool:
        """Return False for a layer that prequantized networks compute in floating point between their integers."""
        return True

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """The integer form of a layer of a prequantized network, rounding included; as of any other unless it is said here.

        Raises:
            N2D2Error: as `quantize`, and E514 for weights that the file does not quantize.
        """
        return quantize_layer(node, types)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray] | None:
        """The constants, by role, with which the operator computes on real numbers what the integers of a layer stand for.

        None where the integers do not say it.
        """
        return {} if isinstance(node.form, _WITHOUT_REAL_CONSTANTS) else None


_WITHOUT_REAL_CONSTANTS = (Moved, Rescaled, Aligned, Dequantized, Table, Interpolated, Exponentials)
"""Forms whose constants follow from the operator and from the types of its tensors."""

QUANTIZERS: Registry[Quantizer] = Registry("the quantizer of", "n2d2py.operators.catalog")
"""The quantizers by operator kind."""


QuantizerT = TypeVar("QuantizerT", bound=Quantizer)


def quantizer(*kinds: str) -> Callable[[type[QuantizerT]], type[QuantizerT]]:
    """Class decorator: registers one object as the quantizer of operator kinds; a second one for a kind is an InternalError."""

    def register(made: type[QuantizerT]) -> type[QuantizerT]:
        one = made()
        for kind in kinds:
            QUANTIZERS.add(kind, one)
        return made

    return register


def refused(node: Node) -> str | None:
    """Part of a layer without integer form; None where it has one."""
    found = QUANTIZERS.get(node.op.kind)
    return node.op.kind if found is None else found.refuses(node)


def computes_plain(node: Node) -> bool:
    """True if a layer computes with 32-bit integers unchanged: -nbbits 32."""
    found = QUANTIZERS.get(node.op.kind)
    return found is not None and node.activation is None and found.plain(node)


def refusal(node: Node, what: str, remedy: str | None = None) -> N2D2Error:
    """E510: a layer without integer form; `what` as `refuses` says it."""
    found = QUANTIZERS.get(node.op.kind)
    return N2D2Error(
        "E510",
        f"layer '{node.name}' ({what}) is not supported in integers",
        where=node.location,
        remedy=remedy or (found or Quantizer).remedy,
    )


def quantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """The integer form of one layer.

    Raises:
        N2D2Error: E510 when it has none; as `Quantizer.quantize`.
    """
    reason = refused(node)
    if reason is not None:
        raise refusal(node, reason)
    return QUANTIZERS[node.op.kind].quantize(node, types)


def prequantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """The integer form of one layer whose scales and weights a file brings, rounding included.

    Raises:
        N2D2Error: E510 an operator without integer arithmetic, E511 an activation that is none, E514 weights that
            the file does not quantize.
    """
    found = QUANTIZERS.get(node.op.kind)
    return quantize_layer(node, types) if found is None else found.prequantized(node, types)
