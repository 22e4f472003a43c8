"""Clamping activations become part of the layer before; other activations remain layers.

Integer layers clamp at no cost; other functions are lookup tables in a separate layer.

    Clip(layer(x))      =>  layer with activation Clip
    Clip2(Clip1(x))     =>  one Clip with low = Clip2(low1), high = Clip2(high1)
    Clip(MaxPool(x))    =>  MaxPool(Clip(x)) if the layer before the pool can take the Clip: the largest
                            clipped value is the clipped largest value (the same for Reshape, Transpose, MemoryView)
"""

from __future__ import annotations

import numpy as np

from n2d2py.contracts.functions import Clip, FunctionRow
from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import divisor_tensor
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.pointwise import Activation, Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import MemoryView, Reshape, Transpose
from n2d2py.passes.base import Pass, drop


def compose(first: Clip, second: Clip) -> Clip:
    """Return the clamp that equals second(first(x))."""
    low, high = (float(np.minimum(np.maximum(limit, second.low), second.high)) for limit in (first.low, first.high))
    return Clip(low, high)


def _takes_clamp(node: Node) -> bool:
    """True if the layer computes new values, so that it ends in a clamp anyway."""
    computes = isinstance(node.op, (Conv, Deconv, Fc, Affine, BatchNorm, ElemWise)) or (
        isinstance(node.op, Pool) and node.op.mode == "Average"
    )
    return computes and (node.activation is None or isinstance(node.activation, Clip))


def _moves_single_values(node: Node) -> bool:
    return node.activation is None and (
        isinstance(node.op, (MemoryView, Reshape, Transpose)) or (isinstance(node.op, Pool) and node.op.mode == "Max")
    )


class FuseActivation(Pass):
    """A layer, then a clamping Activation => the layer with this activation."""

    name = "fuse-activation"
    summary = "activations merged into the layer before"
    at = (Activation,)

    def match(self, graph: Graph, node: Node) -> tuple[Node, Clip] | str:
        function = node.op.function
        if not isinstance(function, Clip):
            return f"{function.kind} is not a clamp"
        if function.low > 0 and any(divisor_tensor(reader) is not None for reader in graph.consumers(node.output)):
            return "it keeps a divisor, or what a logarithm is taken of, above zero"
        target = self._target(graph, node)
        if isinstance(target, str):
            return target
        if node.activation is not None:
            if not isinstance(node.activation, Clip):
                return f"it carries the activation {node.activation.kind}"
            function = compose(function, node.activation)
        return target, function

    @staticmethod
    def _target(graph: Graph, node: Node) -> Node | str:
        """Return the layer that can take the clamp, looking through layers that only move values, or the reason for none."""
        reader = node
        while True:
            tensor = reader.inputs[0]
            producer = graph.producer(tensor)
            if producer is None:
                return "it reads a network input"
            if graph.sole_consumer(tensor) is not reader:
                return f"the output of {producer.name} is also used elsewhere"
            if _takes_clamp(producer):
                return producer
            if isinstance(producer.op, Activation) and isinstance(producer.op.function, Clip) and producer.activation is None:
                return producer
            if not _moves_single_values(producer):
                return f"{producer.name} of type {producer.op.kind} cannot take it"
            reader = producer

    def rewrite(self, graph: Graph, node: Node, match: tuple[Node, Clip]) -> str:
        target, function = match
        present = target.op.function if isinstance(target.op, Activation) else target.activation
        if isinstance(present, Clip):
            function = compose(present, function)
        if isinstance(target.op, Activation):
            target.op = Activation(function)
        else:
            target.activation = function
        graph.absorb(graph.required_producer(node.inputs[0]), node)
        return f"{function.kind} merged into {target.name}"


class RemoveUnlimited(Pass):
    """An Activation whose Clip has no limits => nothing."""

    name = "remove-unlimited"
    summary = "activations without effect removed"

    def match(self, graph: Graph, node: Node) -> bool | str | None:
        if not isinstance(node.op, Activation) or node.op.function != Clip():
            return None
        if node.activation is not None or graph.joins_ends(node):
            return "it carries an activation or joins a network output and an input or another output"
        return True

    def rewrite(self, graph: Graph, node: Node, match: object) -> str:
        drop(graph, node)
        return "activation without effect removed"


class SplitActivation(Pass):
    """A layer whose activation is not a clamp => the layer, then an Activation (for integer exports).

    The Activation keeps the tensor's name; the linear result gets the suffix "_linear".
    """

    name = "split-activation"
    summary = "activations made layers of their own"

    def match(self, graph: Graph, node: Node) -> FunctionRow | None:
        if node.activation is None or node.activation.is_clamp or len(node.outputs) != 1:
            return None
        return node.activation

    def rewrite(self, graph: Graph, node: Node, function: FunctionRow) -> str:
        result = node.output
        shape = graph.shape(result)
        linear, name = graph.fresh_name(f"{result}_linear"), graph.fresh_name(f"{node.name}_activation")
        node.outputs, node.activation = [linear], None
        graph.tensors[linear] = type(graph.tensors[result])(linear, shape)
        del graph.tensors[result]
        graph.add(Node(name, Activation(function), [linear], [result], location=node.location), at=graph.nodes.index(node) + 1)
        graph.precisions[name] = graph.precision(node)
        return f"{function.kind} made the layer {name}"
