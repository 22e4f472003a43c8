"""Layers that change nothing, or only the layout of a tensor, are removed, merged or moved to where they cancel.

Reshape to its input's shape, Transpose that moves nothing    =>  nothing
Reshape(Reshape(x)), Transpose(Transpose(x))                  =>  one
Transpose that moves axes of size 1 only                      =>  Reshape
Fc(Reshape(x))                                                =>  Fc(x), which flattens in C, H, W order itself
Reshape between (C, 1, 1) and (C)                             =>  nothing, if no network output changes its shape
"""

from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Affine, Fc, Identity, Quantize, Reshape, Softmax, Transpose
from n2d2py.operators.linear import cast_like
from n2d2py.passes.base import Pass, drop, recompute_shapes


class RemoveIdentity(Pass):
    """y = Identity(x) or Dropout(x) => x, unless a network output would become an input or another output."""

    name = "remove-identity"
    summary = "Identity and Dropout layers removed"
    at = (Identity,)

    def match(self, graph: Graph, node: Node) -> bool | str:
        if node.activation is not None:
            return "it carries an activation"
        if graph.joins_ends(node):
            return "it joins a network output and an input or another output"
        return True

    def rewrite(self, graph: Graph, node: Node, match: object) -> str:
        drop(graph, node)
        return f"{node.op.kind} removed"


class DropSoftmax(Pass):
    """Softmax(x) at a network output => x; a Quantize of its result is dropped too."""

    name = "drop-softmax"
    summary = "Softmax at the network's outputs dropped"

    def match(self, graph: Graph, node: Node) -> bool | str | None:
        if type(node.op) is not Softmax:
            return None
        last = self._rounding(graph, node) or node
        if not graph.is_last(last.output):
            return "it is not at the end of the network"
        if node.activation is not None:
            return "it carries an activation"
        if graph.joins_ends(node):
            return "it reads a network input, or another output"
        return True

    @staticmethod
    def _rounding(graph: Graph, node: Node) -> Node | None:
        reader = graph.sole_consumer(node.output)
        return reader if reader is not None and isinstance(reader.op, Quantize) else None

    def rewrite(self, graph: Graph, node: Node, match: object) -> str:
        rounding = self._rounding(graph, node)
        if rounding is not None:
            drop(graph, rounding)
        log.notice("Softmax '%s' at the output is removed: the output gives logits instead of probabilities", node.name)
        drop(graph, node)
        return "Softmax dropped"


def _producer(graph: Graph, node: Node, kind: type) -> Node | None:
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


class MoveTranspose(Pass):
    """Transpose2(f(Transpose1(x))) => Transpose2(Transpose1(f(x))) for a chain f of element-wise layers."""

    name = "move-transpose"
    summary = "Transpose layers moved after element-wise layers"

    def match(self, graph: Graph, node: Node) -> tuple[list[Node], Node] | None:
        if not isinstance(node.op, Transpose) or node.activation is not None:
            return None
        chain: list[Node] = []
        reader = graph.sole_consumer(node.output)
        while reader is not None and self._is_elementwise(reader):
            chain.append(reader)
            reader = graph.sole_consumer(reader.output)
        if not chain or reader is None or not isinstance(reader.op, Transpose):
            return None
        return chain, reader

    @staticmethod
    def _is_elementwise(node: Node) -> bool:
        if isinstance(node.op, Affine):
            return all((array == array.flat[0]).all() for array in node.params.values())
        return isinstance(node.op, Activation)

    def rewrite(self, graph: Graph, node: Node, match: tuple[list[Node], Node]) -> str:
        chain, last = match
        permutation = node.op.perm
        channels = graph.shape(node.inputs[0])[1]
        graph.bypass(node)
        for layer in chain:
            layer.params = {role: np.full(channels, array.flat[0], array.dtype) for role, array in layer.params.items()}
        last.op = Transpose(tuple(permutation[axis] for axis in last.op.perm))
        recompute_shapes(graph)
        return f"merged with the Transpose {last.name}"


class TransposeIntoFc(Pass):
    """Fc(Reshape(Transpose(x))) => Fc(x) with the columns of W in the order of x (a flattening in H, W, C order)."""

    name = "transpose-into-fc"
    summary = "Transpose layers merged into the weights of Fc"

    def match(self, graph: Graph, node: Node) -> list[Node] | str | None:
        if not isinstance(node.op, Transpose) or node.activation is not None:
            return None
        layers, waiting = [], [node]
        while waiting:
            layer = waiting.pop(0)
            readers = graph.consumers(layer.output)
            if layer.output in graph.outputs or not readers:
                return f"{layer.name} is a network output"
            for reader in readers:
                if isinstance(reader.op, Fc):
                    layers.append(reader)
                elif isinstance(reader.op, Reshape) and reader.activation is None:
                    waiting.append(reader)
                else:
                    return f"it feeds {reader.name} of type {reader.op.kind}"
        return layers

    def rewrite(self, graph: Graph, node: Node, layers: list[Node]) -> str:
        source, permutation = node.inputs[0], node.op.perm
        sizes = graph.shape(node.output)[1:]
        back = np.argsort(permutation[1:]) + 1
        for reader in layers:
            weights = reader.params["weights"]
            columns = weights.reshape(len(weights), *sizes).transpose(0, *back)
            reader.params = {**reader.params, "weights": cast_like(columns.reshape(len(weights), -1), weights)}
            reader.inputs = [source]
        for unread in graph.prune():
            graph.aliases.update(dict.fromkeys(unread.outputs, source))
        return "merged into the weights of " + ", ".join(reader.name for reader in layers)
