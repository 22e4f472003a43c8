"""The integer form of a convolution."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.quant.contract import LayerTypes, quantizer
from n2d2py.quant.weighted import WeightedQuantizer


@quantizer("Conv")
class ConvQuantizer(WeightedQuantizer):
    """Dense and grouped convolutions multiply bytes; depthwise ones do not."""

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        return None if node.op.is_depthwise(node) else node.params["weights"].shape[1:]
