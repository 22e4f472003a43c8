"""Positions of the largest or smallest elements, in order."""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.cpp.layer import Layer, LayerCode, cpp
from n2d2py.contracts.operator import register
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import AxisOp, around_axis
from n2d2py.operators.arrays.emitting import emit_flat, emit_reshape
from n2d2py.operators.arrays.gather import ArrayGather
from n2d2py.operators.arrays.lowering import kernel_call
from n2d2py.operators.arrays.values import Arrays, Unsupported, onnx


@register
class ArrayTopK(AxisOp):
    """Positions (outer, count, inner) of the `count` largest elements along the middle axis of (outer, size, inner).

    The largest comes first (without `largest`, the smallest); of equal elements, the lower position. NaN is the largest.
    """

    count: int
    largest: bool = True
    result: str = "int64"

    def output_size(self) -> int:
        return self.outer * self.count * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.outer * self.size * self.inner * self.count

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = self.to_lines(inputs[0])
        if self.largest:  # stable: of equal elements, the lower position comes first
            order = self.size - 1 - np.argsort(x[:, :, ::-1], axis=2, kind="stable")[:, :, ::-1]
        else:
            order = np.argsort(x, axis=2, kind="stable")
        return self.as_output(order[:, :, : self.count], inputs)


@onnx("TopK")
def _top(a: Arrays) -> None:
    """Add a TopK with constant K: sorted positions, and the elements at them."""
    x = a.tensor(a.value(0))
    axis = a.node.axis_of(a.node.attribute("axis", -1), len(x.dims))
    a.builder.guard_batch(a.node, 0, axis, "orders")
    count = int(a.node.constant(1, "K").item()) if a.node.has(1) else int(a.node.attribute("k"))
    if not 0 < count <= x.dims[axis]:
        raise Unsupported(f"k={count} is out of range for an axis of {x.dims[axis]} elements")
    lines, dims = around_axis(x.dims, axis), (*x.dims[:axis], count, *x.dims[axis + 1 :])
    order = a.add(ArrayTopK(*lines, count, bool(a.node.attribute("largest", 1))), [x], dims, label="order")
    if a.node.outputs[0]:
        values = ArrayGather(*lines, count, True, a.slots([x, order]), x.kind)
        a.bind(a.add(values, [x, order], dims, label="values"))
    a.bind(order, 1)


@onnx_emitter("ArrayTopK")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x = emit_reshape(writer, node.inputs[0], (op.outer, op.size, op.inner))
    _, result = writer.emit_all("TopK", [x, writer.constant([op.count])], 2, axis=2, largest=int(op.largest), sorted=1)
    emit_flat(writer, result, output)


memory_access("ArrayTopK")(whole)


@cpp("ArrayTopK")
def _lower(layer: Layer) -> LayerCode:
    op = layer.op
    return kernel_call(layer, "array_reduce", "arrayTopK", (op.outer, op.size, op.inner, op.count, bool(op.largest)))
