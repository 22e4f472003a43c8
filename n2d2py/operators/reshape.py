"""Reinterpretation of the elements in another shape."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.contracts.cpp import Layer, LayerCode, cpp, image_axes, move
from n2d2py.contracts.ini import NB_OUTPUTS, WINDOW_KEYS, LayerContext, ini
from n2d2py.contracts.operator import Op, register
from n2d2py.contracts.quant.forming import MovingAnyIntegers
from n2d2py.contracts.quant.quantizer import quantizer
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, Shape, elements, n2d2_dims
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, same_order


@register
class Reshape(Op):
    """The elements in row-major (C, H, W) order as `dims`, the shape without the batch axis."""

    dims: tuple[int, ...]
    moves_values = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if prod(self.dims) != prod(inputs[0][1:]):
            old, new = ("x".join(map(str, dims)) for dims in (inputs[0][1:], self.dims))
            raise self.error("E208", node, f"cannot change {old} to {new}", "keep the number of elements")
        return [(inputs[0][0], *self.dims)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0].reshape(len(inputs[0]), *self.dims)]


@ini(
    "Reshape",
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("Dims", Kind.INTS, doc="Dimensions X Y C of the result. 0: dimension of the input. -1 (once): inferred.", minimum=-1),
    doc="Reshape the elements in the order x + X * (y + Y * c).",
)
def _from_ini(context: LayerContext) -> None:
    tensor, dims = context.concat_inputs(), list(context.values["Dims"])
    shape = context.graph.shape(tensor)
    if not 1 <= len(dims) <= 3 or dims.count(-1) > 1:
        what = f"Dims with {len(dims)} values, {dims.count(-1)} of them -1, is not a shape"
        raise context.fail("E208", what, "give X Y C with at most one -1", "Dims")
    if len(dims) == 1:
        dims = [1, 1, dims[0] or shape[1]]  # a vector
    elif len(dims) == 2:
        dims = [dims[0], 1, dims[1]]  # a sequence of X positions
    dims = [size or old for size, old in zip(dims, n2d2_dims(shape), strict=True)]
    if -1 in dims:
        dims[dims.index(-1)] = elements(shape) // -prod(dims) or 1
    context.add(Reshape(tuple(reversed(dims))), [tensor])
    context.require_channels(context.name)


@onnx_emitter("Reshape")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Reshape", [node.inputs[0], writer.constant([0, *node.op.dims])], output)


memory_access("Reshape")(same_order)


quantizer("Reshape")(MovingAnyIntegers)


@cpp("Reshape")
def _lower(layer: Layer) -> LayerCode:
    """Return the C++ of a reshape that is not a view. Raise E703 for a tensor with more than three axes after the batch."""
    for shape in (layer.requiring_whole_input().input_shape, layer.output_shape):
        image_axes(layer, shape)
    return move(layer, "reshape", {"Serial": 0})
