"""Concatenation of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue, moving_epilogue
from n2d2py.exports.cpp.forms.select import vectors
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Call
from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Moved
from n2d2py.graph.shapes import Shape, channels
from n2d2py.memory.access import Access, Concatenated, memory_access
from n2d2py.operators.base import Op, register
from n2d2py.operators.identity import Identity
from n2d2py.operators.transpose import Transpose, channels_first
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import moved, peak, rescaled
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class Concat(Op):
    """The channels of all inputs in order; the other axes must agree."""

    kind: ClassVar[str] = "Concat"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        first = inputs[0]
        for shape in inputs[1:]:
            if len(shape) != len(first) or shape[2:] != first[2:]:
                dims = " and ".join("x".join(map(str, s[1:])) for s in (first, shape))
                raise N2D2Error(
                    "E206",
                    f"Concat '{node.name}' has inputs of different sizes {dims}",
                    where=node.location,
                    remedy="use inputs of equal width and height",
                )
        return [(first[0], sum(shape[1] for shape in inputs), *first[2:])]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [np.concatenate(inputs, axis=1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Inputs of the output's type are copied; others are rescaled by their own factor of `rescale`."""
        kind = graph.type(node.output)
        if isinstance(node.form, Moved):
            return [np.concatenate(inputs, axis=1)]
        channels = np.concatenate([np.full(x.shape[1], i) for i, x in enumerate(inputs)])
        stacked = np.concatenate(
            [x.astype(np.int64) - graph.type(name).zero_point for x, name in zip(inputs, node.inputs, strict=True)], axis=1
        )
        result = np.empty(stacked.shape, kind.dtype)
        for i in range(len(inputs)):
            acc = np.zeros((stacked.shape[0], len(inputs), *stacked[:, channels == i].shape[1:]), np.int64)
            acc[:, i] = stacked[:, channels == i]
            result[:, channels == i] = node.requantize(acc, kind)[:, i]
        return [result]


# ---- ONNX import ---------------------------------------------------------------------------------
# Concat; along another axis than channels between transpositions.
@onnx("Concat")
def _concat(node: OnnxNode, builder: Builder) -> None:
    tensors = [node.tensor(index) for index in range(len(node.inputs))]
    axis = node.axis_of(node.attribute("axis"), len(node.shape()))
    if len(tensors) == 1:
        builder.layer(node, Identity(), tensors)
    elif axis == 1:
        builder.layer(node, Concat(), tensors)
    else:
        seen = [channels_first(tensor, builder.graph) for tensor in tensors]
        permutation = seen[0][1]
        if axis == 0:
            raise Unsupported("it concatenates along the batch axis", "join another axis")
        if any(p != permutation for _, p in seen) or permutation[axis] != 1:
            _turned(node, builder, tensors, axis)
            return
        joined = builder.layer(node, Concat(), [source for source, _ in seen], part="channels")
        builder.layer(node, Transpose(permutation), [joined])


def _turned(node: OnnxNode, builder: Builder, tensors: list[str], axis: int) -> None:
    """Joins any axis: it changes places with the channels before and after."""
    swap = list(range(len(node.shape())))
    swap[1], swap[axis] = axis, 1
    turned = [
        builder.layer(node, Transpose(tuple(swap)), [tensor], part=f"turned{index}") for index, tensor in enumerate(tensors)
    ]
    joined = builder.layer(node, Concat(), turned, part="channels")
    builder.layer(node, Transpose(tuple(swap)), [joined])


# ---- integers ------------------------------------------------------------------------------------
@quantizer("Concat")
class ConcatQuantizer(Quantizer):
    """Inputs of the output's type are copied; otherwise each is rescaled by s_i / s_y."""

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if all(kind == types.output for kind in types.inputs):
            return moved(node, types)
        factors = np.array([kind.scale / types.output.scale for kind in types.inputs])
        return rescaled(node, types, factors, max(map(peak, types.inputs)))


# ---- memory --------------------------------------------------------------------------------------
@memory_access("Concat")
def _concat_memory(node: QuantNode, graph: QuantGraph) -> Access:
    return Concatenated(node.rescale is not None or node.activation is not None)


# ---- C++ -----------------------------------------------------------------------------------------
# Concatenation of channels, line by line; every input with its own rescale.
@cpp("Concat")
def lower(layer: Layer) -> LayerCode:
    """The C++ of a concatenation that the memory plan does not do in place."""
    rescaled = layer.integer and layer.node.rescale is not None
    selection = vectors(layer) if rescaled else layer.portable
    sum_type = layer.sum_type() if rescaled else layer.output.cpp
    configs, first = [], 0
    for i, (name, plane) in enumerate(zip(layer.node.inputs, layer.input_planes, strict=True)):
        stored = epilogue(layer, selection, only=i) if rescaled else moving_epilogue(layer)
        configs.append(
            layer.config(
                f"channels from {first} on, of {name}",
                {"Input": plane, "Output": layer.output_plane, "Sum": sum_type, "Epilogue": stored},
                {"Channel": first, "InputZero": layer.inputs[i].zero_point if rescaled else 0, "Serial": layer.serial},
                selection,
                f"config{i}",
            )
        )
        first += channels(layer.graph.shape(name))
    declared = f"const unsigned char* const inputs[] = {{{', '.join(layer.bases)}}};"
    return layer.code("concat", Call("n2d2::concat", tuple(configs), ("inputs", "out"), (declared,)), selection=selection)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("Concat")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    writer.emit("Concat", node.inputs, output, axis=1)
