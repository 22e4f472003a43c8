"""Softmax over channels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.functions import exp, log
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.frontend.ini.contract import LayerContext, ini
from n2d2py.frontend.ini.inputs import WINDOW_KEYS, require_channels
from n2d2py.frontend.ini.keys import LAYER, NB_OUTPUTS
from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph import Node
from n2d2py.graph.shapes import Shape, channels
from n2d2py.ini.ignored import TRAINING
from n2d2py.ini.schema import Key, Kind
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.base import Op, register
from n2d2py.operators.transpose import Transpose, channels_first
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class Softmax(Op):
    """exp(x - max) / sum over the channels of each position, in groups of `group_size` (0: all); `log`: its logarithm."""

    group_size: int = 0
    log: bool = False
    kind: ClassVar[str] = "Softmax"
    same_bits: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0]
        size = self.group_size or x.shape[1]
        grouped = x.reshape(x.shape[0], x.shape[1] // size, size, *x.shape[2:])
        wide = grouped.astype(np.float64)
        shifted = wide - wide.max(axis=2, keepdims=True)
        powers = exp(shifted)
        total = np.add.accumulate(powers, axis=2)[:, :, -1:]
        values = shifted - log(total) if self.log else powers / total
        return [values.astype(x.dtype).reshape(x.shape)]


@onnx("Softmax", "LogSoftmax")
def _from_onnx(node: OnnxNode, builder: Builder) -> None:
    _normalise(node, builder, Softmax(log=node.type == "LogSoftmax"))


def _normalise(node: OnnxNode, builder: Builder, op: Softmax) -> None:
    shape = node.shape()
    flattens = node.opset < 13
    axis = node.axis_of(node.attribute("axis", 1 if flattens else -1), len(shape))
    source, permutation = channels_first(node.tensor(), builder.graph)
    if flattens and prod(shape[axis:]) != shape[axis]:
        raise Unsupported(
            f"it normalizes over all axes from {axis} on", "export with opset 13 or newer, where Softmax has one axis"
        )
    if axis == 1:
        builder.layer(node, op, [node.tensor()])
    elif axis == 0:
        raise Unsupported("it normalizes over the batch", "normalize over another axis")
    elif permutation[axis] == 1:
        result = builder.layer(node, op, [source], part="channels")
        builder.layer(node, Transpose(permutation), [result])
    else:
        swap = list(range(len(shape)))
        swap[1], swap[axis] = axis, 1
        turned = builder.layer(node, Transpose(tuple(swap)), [node.tensor()], part="turned")
        result = builder.layer(node, op, [turned], part="channels")
        builder.layer(node, Transpose(tuple(swap)), [result])


_SCHEMA = LAYER.extended(
    NB_OUTPUTS,
    *WINDOW_KEYS,
    Key("WithLoss", Kind.BOOL, False, "training", ignored=TRAINING),
    Key("GroupSize", Kind.UINT, 0, "Number of channels normalized together. 0: all."),
    name="Softmax",
    doc="Softmax over the channels of each position.",
)


@ini("Softmax", _SCHEMA)
def _from_ini(context: LayerContext) -> None:
    tensor = context.joined()
    count, size = require_channels(context, tensor), context.values["GroupSize"]
    if size and count % size:
        raise context.fail(
            "E218",
            f"GroupSize={size} does not divide the {count} channels",
            "choose a divisor of the number of channels",
            "GroupSize",
        )
    context.add(Softmax(0 if size == count else size), [tensor])


@onnx_emitter("Softmax")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    kind = "LogSoftmax" if node.op.log else "Softmax"
    shape = writer.graph.shape(node.inputs[0])
    size = node.op.group_size or shape[1]
    if size == shape[1]:
        writer.emit(kind, node.inputs, output, axis=1)
        return
    grouped = writer.emit("Reshape", [node.inputs[0], writer.constant([0, shape[1] // size, size, *shape[2:]])])
    result = writer.emit(kind, [grouped], axis=2)
    writer.emit("Reshape", [result, writer.constant([0, *shape[1:]])], output)


memory_access("Softmax")(whole)


@cpp("Softmax")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a softmax.

    Raises:
        N2D2Error: E702 in an integer network.
    """
    if layer.integer:
        raise layer.no_integers("remove it, its argument has the same largest element, or export with -nbbits -32")
    group = layer.apart().op.group_size or channels(layer.input_shape)
    types = {**layer.planes, "Epilogue": epilogue(layer)}
    config = layer.config(f"softmax over {group} channels", types, {"Group": group, "Log": layer.op.log})
    return layer.code("softmax", layer.call("softmax", config))
