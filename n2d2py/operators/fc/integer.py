"""The integer form of a fully connected layer."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.quant.contract import LayerTypes, quantizer
from n2d2py.quant.weighted import WeightedQuantizer


@quantizer("Fc")
class FcQuantizer(WeightedQuantizer):
    """The weights of an output have the shape of the input."""

    def weight_shape(self, node: Node, types: LayerTypes) -> tuple[int, ...] | None:
        return None if types.input_shape is None else (*types.input_shape[1:], 1, 1)[:3]
