"""Resampling of images."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node, QuantNode
from n2d2py.operators.resize.op import WEIGHT_BITS
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import moved, rescaled


@quantizer("Resize")
class ResizeQuantizer(Quantizer):
    """Nearest: no arithmetic. Bilinear: acc = sum of q times weights that add up to 2^22; factor 2^-22."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if node.op.mode == "Nearest":
            return moved(node, types)
        x = types.inputs[0]
        return rescaled(node, types, np.array([2.0 ** (-2 * WEIGHT_BITS)]), max(x.qmax, -x.qmin) << 2 * WEIGHT_BITS)
