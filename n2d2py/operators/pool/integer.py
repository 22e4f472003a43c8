"""Integer pooling."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType, StepRescale
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Dequantized, Rescaled, StoredSums
from n2d2py.graph.node import INT8, TWICE, UINT8
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import file_clamp, file_rescale, integer_layer, moved_layer, peak, rescaled_layer
from n2d2py.quant.weights.file_rounding import mean_rescale, pool_rescale, stored_origin


@quantizer("Pool")
class PoolQuantizer(Quantizer):
    """Max: no arithmetic. Average: acc = sum of the window; factor s_x / (count s_y)."""

    def plain(self, node: Node) -> bool:
        return node.op.mode == "Max"

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if node.op.mode == "Max":
            return moved_layer(node, types)
        x, counts = types.inputs[0], _possible_counts(node)
        return rescaled_layer(node, types, x.scale / (counts * types.output.scale), int(counts[-1]) * peak(x))

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """Return a float32 mean of real numbers; in fixed-point modes, of q - zero point; for TFLite files, as TFLite's
        kernels."""
        if node.op.mode == "Max":
            return moved_layer(node, types)
        x, y, mode = types.inputs[0], types.output, types.options.rescaling
        counts = _possible_counts(node)
        factors = np.float64(x.scale) / (counts * np.float64(y.scale))
        bound = int(counts[-1]) * max(peak(x), x.qmax, -x.qmin)
        if types.follows_file(node) and (found := _tflite(node, x, y, counts, bound)) is not None:
            return found
        types.remark(node, "it is a mean over windows of several sizes, or of many values")
        if mode == "Floating-point":
            scales = np.array([x.scale], np.float32)
            return integer_layer(node, Dequantized(scales), file_clamp(node, y), StepRescale(np.float32(y.scale)))
        return integer_layer(node, Rescaled(), file_clamp(node, y), file_rescale(node, factors, bound, mode), bound)


def _tflite(node: Node, x: NumType, y: NumType, counts: np.ndarray, bound: int) -> QuantNode | None:
    """Return the integer form of TFLite's kernels MEAN and AVERAGE_POOL_2D; None if no form here is bit-exact."""
    if node.rounding == TWICE and len(counts) == 1:
        rescale = mean_rescale(float(np.float64(x.scale) / np.float64(y.scale)), int(counts[0]))
        return integer_layer(node, Rescaled(), file_clamp(node, y), rescale, bound)
    if node.rounding not in (INT8, UINT8) or (x.scale, x.zero_point) != (y.scale, y.zero_point):
        return None
    rescale = pool_rescale(counts)
    form = StoredSums(np.array([stored_origin(node, x)], np.int32))
    return rescale and integer_layer(node, form, file_clamp(node, y), rescale, int(counts[-1]) * 255)


def _possible_counts(node: Node) -> np.ndarray:
    """Return the possible divisors of a mean, up to the window size."""
    window = node.op.kernel[0] * node.op.kernel[1]
    uniform = node.op.count_pad or not any(node.op.pads)
    return np.array([window]) if uniform else np.arange(1, window + 1)
