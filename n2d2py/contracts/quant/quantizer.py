"""Quantizers create the integer forms of layers: one for each kind of operator, in one registry.

They alone decide whether a layer has an integer form, also in pre-quantized networks, where scales come from the file instead
of calibration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.weights import Ranging, Rounding, range_nearest, round_nearest
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Aligned, Dequantized, Exponentials, Interpolated, Moved, Rescaled, Table
from n2d2py.graph.shapes import Shape
from n2d2py.registry import Registry

_FILE_MODES = ("Floating-point", "Fixed-point-p32")
"""Default rescaling modes of targets, with which layers of a .tflite file keep the rounding of its kernels."""


@dataclass(frozen=True)
class LayerTypes:
    """Input of a quantizer: number types of the layer's inputs and output, options, weight rounding and ranges.

    Attributes:
        weight_bits: width of the weights; None for that of the network.
        cell: largest calibrated cell state, with headroom.
        input_shape: shape of the first input.
        remarks: collects reasons, as clauses, why integers may differ from the kernels of a pre-quantized file.
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
        """True if an 8-bit layer rounds as the kernel of its file does."""
        bytes_alone = max(kind.bits for kind in (*self.inputs, self.output)) <= 8
        return bool(node.rounding) and bytes_alone and self.options.rescaling in _FILE_MODES

    def remark(self, node: Node, reason: str) -> None:
        """Add a reason why results of a layer from a .tflite file may differ from those of its kernel."""
        if node.rounding:
            mode = self.options.rescaling
            self.remarks.append(reason if mode in _FILE_MODES else f"-act-rescaling-mode {mode}")

    @property
    def wide(self) -> bool:
        """True if the layer reads or writes integers of more than 8 bits."""
        return any(kind.bits > 8 for kind in (*self.inputs, self.output))


class Quantizer:
    """Quantizer of the layers of an operator.

    `remedy`: advice for a refused layer. `reads_plain`: its layers read integers without a scale, such as indices.
    """

    reads_plain: ClassVar[bool] = False

    remedy: ClassVar[str] = "remove the layer, set Quantize=0 for it, or export in floating point with -nbbits -32"

    def refuses(self, node: Node) -> str | None:
        """Return the reason why a layer has no integer form, such as "Unpool with overlapping windows"; else None."""
        return None

    def plain(self, node: Node) -> bool:
        """True if a layer can also compute with unscaled 32-bit integers."""
        return False

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        """Return the integer form of a layer that is not refused.

        Raises:
            N2D2Error: E504, E510, E511 for problems of its types or its activation.
        """
        raise NotImplementedError

    def in_files(self, node: Node) -> bool:
        """Return false for a layer that pre-quantized networks compute in floating point between their integers."""
        return True

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """Return the integer form of a layer of a pre-quantized network, including its Quantize; by default as `quantize`.

        Raises:
            N2D2Error: as `quantize`, and E514 for weights that the file does not quantize.
        """
        return quantize_layer(node, types)

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray] | None:
        """Return the real-valued constants, by role, that a layer's integers represent; None if they are not determined."""
        return {} if isinstance(node.form, _WITHOUT_REAL_CONSTANTS) else None


_WITHOUT_REAL_CONSTANTS = (Moved, Rescaled, Aligned, Dequantized, Table, Interpolated, Exponentials)
"""Forms whose constants follow from the operator and the types of its tensors."""

QUANTIZERS: Registry[Quantizer] = Registry("the quantizer of", "n2d2py.operators.catalog")
"""The quantizers by operator kind."""


QuantizerT = TypeVar("QuantizerT", bound=Quantizer)


def quantizer(*kinds: str) -> Callable[[type[QuantizerT]], type[QuantizerT]]:
    """Class decorator: register one object as the quantizer of operator kinds; a second one for a kind is an InternalError."""

    def register(cls: type[QuantizerT]) -> type[QuantizerT]:
        one = cls()
        for kind in kinds:
            QUANTIZERS.add(kind, one)
        return cls

    return register


def refused(node: Node) -> str | None:
    """Return the reason why a layer has no integer form; else None."""
    quantizer = QUANTIZERS.get(node.op.kind)
    return node.op.kind if quantizer is None else quantizer.refuses(node)


def computes_plain(node: Node) -> bool:
    """True if a layer can compute with unscaled 32-bit integers: -nbbits 32."""
    quantizer = QUANTIZERS.get(node.op.kind)
    return quantizer is not None and node.activation is None and quantizer.plain(node)


def reads_plain(node: Node) -> bool:
    """True if the integer form of a layer reads integers without a scale."""
    quantizer = QUANTIZERS.get(node.op.kind)
    return quantizer is not None and quantizer.reads_plain


def refusal(node: Node, what: str, remedy: str | None = None) -> N2D2Error:
    """Return E510 for a layer without an integer form; `what` is the reason of `refuses`."""
    text, advice = f"layer '{node.name}' ({what}) is not supported in integers", QUANTIZERS.get(node.op.kind) or Quantizer
    return N2D2Error("E510", text, where=node.location, remedy=remedy or advice.remedy)


def quantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """Return the integer form of one layer.

    Raises:
        N2D2Error: E510 if it has none; as `Quantizer.quantize`.
    """
    reason = refused(node)
    if reason is not None:
        raise refusal(node, reason)
    return QUANTIZERS[node.op.kind].quantize(node, types)


def prequantize_layer(node: Node, types: LayerTypes) -> QuantNode:
    """Return the integer form of one layer with scales and weights from a file, including its Quantize.

    Raises:
        N2D2Error: E510 an operator without integer arithmetic, E511 an activation that is not a clamp, E514 weights that the
            file does not quantize.
    """
    quantizer = QUANTIZERS.get(node.op.kind)
    return quantize_layer(node, types) if quantizer is None else quantizer.prequantized(node, types)
