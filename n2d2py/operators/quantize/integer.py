"""The integer form of a rounding."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.graph import Node, QuantNode
from n2d2py.operators.activation import Activation
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.elemwise.integer import dequantized
from n2d2py.operators.functions import Clip
from n2d2py.quant.contract import LayerTypes, Quantizer, prequantize_layer, quantizer


@quantizer("Quantize")
class QuantizeQuantizer(Quantizer):
    """Calibrated networks have none."""

    def refuses(self, node: Node) -> str | None:
        return node.op.kind

    def prequantized(self, node: Node, types: LayerTypes) -> QuantNode:
        """Integers of one type to those of another: a table, or the real numbers of a wide type rounded again."""
        if types.inputs[0].bits == 8:
            return prequantize_layer(replace(node, op=Activation(Clip())), types)
        return dequantized(replace(node, op=ElemWise("Sum")), types)
