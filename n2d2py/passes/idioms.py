"""Functions that exporters spell out in several layers become one layer.

Parts are removed if nothing else consumes them.
"""

from __future__ import annotations

from math import exp, isclose, sqrt
from typing import TypeGuard

import numpy as np

from n2d2py.contracts.functions import FunctionRow, Sqrt
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, ElemWise, Identity, Normalize, Reshape
from n2d2py.operators.arrays.map import ArrayMap, function_name, row_constant, scalar_factor
from n2d2py.operators.elemwise.idioms import find_gated_function
from n2d2py.passes.base import Pass


class FuseGate(Pass):
    """ArrayMap Mul that computes g * f(x), such as GELU, SiLU or HardSwish => Activation f(x), if g is 1, or if g times the
    constant of an ArrayMap Mul or Div after it is 1."""

    name = "fuse-gate"
    summary = "functions of several array layers merged into one"

    def match(self, graph: Graph, node: Node) -> tuple[str, FunctionRow, Node | None] | str | None:
        op = node.op
        if not isinstance(op, ArrayMap) or op.function != "Mul" or sorted(op.slots) != [0, 1] or op.result or node.activation:
            return None
        if any(shape != op.dims for shape in op.shapes):
            return None
        gate = find_gated_function(graph, *node.inputs)
        if gate is None:
            return None
        x, function, factor = gate
        if isclose(factor, 1.0, rel_tol=1e-5):
            return x, function, None
        reader = graph.sole_consumer(node.output)
        after = None if reader is None else scalar_factor(reader)
        if after is None or not isclose(factor * after, 1.0, rel_tol=1e-5):
            return f"it is {factor:g} times {function.kind}"
        return x, function, reader

    def rewrite(self, graph: Graph, node: Node, gate: tuple[str, FunctionRow, Node | None]) -> str:
        x, function, scaled = gate
        if scaled is not None:
            graph.absorb(node, scaled)
        node.op, node.inputs, node.params = Activation(function), [x], {}
        graph.prune()
        return f"it and the layers before it are {function.kind}"


class FuseMagnitude(Pass):
    """Sqrt(w x * x + v y * y + ...) => EuclideanSum(sqrt(w) x, sqrt(v) y, ...). Squares of a spectrum would have twice its
    dynamic range in decibels."""

    name = "fuse-magnitude"
    summary = "roots of sums of squares merged into one layer"

    def match(self, graph: Graph, node: Node) -> tuple[list[str], tuple[float, ...]] | str | None:
        if not (isinstance(node.op, Activation) and node.op.function == Sqrt()) or node.activation is not None:
            return None
        total = graph.producer(node.inputs[0])
        if not _is_elemwise(total, "Sum") or len(total.inputs) < 2:
            return None
        factors = [square.inputs for square in map(graph.producer, total.inputs) if _is_elemwise(square, "Prod")]
        if [len(names) for names in factors] != [2] * len(total.inputs) or any(first != second for first, second in factors):
            return None
        weights, shifts = total.op.coefficients(len(total.inputs))
        if min(weights) < 0 or any(shifts):
            return "its sum has a shift, or takes a square away"
        return [first for first, _ in factors], tuple(map(sqrt, weights))

    def rewrite(self, graph: Graph, node: Node, operands: tuple[list[str], tuple[float, ...]]) -> str:
        inputs, weights = operands
        node.op, node.inputs, node.params = ElemWise("EuclideanSum", weights if set(weights) != {1.0} else ()), inputs, {}
        graph.prune()
        return "the magnitude of what was squared"


def _is_elemwise(node: Node | None, operation: str) -> TypeGuard[Node]:
    if node is None or node.activation is not None:
        return False
    return isinstance(node.op, ElemWise) and node.op.operation == operation


class FuseNorm(Pass):
    """Normalize, ArrayMap Mul by a constant of a row, ArrayMap Add of one => Normalize with gain and shift."""

    name = "fuse-norm"
    summary = "gains and shifts merged into normalisations of lines"

    def match(self, graph: Graph, node: Node) -> tuple[Node, np.ndarray | None, np.ndarray | None] | None:
        op = node.op
        if not isinstance(op, Normalize) or op.part or node.activation is not None:
            return None
        reader = graph.sole_consumer(node.output)
        if reader is None:
            return None
        gains = row_constant(reader, "Mul", op.size)
        shifts = row_constant(reader, "Add", op.size)
        return None if gains is None and shifts is None else (reader, gains, shifts)

    def rewrite(self, graph: Graph, node: Node, follower: tuple[Node, np.ndarray | None, np.ndarray | None]) -> str:
        reader, gains, shifts = follower
        size = node.op.size
        own, shift = node.params.get("gain", np.ones(size, np.float32)), node.params.get("shift", np.zeros(size, np.float32))
        if gains is not None:
            own, shift = own * gains, shift * gains
        if shifts is not None:
            shift = shift + shifts
        graph.absorb(node, reader)
        node.params = {"gain": own.astype(np.float32), "shift": shift.astype(np.float32)}
        return f"it does what {reader.name} did"


_LEAST_THRESHOLD = 15.0
"""Smallest threshold: softplus(15) is 15 + 3.1e-7, the next float32 is 15 + 9.5e-7."""
assert exp(-_LEAST_THRESHOLD) < _LEAST_THRESHOLD * 2.0**-24


class RemoveSoftplusTail(Pass):
    """Where(x > c, x, Softplus(x)) => Softplus(x), for a large c: log(1 + exp(x)) equals x in float32 there, as in PyTorch."""

    name = "remove-softplus-tail"
    summary = "choices between a softplus and its argument removed"

    def match(self, graph: Graph, node: Node) -> bool | str | None:
        op = node.op
        if not isinstance(op, ArrayMap) or op.function != "Where" or op.slots != (0, 1, 2) or node.activation is not None:
            return None
        condition, value = graph.producer(node.inputs[0]), graph.producer(_source(graph, node.inputs[2]))
        if condition is None or function_name(condition) != "Greater" or condition.op.slots != (0, -1):
            return None
        if value is None or function_name(value) != "Softplus" or value.activation is not None:
            return None
        if any(shape != op.dims for shape in (*op.shapes, condition.op.shapes[0])) or condition.op.dims != op.dims:
            return None
        read = {_source(graph, tensor) for tensor in (condition.inputs[0], node.inputs[1], value.inputs[0])}
        if len(read) > 1:
            return None
        if condition.params["operand1"].min() < _LEAST_THRESHOLD:
            return f"the threshold is below {_LEAST_THRESHOLD:g}"
        return True

    def rewrite(self, graph: Graph, node: Node, match: bool) -> str:
        node.op, node.inputs, node.params = Identity(), [node.inputs[2]], {}
        graph.prune()
        return "a softplus is linear there"


def _source(graph: Graph, tensor: str) -> str:
    while (node := graph.producer(tensor)) is not None and isinstance(node.op, Reshape) and node.activation is None:
        tensor = node.inputs[0]
    return tensor
