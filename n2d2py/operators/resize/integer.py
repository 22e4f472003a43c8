"""Resampling of images."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import InternalError
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Rescaled
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import file_clamp, file_rescale, formed, moved, peak, rescaled


@quantizer("Resize")
class ResizeQuantizer(Quantizer):
    """Nearest: no arithmetic. Bilinear: acc = sum of (q - zero point) times integer weights; factor s_x / (sum of the weights s_y)."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if node.op.mode == "Nearest":
            return moved(node, types)
        return rescaled(node, types, *_factor_and_bound(node, types))

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """The same, to the type that the file says."""
        if node.op.mode == "Nearest":
            return moved(node, types)
        factor, bound = _factor_and_bound(node, types)
        return formed(
            node, Rescaled(), file_clamp(node, types.output), file_rescale(node, factor, bound, types.options.rescaling), bound
        )


def _factor_and_bound(node: Node, types: LayerTypes) -> tuple[np.ndarray, int]:
    """The factor of the sums, and what they and their parts cannot exceed, with or without the zero point."""
    if types.input_shape is None:
        raise InternalError(f"the input of {node.name} has no size")
    x, y = types.inputs[0], types.output
    lines, columns = node.op.integer_weights(types.input_shape[2:])
    unit = int(lines[:, 0].sum() * columns[:, 0].sum())
    return np.array([np.float64(x.scale) / np.float64(y.scale) / unit]), max(peak(x), x.qmax, -x.qmin) * unit
