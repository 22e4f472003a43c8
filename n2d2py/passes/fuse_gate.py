"""Functions that exporters spell out on arrays are one layer: GELU, SiLU, HardSwish and the like.

    ArrayMap Mul of two arrays that make g * f(x)              =>  Activation f(x), where g is 1
    ... and an ArrayMap Mul or Div by a constant after it     =>  Activation f(x), where g times the constant is 1

The parts disappear with the layers that nothing reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isclose

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap, scale_and_shift
from n2d2py.operators.elemwise.idioms import find_gated_function
from n2d2py.operators.functions import FunctionRow
from n2d2py.passes.base import Match, Pass


@dataclass(frozen=True)
class Gate:
    """f of tensor `x`; `scaled` is the layer after the product that brings its factor to 1, if any."""

    x: str
    function: FunctionRow
    scaled: Node | None


class FuseGate(Pass):
    """Products of an array with a function of it => Activation."""

    name = "fuse-gate"
    summary = "functions of several array layers merged into one"

    def match(self, graph: Graph, node: Node) -> Match | None:
        op = node.op
        if not isinstance(op, ArrayMap) or op.function != "Mul" or sorted(op.slots) != [0, 1] or op.result or node.activation:
            return None
        if any(shape != op.dims for shape in op.shapes):
            return None
        found = find_gated_function(graph, *node.inputs)
        if found is None:
            return None
        x, function, factor = found
        if isclose(factor, 1.0, rel_tol=1e-5):
            return Match(Gate(x, function, None))
        reader = graph.sole_consumer(node.output)
        after = None if reader is None else scale_and_shift(reader)
        if after is None or after[1] != 0 or not isclose(factor * after[0], 1.0, rel_tol=1e-5):
            return Match.no(f"it is {factor:g} times {function.kind}")
        return Match(Gate(x, function, reader))

    def rewrite(self, graph: Graph, node: Node, found: Gate) -> str:
        if found.scaled is not None:
            graph.absorb(node, found.scaled)
        node.op, node.inputs, node.params = Activation(found.function), [found.x], {}
        return f"it and the layers before it are {found.function.kind}"
