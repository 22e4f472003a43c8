"""Rounding to the integers of a type, in networks that come quantized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register
from n2d2py.operators.concat import Concat
from n2d2py.operators.identity import Dropout, Identity
from n2d2py.operators.resize import Resize


@register
@dataclass(frozen=True)
class Quantize(Op):
    """y = s (clamp(round(x / s) + z) - z): the real numbers that a QuantizeLinear and its DequantizeLinear give.

    Quotients and products are float32, ties go to even. Integer networks have no such layer: the layer before
    rounds its results to `type`.
    """

    type: NumType
    kind: ClassVar[str] = "Quantize"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        centred = self.type.quantize_linear(inputs[0]).astype(inputs[0].dtype) - inputs[0].dtype.type(self.type.zero_point)
        return [centred * inputs[0].dtype.type(np.float32(self.type.scale))]


def is_quantized(graph: Graph) -> bool:
    """Whether the network came with the scales of its integers."""
    return any(isinstance(node.op, Quantize) for node in graph.nodes)


def moved_from(graph: Graph, tensor: str) -> str:
    """The tensor whose values `tensor` holds unchanged, in other places; itself where a layer computes it."""
    node = graph.producer(tensor)
    while node is not None and _moves(node):
        tensor = node.inputs[0]
        node = graph.producer(tensor)
    return tensor


def grid_of(graph: Graph, tensor: str) -> NumType | None:
    """The type to whose integers the values of `tensor` are rounded; None where they are not."""
    source = moved_from(graph, tensor)
    node = graph.producer(source)
    if node is None or node.activation is not None:
        return None
    if isinstance(node.op, Quantize):
        return node.op.type
    if isinstance(node.op, Concat):
        grids = {grid_of(graph, name) for name in node.inputs}
        return grids.pop() if len(grids) == 1 else None
    return None


def _moves(node: Node) -> bool:
    """Whether the layer gives single values of its first input, and no means of them."""
    mean = isinstance(node.op, Resize) and node.op.mode != "Nearest"
    return node.activation is None and not mean and (node.op.moves_values or isinstance(node.op, (Identity, Dropout)))
