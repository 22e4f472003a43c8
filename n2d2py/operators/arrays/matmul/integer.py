"""Matrix products of two activations in integers."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node, QuantNode
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer, refusal
from n2d2py.quant.forming import peak, rescaled


@quantizer("ArrayMatMul")
class MatMulQuantizer(Quantizer):
    """acc = sum over K of (a - zero point) (b - zero point); factor scale * s_a s_b / s_y."""

    def refuses(self, node: Node) -> str | None:
        op = node.op
        if op.result:
            return "a product of integers of a fixed type"
        if op.slots != (0, 1):
            return "a product of an array and constant matrices"
        return "a product times a factor that is not positive" if op.scale <= 0 else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        a, b = types.inputs
        bound = node.op.left[-1] * peak(a) * peak(b)
        if bound >= 2**53:
            raise refusal(node, "a product whose sums exceed 53 bits")
        return rescaled(node, types, np.array([node.op.scale * a.scale * b.scale / types.output.scale]), bound)
