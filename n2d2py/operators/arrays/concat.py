"""Arrays one behind the other along an axis."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.epilogue import epilogue
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.exports.cpp.parts import Call
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.tensors import Value
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Custom
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.emitting import flat, operands
from n2d2py.operators.arrays.lowering import output_pointer, pointers
from n2d2py.operators.arrays.values import Arrays, onnx_array
from n2d2py.operators.base import register
from n2d2py.operators.concat import Concat
from n2d2py.quant.contract import LayerTypes, Quantizer, quantizer
from n2d2py.quant.forming import moved, peak, rescaled
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class ArrayConcat(ArrayOp):
    """`outer` times: lengths[0] elements of operand 0, lengths[1] of operand 1, ...

    `alike`: one of them is a state that was taken from what the others gave in the call before, so that one scale is fit for all.
    """

    outer: int
    lengths: tuple[int, ...]
    slots: tuple[int, ...] = (0,)
    result: str = ""
    alike: bool = field(default=False, repr=False)
    kind: ClassVar[str] = "ArrayConcat"

    def operand_sizes(self) -> tuple[int, ...]:
        return tuple(self.outer * length for length in self.lengths)

    def output_size(self) -> int:
        return self.outer * sum(self.lengths)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return self.typed(self._joined(inputs, node), inputs)

    def _joined(self, inputs: list[np.ndarray], node) -> np.ndarray:
        count = len(inputs[0])
        parts = [
            np.broadcast_to(x, (count, x.shape[1])).reshape(count, self.outer, length)
            for x, length in zip(self.operands(inputs, node), self.lengths, strict=True)
        ]
        return np.concatenate(parts, axis=2)

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Inputs of another type are rescaled, each by its factor; constants are stored in the type of the output."""
        if node.rescale is None:
            return super().run_integer(inputs, node, graph)
        kind, (low, high) = graph.type(node.output), node.limits
        parts = []
        for index, (name, x) in enumerate(zip(node.inputs, inputs, strict=True)):
            centred = x.astype(np.int64) - graph.type(name).zero_point
            rescaled = node.rescale.only(index).apply(centred, low - kind.zero_point, high - kind.zero_point)
            parts.append((rescaled + kind.zero_point).astype(kind.dtype))
        return [self._joined(parts, node).reshape(len(inputs[0]), -1)]


def joins(node: Node | QuantNode) -> bool:
    """Whether a layer joins tensors of real numbers alone, which get one type as far as their ranges allow."""
    op = node.op
    plain = isinstance(op, ArrayConcat) and not (op.result or op.alike or -1 in op.slots)
    return plain or isinstance(op, Concat)


def join(a: Arrays, values: list[Value], axis: int) -> Value:
    """The values one behind the other along `axis`."""
    first = values[0].dims
    if any(
        len(v.dims) != len(first) or any(d != f for i, (d, f) in enumerate(zip(v.dims, first, strict=True)) if i != axis)
        for v in values
    ):
        raise Unsupported("its inputs have shapes that do not fit each other")
    values = [value for value in values if value.dims[axis]]
    constants = [value.constant for value in values if value.constant is not None]
    if len(constants) == len(values):
        made = np.concatenate(constants, axis)
        return Value(made.shape, values[0].kind, None, made)
    if len(values) == 1:
        return values[0]
    dims = (*first[:axis], sum(value.dims[axis] for value in values), *first[axis + 1 :])
    inner = prod(first[axis + 1 :])
    if prod(first[:axis]) == 1 and not any(value.is_constant or value.kind for value in values):
        return a.add(Concat(), values, dims, label="joined")  # vectors in order, which has integers too
    alike = any(value.tensor == name for value in values for name, _ in a.builder.model.states)
    lengths = tuple(value.dims[axis] * inner for value in values)
    op = ArrayConcat(prod(first[:axis]), lengths, a.slots(values), values[0].kind, alike)
    return a.add(op, values, dims, label="joined")


@onnx_array("Concat")
def _concat(a: Arrays) -> None:
    axis = a.node.axis_of(a.node.attribute("axis", 1), len(a.value(0).dims))
    a.builder.guard_batch(a.node, 0, axis, "joins")
    a.bind(join(a, a.values(), axis))


@onnx_emitter("ArrayConcat")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    shapes = tuple((op.outer, length) for length in op.lengths)
    parts = operands(writer, node, shapes)
    count = writer.emit("Shape", [node.inputs[0]], start=0, end=1)
    for index, (slot, dims) in enumerate(zip(op.slots, shapes, strict=True)):
        if slot < 0:
            wanted = writer.emit("Concat", [count, writer.constant(list(dims))], axis=0)
            parts[index] = writer.emit("Expand", [parts[index], wanted])
    flat(writer, writer.emit("Concat", parts, axis=2), output)


memory_access("ArrayConcat")(whole)


@quantizer("ArrayConcat")
class ArrayConcatQuantizer(Quantizer):
    """Inputs of the output's type are copied where all are; otherwise each is rescaled by s_i / s_y. Constants are quantized."""

    def refuses(self, node: Node) -> str | None:
        op = node.op
        if op.result or any(node.params[f"operand{i}"].dtype.kind != "f" for i, slot in enumerate(op.slots) if slot < 0):
            return "arrays of integers joined"
        return None

    def quantize(self, node: Node, types: LayerTypes) -> QuantNode:
        if joins(node) and all(kind == types.output for kind in types.inputs):
            return moved(node, types)
        factors = np.array([kind.scale / types.output.scale for kind in types.inputs])
        constants = {role: types.output.quantize(values.astype(np.float64)) for role, values in node.params.items()}
        return rescaled(node, types, factors, max(map(peak, types.inputs)), Custom(constants))

    def real_params(self, node: QuantNode, graph: QuantGraph) -> dict[str, np.ndarray]:
        """Constants are stored in the type of the output."""
        return {role: graph.type(node.output).dequantize(values) for role, values in node.params.items()}


@cpp("ArrayConcat")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a concatenation."""
    op, calls, first, total = layer.op, [], 0, sum(layer.op.lengths)
    for slot, operand, length in zip(op.slots, pointers(layer), op.lengths, strict=True):
        sizes, ends = (op.outer, length, total, first), (operand, output_pointer(layer))
        if slot < 0 or layer.node.rescale is None:
            calls.append(Call("n2d2::arrayConcat", sizes, ends))
        else:
            stored = epilogue(layer, only=slot)
            calls.append(Call("n2d2::arrayConcatRescaled", (stored, layer.inputs[slot].zero_point, *sizes), ends))
        first += length
    return layer.code("array_move", *calls)
