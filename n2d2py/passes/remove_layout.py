"""Reshapes and transpositions that do not change the memory order are removed.

Reshape to its input's shape, Transpose that moves nothing    =>  nothing
Reshape(Reshape(x)), Transpose(Transpose(x))                  =>  one
Transpose that moves axes of size 1 only                      =>  Reshape
Fc(Reshape(x))                                                =>  Fc(x), which flattens in C, H, W order itself
Reshape between (C, 1, 1) and (C)                             =>  nothing, if no network output changes its shape
"""

from __future__ import annotations

from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Fc
from n2d2py.operators.reshape import Reshape, Transpose
from n2d2py.passes.base import Pass, drop, recompute_shapes


def _producer(graph: Graph, node: Node, kind: type) -> Node | None:
    """Return the producer of the node's input if it is of `kind` and has no activation."""
    producer = graph.producer(node.inputs[0])
    return producer if producer is not None and isinstance(producer.op, kind) and producer.activation is None else None


def _skip(graph: Graph, node: Node, before: Node, carrier: str) -> None:
    """Let `node` read the input of `before`, its producer; if that is read no longer, `carrier` has its result."""
    node.inputs = list(before.inputs)
    if not graph.consumers(before.output) and before.output not in graph.outputs:
        graph.remove(before)
        del graph.tensors[before.output]
        graph.aliases[before.output] = carrier


class RemoveReshape(Pass):
    """Removes and merges Reshapes."""

    name = "remove-reshape"
    summary = "Reshape layers removed"
    at = (Reshape,)

    def match(self, graph: Graph, node: Node) -> Node | bool | str:
        if node.activation is not None:
            return "it carries an activation"
        before = _producer(graph, node, Reshape)
        if before is not None:
            return before
        if graph.joins_ends(node):
            return "it joins a network output and an input or another output"
        if graph.shape(node.inputs[0]) == graph.shape(node.output):
            return True
        readers = graph.consumers(node.output)
        if readers and node.output not in graph.outputs and all(isinstance(r.op, Fc) for r in readers):
            return True
        return self._restatement(graph, node)

    @staticmethod
    def _restatement(graph: Graph, node: Node) -> bool | str:
        """Return a match if the consumers of (C, 1, 1) <-> (C) accept the other form."""
        before, after = graph.shape(node.inputs[0]), graph.shape(node.output)
        if max((*before[2:], *after[2:]), default=1) > 1:
            text = " to ".join("x".join(map(str, shape[1:])) for shape in (before, after))
            return f"it changes {text}, which its consumers distinguish"
        trial = graph.copy()
        drop(trial, trial.node(node.name))
        try:
            recompute_shapes(trial)
        except N2D2Error as error:
            return f"a layer after it needs this shape ({error.what})"
        for old, new in zip(graph.outputs, trial.outputs, strict=True):
            if graph.shape(old) != trial.shape(new):
                return f"the output {old} would change its shape"
        return True

    def rewrite(self, graph: Graph, node: Node, before: Node | bool) -> str:
        if isinstance(before, Node):
            _skip(graph, node, before, node.output)
            return f"merged with the Reshape {before.name}"
        drop(graph, node)
        recompute_shapes(graph)
        return "Reshape removed"


class MergeTranspose(Pass):
    """Remove and merge Transposes; those that keep the memory order become Reshapes."""

    name = "remove-transpose"
    summary = "Transpose layers removed or simplified"
    at = (Transpose,)

    def match(self, graph: Graph, node: Node) -> Node | Reshape | bool | str:
        if node.activation is not None:
            return "it carries an activation"
        if node.op.perm == tuple(range(len(node.op.perm))) and not graph.joins_ends(node):
            return True
        before = _producer(graph, node, Transpose)
        if before is not None:
            return before
        shape = graph.shape(node.inputs[0])
        moved = [axis for axis in node.op.perm if shape[axis] != 1]
        if moved == sorted(moved):
            return Reshape(graph.shape(node.output)[1:])
        return "it changes the order of the elements"

    def rewrite(self, graph: Graph, node: Node, match: Node | Reshape | bool) -> str:
        if isinstance(match, bool):
            drop(graph, node)
            return "Transpose that moves nothing removed"
        if isinstance(match, Reshape):
            node.op = match
            return "Transpose of axes of size 1 turned into a Reshape"
        node.op = Transpose(tuple(match.op.perm[axis] for axis in node.op.perm))
        _skip(graph, node, match, match.inputs[0])
        return f"merged with the Transpose {match.name}"
