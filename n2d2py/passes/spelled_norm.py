"""Normalisations of lines that exporters spell out (LayerNorm before opset 17, RMSNorm) are one layer.

    d = Sub(x, Mean(x)), Div(d, Sqrt(Add(Mean(d * d), epsilon)))        =>  ArrayNorm(x)
    Div(x, Sqrt(Add(Mean(x * x), epsilon)))                             =>  ArrayNorm(x) without mean
    Mul(x, Reciprocal(Sqrt(...))), Mul(x, Div(1, Sqrt(...))) the same; means are those of the last axes

The parts disappear with the layers that nothing reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, TypeGuard

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.map.op import scale_and_shift
from n2d2py.operators.arrays.norm import ArrayNorm
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.passes.base import Match, Pass


@dataclass(frozen=True)
class Lines:
    """The tensor whose lines are normalised, and how."""

    x: str
    op: ArrayNorm


class SpelledNorm(Pass):
    """ArrayMap and ArrayReduce layers that normalise lines => ArrayNorm."""

    name = "spelled-norm"
    summary = "normalisations of several array layers merged into one"

    def match(self, graph: Graph, node: Node) -> Match | None:
        divides = _map(node, "Div") and node.op.slots == (0, 1)
        if not divides and not (_map(node, "Mul") and sorted(node.op.slots) == [0, 1]):
            return None
        for x, root in (node.inputs,) if divides else (node.inputs, node.inputs[::-1]):
            below = graph.producer(root)
            if not divides:
                below = graph.producer(below.inputs[0]) if _is_reciprocal(below) else None
            found = _lines(graph, x, below, node.op.dims)
            if found is not None:
                return Match(found)
        return None

    def rewrite(self, graph: Graph, node: Node, found: Lines) -> str:
        node.op, node.inputs, node.params = found.op, [found.x], {}
        graph.prune()
        return "it and the layers before it are a normalisation of lines"


def _map(node: Node | None, function: str) -> TypeGuard[Node[Any]]:
    """Whether a layer is a map of real numbers by a function, or that function as an activation."""
    if node is None or node.activation is not None:
        return False
    if isinstance(node.op, Activation):
        return node.op.function.kind == function
    return isinstance(node.op, ArrayMap) and node.op.function == function and not node.op.result


def _is_reciprocal(node: Node | None) -> TypeGuard[Node]:
    """Whether a layer divides 1 by its input."""
    if _map(node, "Div") and node.op.slots == (-1, 0):
        return bool((node.params["operand0"] == 1).all())
    return _map(node, "Reciprocal")


def _mean(graph: Graph, tensor: str, dims: tuple[int, ...]) -> tuple[str, int] | None:
    """(array of `dims`, elements of its lines) whose means a tensor holds; None for any other tensor."""
    node = graph.producer(tensor)
    if node is None or not isinstance(node.op, ArrayReduce) or node.op.function != "Mean" or node.op.dims != dims:
        return None
    axes = sorted(node.op.axes)
    last = list(range(len(dims) - len(axes), len(dims)))
    return (node.inputs[0], prod(dims[axis] for axis in axes)) if axes == last else None


def _lines(graph: Graph, x: str, root: Node | None, dims: tuple[int, ...]) -> Lines | None:
    """The normalisation of the array `x` of `dims`, if `root` is the deviation of its lines."""
    added = graph.producer(root.inputs[0]) if _map(root, "Sqrt") else None
    if added is None:
        return None
    shift = scale_and_shift(added)
    if shift is None or shift[0] != 1 or shift[1] <= 0:
        return None
    variance = _mean(graph, added.inputs[0], dims)
    if variance is None:
        return None
    squares, size = variance
    square = graph.producer(squares)
    if not _map(square, "Mul") or set(square.inputs) != {x} or -1 in square.op.slots:
        return None
    op, away = ArrayNorm(prod(dims) // size, size, shift[1], False), graph.producer(x)
    if _map(away, "Sub") and away.op.slots == (0, 1) and away.op.dims == dims == away.op.shapes[0]:
        if _mean(graph, away.inputs[1], dims) == (away.inputs[0], size):
            return Lines(away.inputs[0], ArrayNorm(op.outer, size, op.epsilon, True))
    return Lines(x, op)
