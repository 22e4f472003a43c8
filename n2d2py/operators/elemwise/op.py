"""Element-wise combination of several tensors; axes of length 1 are broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph import Node
from n2d2py.graph.forms import Aligned, Dequantized
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import memory_access, pointwise
from n2d2py.operators.base import Op, register
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class ElemWise(Op):
    """Combination of inputs T_i with weights w_i and shifts s_i (one per input).

    Sum: sum of w_i T_i + s_i. AbsSum: sum of w_i |T_i|. EuclideanSum: sqrt of the sum of (w_i T_i + s_i)^2. Prod: product of
    T_i. Max, Min: largest, smallest T_i. One input has the shape of the output; axes of length 1 of the others are broadcast.
    """

    operation: str
    weights: tuple[float, ...] = ()
    shifts: tuple[float, ...] = ()
    kind: ClassVar[str] = "ElemWise"
    OPERATIONS: ClassVar[tuple[str, ...]] = ("Sum", "AbsSum", "EuclideanSum", "Prod", "Max", "Min")

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        full = max(inputs, key=prod)
        for shape in inputs:
            if len(shape) != len(full) or any(size not in (1, whole) for size, whole in zip(shape, full, strict=True)):
                dims = " and ".join("x".join(map(str, s[1:])) for s in dict.fromkeys([inputs[0], shape, full]))
                what = f"ElemWise '{node.name}' has inputs of different shapes {dims}"
                remedy = "use inputs of equal shape; axes of length 1 are broadcast"
                raise N2D2Error("E205", what, where=node.location, remedy=remedy)
        return [full]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(np.prod(output)) * len(inputs)

    def coefficients(self, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return (weights, shifts), completed with 1 and 0 for `count` inputs."""
        weights = tuple(self.weights) or (1.0,) * count
        shifts = tuple(self.shifts) or (0.0,) * count
        return weights, shifts

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        dtype = inputs[0].dtype.type
        weights, shifts = self.coefficients(len(inputs))
        if self.operation == "Prod":
            return [reduce(np.multiply, inputs)]
        if self.operation == "Max":
            return [reduce(np.maximum, inputs)]
        if self.operation == "Min":
            return [reduce(np.minimum, inputs)]
        if self.operation == "AbsSum":
            return [reduce(np.add, (dtype(w) * np.abs(x) for w, x in zip(weights, inputs, strict=True)))]
        terms = [dtype(w) * x + dtype(s) for w, s, x in zip(weights, shifts, inputs, strict=True)]
        if self.operation == "Sum":
            return [reduce(np.add, terms)]
        return [np.sqrt(reduce(np.add, (t * t for t in terms)))]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Bring the inputs to one scale by integer multipliers m_i, combine them, and requantize.

        Sum: acc = sum of m_i q_i + offset. AbsSum: sum of m_i |q_i|. Max, Min: largest, smallest m_i q_i. Prod: product of q_i.
        Dequantized, for operators of pre-quantized networks and every EuclideanSum: the same of real numbers scale_i q_i in
        float32.
        """
        if isinstance(node.form, Dequantized):
            return [node.requantize(self._real(inputs, node, graph), graph.type(node.output))]
        form = node.form_as(Aligned)
        zero_points = [graph.type(name).zero_point for name in node.inputs]
        kind = np.int32 if node.bound < 2**31 else np.int64
        x = [np.subtract(a, z, dtype=kind) for a, z in zip(inputs, zero_points, strict=True)]
        m = [int(v) for v in form.multipliers]
        if self.operation == "Prod":
            acc = reduce(np.multiply, x)
        elif self.operation == "Max":
            acc = reduce(np.maximum, (k * a for k, a in zip(m, x, strict=True)))
        elif self.operation == "Min":
            acc = reduce(np.minimum, (k * a for k, a in zip(m, x, strict=True)))
        elif self.operation == "AbsSum":
            acc = reduce(np.add, (k * np.abs(a) for k, a in zip(m, x, strict=True)))
        else:
            acc = reduce(np.add, (k * a for k, a in zip(m, x, strict=True))) + int(form.offset[0])
        return [node.requantize(acc, graph.type(node.output))]

    def _real(self, inputs: list[np.ndarray], node, graph) -> np.ndarray:
        """Return the result in float32, combined from left to right."""
        terms = [
            (x.astype(np.float32) - np.float32(graph.type(name).zero_point)) * scale
            for x, name, scale in zip(inputs, node.inputs, node.form_as(Dequantized).scales, strict=True)
        ]
        if self.operation == "EuclideanSum":
            return np.sqrt(reduce(np.add, (t * t for t in terms)))
        combine = {"Sum": np.add, "Prod": np.multiply, "Max": np.maximum, "Min": np.minimum}[self.operation]
        return reduce(combine, terms)


memory_access("ElemWise")(pointwise)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("ElemWise")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.operation in ("Max", "Min"):
        writer.emit(op.operation, node.inputs, output)
        return
    if op.operation == "Prod":
        _emit_chain(writer, "Mul", node.inputs, output)
        return
    terms = []
    for x, weight, shift in zip(node.inputs, *op.coefficients(len(node.inputs)), strict=True):
        if op.operation == "AbsSum":
            x, shift = writer.emit("Abs", [x]), 0.0
        x = x if weight == 1 else writer.emit("Mul", [x, writer.constant(float(weight))])
        x = x if shift == 0 else writer.emit("Add", [x, writer.constant(float(shift))])
        terms.append(writer.emit("Mul", [x, x]) if op.operation == "EuclideanSum" else x)
    if op.operation == "EuclideanSum":
        writer.emit("Sqrt", [_emit_chain(writer, "Add", terms, writer.fresh(f"{output}_sum"))], output)
    else:
        _emit_chain(writer, "Add", terms, output)


def _emit_chain(writer: OnnxWriter, op_type: str, terms: list[str], output: str) -> str:
    """Emit ((t0 op t1) op t2) ..., named `output`."""
    if len(terms) == 1:
        return writer.emit("Identity", terms, output)
    result = terms[0]
    for index, term in enumerate(terms[1:], 2):
        result = writer.emit(op_type, [result, term], output if index == len(terms) else None)
    return result
