"""A max pool with a sum behind it."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.quant.contract import Quantizer, quantizer

__all__ = ["PoolSumQuantizer"]


@quantizer("PoolSum")
class PoolSumQuantizer(Quantizer):
    """Integers without scales alone."""

    def refuses(self, node: Node) -> str | None:
        return node.op.kind

    def plain(self, node: Node) -> bool:
        return True
