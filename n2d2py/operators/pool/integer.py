"""Pooling."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import FractionRescale, StepRescale
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Dequantized, Rescaled
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import file_clamp, file_rescale, formed, moved, peak, rescaled


@quantizer("Pool")
class PoolQuantizer(Quantizer):
    """Max: no arithmetic. Average: acc = sum of the window; factor s_x / (count s_y)."""

    def plain(self, node: Node) -> bool:
        return node.op.mode == "Max"

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if node.op.mode == "Max":
            return moved(node, types)
        x, counts = types.inputs[0], _counts(node)
        return rescaled(node, types, x.scale / (counts * types.output.scale), int(counts[-1]) * peak(x))

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """The mean of real numbers in float32, of the integers without their zero point where the file's runtime takes that; in the fixed-point modes that of the integers without their zero point."""
        if node.op.mode == "Max":
            return moved(node, types)
        x, y, mode = types.inputs[0], types.output, types.options.rescaling
        counts = _counts(node)
        factors = np.float64(x.scale) / (counts * np.float64(y.scale))
        bound = int(counts[-1]) * max(peak(x), x.qmax, -x.qmin)
        if mode == "Floating-point" and node.rounding:
            ties = {"up": 0.25, "down": -0.25}.get(node.rounding)
            added = mean_rounding(x.scale / y.scale, counts) if ties is None else np.full(len(counts), ties)
            rescale = FractionRescale(factors, added, signed=ties is None)
            return formed(node, Rescaled(), file_clamp(node, y), rescale, bound)
        if mode == "Floating-point":
            scales = np.array([x.scale], np.float32)
            return formed(node, Dequantized(scales), file_clamp(node, y), StepRescale(np.float32(y.scale)))
        return formed(node, Rescaled(), file_clamp(node, y), file_rescale(node, factors, bound, mode), bound)


def mean_rounding(ratio: float, counts: np.ndarray) -> np.ndarray:
    """Error of TFLite's second rounding in the magnitude of the sum of `counts` values, float64, as `second_rounding`.

    Its MEAN divides the multiplier m of `ratio` by the count: m' = (m << k) / count, 2^k <= count (QuantizedMeanOrSum in
    tensorflow/lite/kernels/internal/reference/reduce.h). Sums often lie in the middle of two results, which it rounds away from zero: by a
    little more, which no other sum of integers notices.
    """
    mantissa, exponent = np.frexp(np.float64(ratio))
    power = np.floor(np.log2(counts))
    return np.where(exponent - power < 0, counts / 2.0 ** (power + 1) / mantissa, 0.0) + 2.0**-8


def _counts(node: Node) -> np.ndarray:
    """The numbers of values, up to that of the window, that a mean may divide by."""
    window = node.op.kernel[0] * node.op.kernel[1]
    uniform = node.op.count_pad or not any(node.op.pads)
    return np.array([window]) if uniform else np.arange(1, window + 1)
