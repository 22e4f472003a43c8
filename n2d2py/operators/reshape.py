"""The same elements in another shape."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.common import image_axes, move
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.inputs import WINDOW_KEYS, require_channels
from n2d2py.frontend.ini.keys import LAYER, NB_OUTPUTS
from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph import Node
from n2d2py.graph.shapes import Shape, elements, n2d2_dims
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, same_order
from n2d2py.operators.base import Op, register
from n2d2py.quant.contract import quantizer
from n2d2py.quant.forming import MovingAnything
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class Reshape(Op):
    """The elements in row-major (C, H, W) order as `dims`, the shape without the batch axis."""

    dims: tuple[int, ...]
    kind: ClassVar[str] = "Reshape"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        if prod(self.dims) != prod(inputs[0][1:]):
            raise N2D2Error(
                "E208",
                f"Reshape '{node.name}' cannot change {'x'.join(map(str, inputs[0][1:]))} to {'x'.join(map(str, self.dims))}",
                where=node.location,
                remedy="keep the number of elements",
            )
        return [(inputs[0][0], *self.dims)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0].reshape(len(inputs[0]), *self.dims)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)


_MIXES = "it mixes the batch axis with others"
_KEEP_BATCH = "keep the batch axis first"


def _add(node: OnnxNode, builder: Builder, shape: list[int]) -> None:
    """A Reshape to `shape`, batch axis included."""
    if min(shape, default=0) < 0:
        raise Unsupported(f"its shape {shape} has a negative size")
    if len(shape) < 2 or shape[0] != 1:
        raise Unsupported(_MIXES if len(shape) > 1 else "its result has no batch axis", _KEEP_BATCH)
    builder.layer(node, Reshape(tuple(shape[1:])), [node.tensor()])


@onnx("Reshape")
def _reshape(node: OnnxNode, builder: Builder) -> None:
    given = node.shape()
    target = [int(size) for size in node.constant(1, "shape").reshape(-1)]
    if not node.attribute("allowzero", 0):
        if any(size == 0 and axis >= len(given) for axis, size in enumerate(target)):
            raise Unsupported("its shape copies an axis that its input does not have")
        target = [given[axis] if size == 0 else size for axis, size in enumerate(target)]
    if target and target[0] == builder.model.batch and -1 not in target and prod(target) == prod(given) * target[0]:
        target[0] = 1
    if -1 in target:
        rest = -prod(target)
        if target[0] == builder.model.batch and rest > 0 and prod(given) % rest:
            target[0], rest = 1, rest // target[0]
        if rest <= 0 or prod(given) % rest:
            raise Unsupported(f"its shape {target} does not match its input of {prod(given)} elements")
        target[target.index(-1)] = prod(given) // rest
    _add(node, builder, target)


@onnx("Flatten")
def _flatten(node: OnnxNode, builder: Builder) -> None:
    shape = node.shape()
    axis = node.attribute("axis", 1)
    axis = len(shape) if axis == len(shape) else node.axis_of(axis, len(shape))
    if axis == 0 and builder.model.batch != 1:
        raise Unsupported(_MIXES, _KEEP_BATCH)
    _add(node, builder, [prod(shape[:axis]), prod(shape[axis:])])


@onnx("Squeeze")
def _squeeze(node: OnnxNode, builder: Builder) -> None:
    shape = node.shape()
    axes = node.axes(len(shape))
    if axes is None:
        axes = [axis for axis, size in enumerate(shape) if size == 1]
    if any(shape[axis] != 1 for axis in axes):
        raise Unsupported("it removes an axis whose size is not 1")
    if 0 in axes:
        raise Unsupported("it removes the batch axis", "squeeze named axes only")
    _add(node, builder, [size for axis, size in enumerate(shape) if axis not in axes])


@onnx("Unsqueeze")
def _unsqueeze(node: OnnxNode, builder: Builder) -> None:
    shape = node.shape()
    axes = node.new_axes(len(shape))
    if 0 in axes:
        raise Unsupported("it adds an axis before the batch axis", _KEEP_BATCH)
    sizes = iter(shape)
    _add(node, builder, [1 if axis in axes else next(sizes) for axis in range(len(shape) + len(axes))])


_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("Dims", Kind.INTS, doc="Dimensions X Y C of the result. 0: dimension of the input. -1 (once): inferred.", minimum=-1),
    name="Reshape",
    doc="Reshape the elements in the order x + X * (y + Y * c).",
)


@ini("Reshape", _SCHEMA)
def _from_ini(context: LayerContext) -> None:
    tensor, dims = context.joined(), list(context.values["Dims"])
    shape = context.graph.shape(tensor)
    if not 1 <= len(dims) <= 3 or dims.count(-1) > 1:
        raise context.fail(
            "E208",
            f"Dims with {len(dims)} values, {dims.count(-1)} of them -1, is not a shape",
            "give X Y C with at most one -1",
            "Dims",
        )
    if len(dims) == 1:
        dims = [1, 1, dims[0] or shape[1]]  # a vector
    elif len(dims) == 2:
        dims = [dims[0], 1, dims[1]]  # a sequence of X positions
    dims = [given or kept for given, kept in zip(dims, n2d2_dims(shape), strict=True)]
    if -1 in dims:
        dims[dims.index(-1)] = elements(shape) // -prod(dims) or 1
    context.add(Reshape(tuple(reversed(dims))), [tensor])
    require_channels(context, context.name)


@onnx_emitter("Reshape")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Reshape", [node.inputs[0], writer.constant([0, *node.op.dims])], output)


memory_access("Reshape")(same_order)


quantizer("Reshape")(MovingAnything)


@cpp("Reshape")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a reshape that is not a view.

    Raises:
        N2D2Error: E703 for a tensor of more than three axes after the batch.
    """
    for shape in (layer.apart().input_shape, layer.output_shape):
        image_axes(layer, shape)
    return move(layer, "reshape", {"Serial": 0})
