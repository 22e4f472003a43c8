"""Max unpooling."""

from __future__ import annotations

from n2d2py.graph import Node, QuantNode
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import moved

__all__ = ["UnpoolQuantizer"]


@quantizer("Unpool")
class UnpoolQuantizer(Quantizer):
    """No arithmetic; overlapping windows would need sums beyond the range of the type."""

    remedy = "use a stride of the size of the window, set Quantize=0 for it, or export in floating point with -nbbits -32"

    def refuses(self, node: Node) -> str | None:
        return "Unpool with overlapping windows" if node.op.overlaps else None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        return moved(node, types)
