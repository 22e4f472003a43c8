"""Rearrangement of channel groups into blocks of pixels, and back."""

from dataclasses import dataclass

import numpy as np

from n2d2py.contracts.cpp import Layer, LayerCode, cpp, moving_epilogue
from n2d2py.contracts.facets import OnnxWriter, Op, onnx_emitter, register
from n2d2py.contracts.quant.quantizer import Moving, quantizer
from n2d2py.graph import Node, Shape
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx


@dataclass(frozen=True)
class BlockOp(Op):
    """A rearrangement of the elements of an image with blocks of `block` x `block` pixels. The channels are ordered by those of
    the image, then of the block (`channels_first`), or the reverse."""

    block: int
    channels_first: bool = False
    moves_values = True

    def steps(self, c: int, h: int, w: int) -> tuple[Shape, Shape, Shape]:
        """Return (dimensions to split an image into, permutation of these axes, dimensions of the result)."""
        raise NotImplementedError

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, (split, order, result) = inputs[0], self.steps(*inputs[0].shape[1:])
        blocks = x.reshape(len(x), *split).transpose(0, *(1 + axis for axis in order))
        return [np.ascontiguousarray(blocks).reshape(len(x), *result)]


@register
class DepthToSpace(BlockOp):
    """y[c, h b + i, w b + j] = x[d, h, w] with b the block and d = (i b + j) C + c, or c b b + i b + j with
    `channels_first`, C being the channels of the output.
    """

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape, b = inputs[0], self.block
        self.require_rank(shape, 4, node)
        if shape[1] % b**2:
            raise self.error("E244", node, f"has {shape[1]} input channels, which is not a multiple of {b}x{b}")
        return [(shape[0], *self.steps(*shape[1:])[2])]

    def steps(self, c: int, h: int, w: int) -> tuple[Shape, Shape, Shape]:
        b, depth = self.block, c // self.block**2
        result = (depth, h * b, w * b)
        if self.channels_first:
            return (depth, b, b, h, w), (0, 3, 1, 4, 2), result
        return (b, b, depth, h, w), (2, 3, 0, 4, 1), result


@register
class SpaceToDepth(BlockOp):
    """y[d, h, w] = x[c, h b + i, w b + j] with d as in DepthToSpace, C being the channels of the input."""

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape, b = inputs[0], self.block
        self.require_rank(shape, 4, node)
        if shape[2] % b or shape[3] % b:
            what = f"has an input of {shape[3]}x{shape[2]}, which is not a multiple of {b}x{b} (width x height)"
            raise self.error("E244", node, what)
        return [(shape[0], *self.steps(*shape[1:])[2])]

    def steps(self, c: int, h: int, w: int) -> tuple[Shape, Shape, Shape]:
        b = self.block
        order = (0, 2, 4, 1, 3) if self.channels_first else (2, 4, 0, 1, 3)
        return (c, h // b, b, w // b, b), order, (c * b * b, h // b, w // b)


@onnx("DepthToSpace", "SpaceToDepth")
def _from_onnx(a: Arrays) -> None:
    x, block, channels_first = a.image(), int(a.node.attribute("blocksize", 0)), a.node.attribute("mode", "DCR") == "CRD"
    if block < 1:
        raise Unsupported(f"blocksize={block} is not supported")
    if len(x.dims) != 4:
        raise Unsupported(f"an input of rank {len(x.dims)} is not supported", "give it an image of rank 4")
    op = (DepthToSpace if a.node.type == "DepthToSpace" else SpaceToDepth)(block, channels_first)
    if x.image is not None:
        a.bind(a.layer(op, x, "blocks"))
        return
    split, order, result = op.steps(*x.dims[1:])
    blocks = a.transpose(a.reshape(x, (x.dims[0], *split)), (0, *(1 + axis for axis in order)))
    a.bind(a.reshape(blocks, (x.dims[0], *result)))


@onnx_emitter("DepthToSpace", "SpaceToDepth")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """Add Reshape, Transpose and Reshape: ONNX's SpaceToDepth has only one channel order."""
    op = node.op
    if op.kind == "DepthToSpace":
        writer.emit("DepthToSpace", node.inputs, output, blocksize=op.block, mode="CRD" if op.channels_first else "DCR")
        return
    split, order, result = op.steps(*writer.graph.shape(node.inputs[0])[1:])
    blocks = writer.emit("Reshape", [node.inputs[0], writer.constant([0, *split])])
    ordered = writer.emit("Transpose", [blocks], perm=[0, *(1 + axis for axis in order)])
    writer.emit("Reshape", [ordered, writer.constant([0, *result])], output)


quantizer("DepthToSpace", "SpaceToDepth")(Moving)


@cpp("DepthToSpace", "SpaceToDepth")
def _lower(layer: Layer) -> LayerCode:
    op = layer.requiring_whole_input().op
    types = {**layer.planes, "Epilogue": moving_epilogue(layer)}
    constants = {"Block": op.block, "ChannelsFirst": op.channels_first, "Serial": 0}
    config = layer.config(f"{op.kind} with blocks of {op.block}", types, constants)
    return layer.code("depth_to_space", layer.call(op.kind[0].lower() + op.kind[1:], config))
