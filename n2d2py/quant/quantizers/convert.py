"""Conversions between integers and floating point, and between integers."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import make_rescale
from n2d2py.graph import Node, QuantNode
from n2d2py.graph.forms import Real, Rescaled
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import activation_clamp, formed, peak, rescaled

__all__ = ["ConvertQuantizer"]


@quantizer("Convert")
class ConvertQuantizer(Quantizer):
    """To floating point: no constants. From it: factor 1 / s_y in float32. Between integers: factor s_x / s_y."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        x, y = types.inputs[0], types.output
        if y.is_float:
            return formed(node, Real(), None)
        if x.is_float:
            rescale, _ = make_rescale("Floating-point", np.array([1 / y.scale]))
            return formed(node, Rescaled(), activation_clamp(node, y), rescale)
        return rescaled(node, types, np.array([x.scale / y.scale]), peak(x))
