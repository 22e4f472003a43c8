"""Operators that only move values."""

from __future__ import annotations

from n2d2py.graph import Node, QuantNode
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import moved

__all__ = ["Moving", "MovingAnything"]


@quantizer("Padding", "IndexSelect", "DepthToSpace", "SpaceToDepth", "Dropout", "ArrayIndexSelect")
class Moving(Quantizer):
    """No arithmetic."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        return moved(node, types)


@quantizer("Reshape", "Transpose", "Identity")
class MovingAnything(Moving):
    """No arithmetic, of integers without scales neither."""

    def plain(self, node: Node) -> bool:
        return True
