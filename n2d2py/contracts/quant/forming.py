"""Building blocks of integer forms: nodes, clamps, rescales, multipliers."""

from __future__ import annotations

from math import gcd

import numpy as np

from n2d2py import log
from n2d2py.arithmetic import FloatRescale, NumType, Rescale, make_rescale
from n2d2py.contracts.functions import ChannelClip, Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.contracts.quant.quantizer import LayerTypes, Quantizer
from n2d2py.errors import N2D2Error
from n2d2py.graph import Form, Moved, Node, QuantNode, Rescaled


def activation_clamp(node: Node, output: NumType) -> tuple[int, int]:
    """Return the inclusive integer range of the output: the type's range, limited by a clamping activation.

    Raises:
        N2D2Error: E511 for an activation that is not a clamp; it must be a separate layer.
    """
    if node.activation is None:
        return output.qmin, output.qmax
    if isinstance(node.activation, ChannelClip) and node.activation.low == 0:
        return max(output.zero_point, output.qmin), output.qmax  # no range exceeds the lowest limit
    if not isinstance(node.activation, Clip):
        raise _no_clamp(node, "declare the activation as a separate layer")
    low, high = node.activation.low, node.activation.high
    least = 1 if low > 0 else output.qmin - output.zero_point  # a guard stays one step
    limits = [
        output.qmin if low == -np.inf else max(round(low / output.scale), least) + output.zero_point,
        output.qmax if high == np.inf else round(high / output.scale) + output.zero_point,
    ]
    return (int(np.clip(limits[0], output.qmin, output.qmax)), int(np.clip(limits[1], output.qmin, output.qmax)))


def file_clamp(node: Node, output: NumType) -> tuple[int, int]:
    """Return the clamp in a pre-quantized network, with limits rounded like the results of the layer."""
    if node.activation is None:
        return output.qmin, output.qmax
    if not isinstance(node.activation, Clip):
        raise _no_clamp(node, "quantize what the activation reads too")
    low, high = output.quantize_linear(np.array([node.activation.low, node.activation.high], np.float64))
    return int(low), int(high)


def _no_clamp(node: Node, remedy: str) -> N2D2Error:
    kind = node.activation and node.activation.kind
    what = f"layer '{node.name}': {kind} cannot be fused into an integer layer"
    return N2D2Error("E511", what, where=node.location, remedy=remedy)


def peak(kind: NumType) -> int:
    """Return the largest magnitude of stored value minus zero point."""
    return max(kind.qmax - kind.zero_point, kind.zero_point - kind.qmin)


def integer_layer(
    node: Node, form: Form, clamp: tuple[int, int] | None, rescale: Rescale | None = None, bound: int = 0
) -> QuantNode:
    """Return the layer with an integer form."""
    return QuantNode.of(node, form, rescale=rescale, clamp=clamp, bound=bound)


def moved_layer(node: Node, types: LayerTypes) -> QuantNode:
    """Return the integer form of a layer that moves values."""
    return integer_layer(node, Moved(), activation_clamp(node, types.output))


def rescaled_layer(node: Node, types: LayerTypes, factors: np.ndarray, bound: int, form: Form | None = None) -> QuantNode:
    """Return the integer form of a layer whose sums, at most `bound`, are multiplied by `factors`."""
    rescale = rescale_of(node, factors, bound, types.options)
    return integer_layer(node, form or Rescaled(), activation_clamp(node, types.output), rescale, bound)


def summed_layer(node: Node, types: LayerTypes, scale: float, bound: int, form: Form) -> QuantNode:
    """Return the integer form of a layer with sums in units of `scale`, at most `bound`."""
    return rescaled_layer(node, types, np.array([scale / types.output.scale]), bound, form)


def rescale_of(node: Node, factors: np.ndarray, bound: int, options: QuantOptions, weighted: bool = False) -> Rescale:
    """Return the rescale of the chosen mode; Fixed-point16 instead of a shift if no weights can compensate its error."""
    mode = options.rescaling
    if mode.endswith("-shift") and not weighted:
        mode = "Fixed-point16"
    rescale, replaced = make_rescale(mode, factors, _acc_bits(bound))
    if replaced:
        _warn_of_mode(node, options.rescaling, factors, rescale)
    return rescale


def file_rescale(node: Node, factors: np.ndarray, bound: int, mode: str) -> Rescale:
    """Return the rescale in a pre-quantized network; weights are fixed, so shift modes use Fixed-point16."""
    if mode == "Floating-point":
        return FloatRescale(factors)
    wanted = "Fixed-point16" if mode.endswith("-shift") else mode
    rescale, replaced = make_rescale(wanted, factors, _acc_bits(bound))
    if replaced or wanted != mode:
        _warn_of_mode(node, mode, factors, rescale)
    return rescale


def _acc_bits(bound: int) -> int:
    return max(32, int(bound).bit_length() + 1)


def _warn_of_mode(node: Node, mode: str, factors: np.ndarray, rescale: Rescale) -> None:
    reason = f"{mode} cannot represent its factor {float(np.max(factors)):.4g}"
    what = f"layer '{node.name}': {reason}; {type(rescale).__name__} is used instead"
    log.warning("W502", what, where=node.location)


def common_multipliers(factors: np.ndarray, bits: int) -> tuple[list[int], float]:
    """Return the integers m_i with m_i * unit ~ factors_i, |m_i| <= 2^bits, in lowest terms, and the unit, a power of two."""
    unit = 2.0 ** (np.ceil(np.log2(np.max(np.abs(factors)))) - bits)
    whole = [int(v) for v in np.rint(factors / unit)]
    common = gcd(*whole)
    power = common & -common
    return [v // power for v in whole], float(unit * power)


class Moving(Quantizer):
    """Quantizer of operators that move values without arithmetic."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        return moved_layer(node, types)


class MovingAnyIntegers(Moving):
    """Quantizer of operators that also move unscaled integers."""

    def plain(self, node: Node) -> bool:
        return True
