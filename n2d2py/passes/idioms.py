"""Functions that exporters spell out in several layers become one layer.

Parts are removed if nothing else consumes them.
"""

from math import exp, isclose, sqrt
from typing import TypeGuard

import numpy as np

from n2d2py.contracts.functions import Sqrt
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, ElemWise, Identity, Normalize, Reshape
from n2d2py.operators.arrays.map import ArrayMap, function_name, row_constant, scalar_factor
from n2d2py.operators.elemwise.idioms import find_gated_function
from n2d2py.passes.base import Done, Outcome, is_plain, rewrite


@rewrite("fuse-gate", "functions of several array layers merged into one", ArrayMap)
def fuse_gate(graph: Graph, node: Node) -> Outcome:
    """ArrayMap Mul that computes g * f(x), such as GELU, SiLU or HardSwish => Activation f(x), if g is 1, or if g times the
    constant of an ArrayMap Mul or Div after it is 1."""
    op = node.op
    if op.function != "Mul" or sorted(op.slots) != [0, 1] or op.result or node.activation is not None:
        return None
    gate = find_gated_function(graph, *node.inputs) if all(shape == op.dims for shape in op.shapes) else None
    if gate is None:
        return None
    x, function, factor = gate
    if not isclose(factor, 1.0, rel_tol=1e-5):
        reader = graph.sole_consumer(node.output)
        after = None if reader is None else scalar_factor(reader)
        if reader is None or after is None or not isclose(factor * after, 1.0, rel_tol=1e-5):
            return f"it is {factor:g} times {function.kind}"
        graph.absorb(node, reader)
    node.op, node.inputs, node.params = Activation(function), [x], {}
    graph.prune()
    return Done(f"it and the layers before it are {function.kind}")


@rewrite("fuse-magnitude", "roots of sums of squares merged into one layer", Activation)
def fuse_magnitude(graph: Graph, node: Node) -> Outcome:
    """Sqrt(w x * x + v y * y + ...) => EuclideanSum(sqrt(w) x, sqrt(v) y, ...). Squares of a spectrum would have twice its
    dynamic range in decibels."""
    total = graph.producer(node.inputs[0])
    if node.op.function != Sqrt() or node.activation is not None or not _is_elemwise(total, "Sum") or len(total.inputs) < 2:
        return None
    factors = [square.inputs for square in map(graph.producer, total.inputs) if _is_elemwise(square, "Prod")]
    if [len(names) for names in factors] != [2] * len(total.inputs) or any(first != second for first, second in factors):
        return None
    weights, shifts = total.op.coefficients(len(total.inputs))
    if min(weights) < 0 or any(shifts):
        return "its sum has a shift, or takes a square away"
    roots = tuple(map(sqrt, weights))
    node.op, node.inputs = ElemWise("EuclideanSum", roots if set(roots) != {1.0} else ()), [first for first, _ in factors]
    node.params = {}
    graph.prune()
    return Done("the magnitude of what was squared")


def _is_elemwise(node: Node | None, operation: str) -> TypeGuard[Node]:
    return is_plain(node, ElemWise) and node.op.operation == operation


@rewrite("fuse-norm", "gains and shifts merged into normalisations of lines", Normalize)
def fuse_norm(graph: Graph, node: Node) -> Outcome:
    """Normalize, ArrayMap Mul by a constant of a row, ArrayMap Add of one => Normalize with gain and shift."""
    reader, size = graph.sole_consumer(node.output), node.op.size
    if node.op.part or node.activation is not None or reader is None:
        return None
    own, shift = node.params.get("gain", np.ones(size, np.float32)), node.params.get("shift", np.zeros(size, np.float32))
    if (gains := row_constant(reader, "Mul", size)) is not None:
        own, shift = own * gains, shift * gains
    elif (shifts := row_constant(reader, "Add", size)) is not None:
        shift = shift + shifts
    else:
        return None
    graph.absorb(node, reader)
    node.params = {"gain": own.astype(np.float32), "shift": shift.astype(np.float32)}
    return Done(f"it does what {reader.name} did")


_LEAST_THRESHOLD = 15.0
"""Smallest threshold: softplus(15) is 15 + 3.1e-7, the next float32 is 15 + 9.5e-7."""
assert exp(-_LEAST_THRESHOLD) < _LEAST_THRESHOLD * 2.0**-24


@rewrite("remove-softplus-tail", "choices between a softplus and its argument removed", ArrayMap)
def remove_softplus_tail(graph: Graph, node: Node) -> Outcome:
    """Where(x > c, x, Softplus(x)) => Softplus(x), for a large c: log(1 + exp(x)) equals x in float32 there, as in PyTorch."""
    op = node.op
    if op.function != "Where" or op.slots != (0, 1, 2) or node.activation is not None:
        return None
    condition, value = graph.producer(node.inputs[0]), graph.producer(_source(graph, node.inputs[2]))
    if condition is None or function_name(condition) != "Greater" or condition.op.slots != (0, -1):
        return None
    if value is None or function_name(value) != "Softplus" or value.activation is not None:
        return None
    if any(shape != op.dims for shape in (*op.shapes, condition.op.shapes[0], condition.op.dims)):
        return None
    read = {_source(graph, tensor) for tensor in (condition.inputs[0], node.inputs[1], value.inputs[0])}
    if len(read) > 1:
        return None
    if condition.params["operand1"].min() < _LEAST_THRESHOLD:
        return f"the threshold is below {_LEAST_THRESHOLD:g}"
    node.op, node.inputs, node.params = Identity(), [node.inputs[2]], {}
    graph.prune()
    return Done("a softplus is linear there")


def _source(graph: Graph, tensor: str) -> str:
    while is_plain(node := graph.producer(tensor), Reshape):
        tensor = node.inputs[0]
    return tensor
