"""Rearrangement of channel groups into blocks of pixels, and back."""

from __future__ import annotations

import numpy as np

from n2d2py.exports.cpp.epilogue import moving_epilogue
from n2d2py.exports.cpp.layer import Layer, LayerCode, cpp
from n2d2py.graph import Node, Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx_array
from n2d2py.operators.base import Op, register
from n2d2py.quant.contract import quantizer
from n2d2py.quant.forming import Moving
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
class DepthToSpace(Op):
    """y[c, h b + i, w b + j] = x[d, h, w] with b the block and d = (i b + j) C + c, or c b b + i b + j with
    `channels_first`, C being the channels of the output.
    """

    block: int
    channels_first: bool = False
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape, area = inputs[0], self.block**2
        self.require_rank(shape, 4, node)
        if shape[1] % area:
            what = f"has {shape[1]} input channels, which is not a multiple of {self.block}x{self.block}"
            raise self.error("E244", node, what)
        return [(shape[0], shape[1] // area, shape[2] * self.block, shape[3] * self.block)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, b = inputs[0], self.block
        n, depth, h, w = x.shape
        c = depth // b**2
        if self.channels_first:
            blocks = x.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
        else:
            blocks = x.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2)
        return [np.ascontiguousarray(blocks).reshape(n, c, h * b, w * b)]


@register
class SpaceToDepth(Op):
    """y[d, h, w] = x[c, h b + i, w b + j] with d as in DepthToSpace, C being the channels of the input."""

    block: int
    channels_first: bool = False
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape, b = inputs[0], self.block
        self.require_rank(shape, 4, node)
        if shape[2] % b or shape[3] % b:
            what = f"has an input of {shape[3]}x{shape[2]}, which is not a multiple of {b}x{b} (width x height)"
            raise self.error("E244", node, what)
        return [(shape[0], shape[1] * b * b, shape[2] // b, shape[3] // b)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, b = inputs[0], self.block
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // b, b, w // b, b)
        blocks = blocks.transpose((0, 1, 3, 5, 2, 4) if self.channels_first else (0, 3, 5, 1, 2, 4))
        return [np.ascontiguousarray(blocks).reshape(n, c * b * b, h // b, w // b)]


@onnx_array("DepthToSpace", "SpaceToDepth", images=True)
def _from_onnx(a: Arrays) -> None:
    x, block, channels_first = a.image(), int(a.node.attribute("blocksize", 0)), a.node.attribute("mode", "DCR") == "CRD"
    if block < 1:
        raise Unsupported(f"blocksize={block} is not supported")
    kind = DepthToSpace if a.node.type == "DepthToSpace" else SpaceToDepth
    if x.image is not None and len(x.dims) == 4:
        a.bind(a.layer(kind(block, channels_first), x, "blocks"))
        return
    if len(x.dims) != 4:
        raise Unsupported(f"an input of rank {len(x.dims)} is not supported", "give it an image of rank 4")
    n, c, h, w = x.dims
    if kind is SpaceToDepth:
        split = a.reshape(x, (n, c, h // block, block, w // block, block))
        turned = a.transpose(split, (0, 1, 3, 5, 2, 4) if channels_first else (0, 3, 5, 1, 2, 4))
        a.bind(a.reshape(turned, (n, c * block * block, h // block, w // block)))
        return
    depth = c // (block * block)
    if channels_first:
        turned = a.transpose(a.reshape(x, (n, depth, block, block, h, w)), (0, 1, 4, 2, 5, 3))
    else:
        turned = a.transpose(a.reshape(x, (n, block, block, depth, h, w)), (0, 3, 4, 1, 5, 2))
    a.bind(a.reshape(turned, (n, depth, h * block, w * block)))


@onnx_emitter("DepthToSpace", "SpaceToDepth")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """Add Reshape, Transpose and Reshape: ONNX's SpaceToDepth has only one channel order."""
    op, (_, c, h, w) = node.op, writer.graph.shape(node.inputs[0])
    b = op.block
    if op.kind == "DepthToSpace":
        writer.emit("DepthToSpace", node.inputs, output, blocksize=b, mode="CRD" if op.channels_first else "DCR")
        return
    split = writer.emit("Reshape", [node.inputs[0], writer.constant([0, c, h // b, b, w // b, b])])
    order = [0, 1, 3, 5, 2, 4] if op.channels_first else [0, 3, 5, 1, 2, 4]
    turned = writer.emit("Transpose", [split], perm=order)
    writer.emit("Reshape", [turned, writer.constant([0, c * b * b, h // b, w // b])], output)


memory_access("DepthToSpace", "SpaceToDepth")(whole)


quantizer("DepthToSpace", "SpaceToDepth")(Moving)


@cpp("DepthToSpace", "SpaceToDepth")
def _lower(layer: Layer) -> LayerCode:
    op = layer.requiring_whole_input().op
    config = layer.config(
        f"{op.kind} with blocks of {op.block}",
        {**layer.planes, "Epilogue": moving_epilogue(layer)},
        {"Block": op.block, "ChannelsFirst": op.channels_first, "Serial": 0},
    )
    return layer.code("depth_to_space", layer.call(op.kind[0].lower() + op.kind[1:], config))
