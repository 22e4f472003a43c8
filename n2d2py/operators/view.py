"""A tensor's memory reinterpreted with other dimensions, such as rows of an array as pixels of an image."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.forming import Moving
from n2d2py.contracts.quant.quantizer import quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.errors import InternalError
from n2d2py.graph import Node, Shape, elements, in_memory_order, of_memory_order
from n2d2py.memory.access import View, memory_access
from n2d2py.operators.arrays.emitting import emit_flat, emit_reshape


@register
class MemoryView(Op):
    """The elements of the input in memory order as a tensor of `dims`, without the batch axis.

    The array (1, W * C) is the image (C, 1, W) with element c of row w at channel c of column w.
    """

    dims: Shape
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if elements(inputs[0]) != prod(self.dims):
            text = "x".join(map(str, inputs[0][1:]))
            raise self.error("E208", node, f"requires {prod(self.dims)} elements, but its input has shape {text}")
        return [(inputs[0][0], *self.dims)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [of_memory_order(in_memory_order(inputs[0]), (1, *self.dims))]


@onnx_emitter("MemoryView")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    emit_flat(writer, emit_reshape(writer, node.inputs[0], (-1,)), output)


memory_access("MemoryView")(lambda node, graph: View())


quantizer("MemoryView")(Moving)


@cpp("MemoryView")
def _lower(layer: Layer) -> LayerCode:
    # the passes only insert views between layers, never between an input and an output of the network
    raise InternalError(f"{layer.name}: a view has no code")
