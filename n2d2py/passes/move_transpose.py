"""Transpositions are moved after element-wise layers, or into the weights of an Fc, so that they cancel."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Fc
from n2d2py.operators.linear import cast_like
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.reshape import Reshape, Transpose
from n2d2py.passes.base import Pass, recompute_shapes


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
