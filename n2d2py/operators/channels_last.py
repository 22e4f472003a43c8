"""Vectors that hold rows of features, read as images of one line with the features as channels, and back.

Memory holds images with the channels last, so both are views of the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import Access, View, memory_access
from n2d2py.operators.base import Op, register
from n2d2py.quant.contract import quantizer
from n2d2py.quant.forming import Moving
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class FromChannelsLast(Op):
    """(N, W * C), the element c of row w at w * C + c, as the image (N, C, 1, W)."""

    channels: int
    kind: ClassVar[str] = "FromChannelsLast"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        batch, size = inputs[0][0], inputs[0][1]
        if len(inputs[0]) != 2 or size % self.channels:
            raise N2D2Error(
                "E208",
                f"{self.kind} '{node.name}' requires rows of {self.channels} elements, but its input has shape "
                f"{'x'.join(map(str, inputs[0][1:]))}",
                where=node.location,
                remedy="correct the layer before it",
            )
        return [(batch, self.channels, 1, size // self.channels)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        rows = inputs[0].reshape(len(inputs[0]), 1, -1, self.channels)
        return [np.ascontiguousarray(rows.transpose(0, 3, 1, 2))]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)


@register
@dataclass(frozen=True)
class ToChannelsLast(Op):
    """The image (N, C, H, W), or the line (N, C, W), as (N, H * W * C), pixel by pixel."""

    kind: ClassVar[str] = "ToChannelsLast"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [(inputs[0][0], int(np.prod(inputs[0][1:])))]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [np.ascontiguousarray(np.moveaxis(inputs[0], 1, -1)).reshape(len(inputs[0]), -1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)


@onnx_emitter("FromChannelsLast")
def _from_rows(writer: OnnxWriter, node: Node, output: str) -> None:
    channels = node.op.channels
    rows = writer.emit("Reshape", [node.inputs[0], writer.constant([0, 1, -1, channels])])
    writer.emit("Transpose", [rows], output, perm=[0, 3, 1, 2])


@onnx_emitter("ToChannelsLast")
def _to_rows(writer: OnnxWriter, node: Node, output: str) -> None:
    rows = writer.emit("Transpose", node.inputs, perm=[0, *range(2, len(writer.graph.shape(node.inputs[0]))), 1])
    writer.emit("Reshape", [rows, writer.constant([0, -1])], output)


@memory_access("FromChannelsLast", "ToChannelsLast")
def _view(node: QuantNode, graph: QuantGraph) -> Access:
    return View()


quantizer("FromChannelsLast", "ToChannelsLast")(Moving)


@cpp("FromChannelsLast", "ToChannelsLast")
def _lower(layer: Layer) -> LayerCode:
    """There is no code: the passes put these views between other layers, never between an input and an output of the network."""
    raise InternalError(f"{layer.name}: a view has no code")
