"""Concatenation of channels."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node, QuantNode
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import moved, peak, rescaled


@quantizer("Concat")
class ConcatQuantizer(Quantizer):
    """Inputs of the output's type are copied; otherwise each is rescaled by s_i / s_y."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if all(kind == types.output for kind in types.inputs):
            return moved(node, types)
        factors = np.array([kind.scale / types.output.scale for kind in types.inputs])
        return rescaled(node, types, factors, max(map(peak, types.inputs)))
