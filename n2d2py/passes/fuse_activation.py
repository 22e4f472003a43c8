"""Activation layers that clamp become part of the layer before; others remain layers.

Integer layers apply a clamp at no cost; other functions are looked up in a table by a layer of their own.

    Clip(layer(x))      =>  layer with activation Clip
    Clip2(Clip1(x))     =>  one Clip with low = Clip2(low1), high = Clip2(high1)
    Clip(MaxPool(x))    =>  MaxPool(Clip(x)) where the layer before the pool can take the Clip: the largest
                            clipped value is the clipped largest value (the same for Reshape and Transpose)
"""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Affine, BatchNorm, Clip, Conv, Deconv, ElemWise, Fc, Function, Pool, Reshape, Transpose
from n2d2py.passes.base import Match, Pass, drop

__all__ = ["FuseActivation", "RemoveUnlimited", "SplitActivation", "compose"]


def compose(first: Function, second: Function) -> Clip | None:
    """The clamp that equals second(first(x)), None when one of them is no Clip."""
    if not isinstance(first, Clip) or not isinstance(second, Clip):
        return None
    low, high = (float(np.minimum(np.maximum(limit, second.low), second.high)) for limit in (first.low, first.high))
    return Clip(low, high)


def _takes_clamp(node: Node) -> bool:
    """Whether the layer computes new values, so that it ends in a clamp anyway."""
    computes = isinstance(node.op, (Conv, Deconv, Fc, Affine, BatchNorm, ElemWise)) or (
        isinstance(node.op, Pool) and node.op.mode == "Average"
    )
    return computes and (node.activation is None or isinstance(node.activation, Clip))


def _moves_single_values(node: Node) -> bool:
    return node.activation is None and (
        isinstance(node.op, (Reshape, Transpose)) or (isinstance(node.op, Pool) and node.op.mode == "Max")
    )


class FuseActivation(Pass):
    """A layer, then a clamping Activation => the layer with this activation."""

    name = "fuse-activation"
    summary = "activations merged into the layer before"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, Activation):
            return None
        function = node.op.function
        if not isinstance(function, Clip):
            return Match.no(f"{function.kind} is not a clamp")
        target, above = self._target(graph, node)
        if isinstance(above, str):
            return Match.no(above)
        if node.activation is not None and compose(function, node.activation) is None:
            return Match.no(f"it carries the activation {node.activation.kind}")
        return Match(target)

    @staticmethod
    def _target(graph: Graph, node: Node) -> tuple[Node | None, str | None]:
        """The layer that can take the clamp, looking through layers that only move values, or why none can."""
        reader = node
        while True:
            tensor = reader.inputs[0]
            producer = graph.producer(tensor)
            if producer is None:
                return None, "it reads a network input"
            if graph.sole_consumer(tensor) is not reader:
                return None, f"the output of {producer.name} is also used elsewhere"
            if _takes_clamp(producer):
                return producer, None
            if isinstance(producer.op, Activation) and isinstance(producer.op.function, Clip) and producer.activation is None:
                return producer, None
            if not _moves_single_values(producer):
                return None, f"{producer.name} of type {producer.op.kind} cannot take it"
            reader = producer

    def rewrite(self, graph: Graph, node: Node, found: Node) -> str:
        function = node.op.function
        if node.activation is not None:
            function = compose(function, node.activation)
        if isinstance(found.op, Activation):
            found.op = Activation(compose(found.op.function, function))
        else:
            found.activation = function if found.activation is None else compose(found.activation, function)
        graph.absorb(graph.maker(node.inputs[0]), node)
        return f"{function.kind} merged into {found.name}"


class RemoveUnlimited(Pass):
    """An Activation whose Clip has no limits => nothing."""

    name = "remove-unlimited"
    summary = "activations without effect removed"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, Activation) or node.op.function != Clip():
            return None
        if node.activation is not None or graph.joins_ends(node):
            return Match.no("it carries an activation or joins a network output and an input or another output")
        return Match(True)

    def rewrite(self, graph: Graph, node: Node, found: object) -> str:
        drop(graph, node)
        return "activation without effect removed"


class SplitActivation(Pass):
    """A layer whose activation is no clamp => the layer, then an Activation (for integer exports).

    The Activation keeps the tensor's name; the linear result is called after it, with "_linear".
    """

    name = "split-activation"
    summary = "activations made layers of their own"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if node.activation is None or node.activation.is_clamp or len(node.outputs) != 1:
            return None
        return Match(True)

    def rewrite(self, graph: Graph, node: Node, found: object) -> str:
        result, function = node.output, node.activation
        shape = graph.shape(result)
        linear, name = _fresh(graph, f"{result}_linear"), _fresh(graph, f"{node.name}_activation")
        node.outputs, node.activation = [linear], None
        graph.tensors[linear] = type(graph.tensors[result])(linear, shape)
        del graph.tensors[result]
        graph.add(Node(name, Activation(function), [linear], [result], location=node.location), at=graph.nodes.index(node) + 1)
        graph.precisions[name] = graph.precision(node)
        return f"{function.kind} made the layer {name}"


def _fresh(graph: Graph, name: str) -> str:
    taken = {node.name for node in graph.nodes} | set(graph.tensors)
    while name in taken:
        name += "_"
    return name
