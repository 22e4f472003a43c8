"""Clamping activations, gains and shifts, and paddings become part of the layer before or after them.

Integer layers clamp at no cost; other functions are lookup tables in a separate layer. A Clip moves before a MaxPool, because
the largest clipped value is the clipped largest value, and before a Reshape, Transpose or MemoryView.

Batch normalization with stored statistics is a gain g = scale / sqrt(variance + epsilon) and a shift s = bias - mean * g per
channel, merged into the layer before where possible.

Zeros added by a Padding layer become padding of its readers, if all are Conv and Pool layers (n2d2-spec.md 19.3):

    Conv(Padding(x))      =>  Conv with pads' = pads + padding
    average pool          =>  the same where the mean counts the padding; one that does not counts the zeros of
                              the Padding layer, so it becomes one that does if it has no its own pads
    max pool              =>  the same where x cannot be negative (pads of a pool never win, zeros could) and
                              every window holds an element of x
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from n2d2py.contracts.functions import Clip, FunctionRow
from n2d2py.contracts.windows import Pads
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Affine, BatchNorm, Conv, Deconv, ElemWise, Fc, Padding, Pool, divisor_tensor
from n2d2py.operators.linear import cast_like, gain_and_shift, nonnegative_tensors, scale_outputs
from n2d2py.operators.reshape import MemoryView, Reshape, Transpose
from n2d2py.passes.base import Pass, drop

# ---- activations --------------------------------------------------------------------------------


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
        node.activation = None
        layer = graph.add_after(node, Activation(function), f"{node.output}_linear", f"{node.name}_activation")
        graph.precisions[layer.name] = graph.precision(node)
        return f"{function.kind} made the layer {layer.name}"


# ---- gains and shifts ---------------------------------------------------------------------------


class FuseAffine(Pass):
    """Conv, Deconv, Fc or Affine, then Affine => one layer; an Affine that changes nothing disappears."""

    name = "fuse-affine"
    summary = "constant gains and shifts merged into the layer before"
    at = (Affine,)

    def match(self, graph: Graph, node: Node) -> Node | bool | str:
        gain, shift = gain_and_shift(node)
        if node.activation is None and (gain == 1).all() and not shift.any() and not graph.joins_ends(node):
            return True
        return linear_producer(graph, node, (Conv, Deconv, Fc, Affine))

    def rewrite(self, graph: Graph, node: Node, producer: Node | bool) -> str:
        if isinstance(producer, bool):
            drop(graph, node)
            return "Affine that changes nothing removed"
        gain, shift = gain_and_shift(node)
        if isinstance(producer.op, Affine):
            first_gain, first_shift = gain_and_shift(producer)
            reference = producer.params["weights"]
            producer.params = {
                "weights": cast_like(gain * first_gain, reference),
                "bias": cast_like(gain * first_shift + shift, reference),
            }
        else:
            scale_outputs(producer, gain, shift)
        _absorb(graph, producer, node)
        return f"gain and shift merged into {producer.name}"


def linear_producer(graph: Graph, node: Node, kinds: tuple[type, ...]) -> Node | str:
    """Return the producer of the node's first input if it is of `kinds`, linear and has no other consumer; else the reason.

    Reshapes between them that keep the channels, such as a Squeeze of pixels, are passed over.
    """
    tensor = node.inputs[0]
    while True:
        producer = graph.producer(tensor)
        if producer is None:
            return "its input is a network input"
        if producer.activation is not None:
            return f"{producer.name} has the activation {producer.activation.kind}"
        if tensor in graph.outputs:
            return f"the output of {producer.name} is a network output"
        readers = len(graph.consumers(tensor))
        if readers != 1:
            return f"the output of {producer.name} has {readers} consumers"
        if isinstance(producer.op, kinds):
            return producer
        if not isinstance(producer.op, Reshape) or graph.shape(tensor)[1:2] != graph.shape(producer.inputs[0])[1:2]:
            return f"it follows {producer.name} of type {producer.op.kind}"
        tensor = producer.inputs[0]


def _absorb(graph: Graph, producer: Node, node: Node) -> None:
    """Remove a node that `producer` computes now, with its activation."""
    graph.absorb(graph.required_producer(node.inputs[0]), node)
    producer.activation = node.activation


class FuseBatchNorm(Pass):
    """BatchNorm of a Conv, Deconv or Fc => that layer with W' = g W, b' = g b + s; the activation of the BatchNorm is kept."""

    name = "fuse-batchnorm"
    summary = "BatchNorm layers merged into Conv or Fc"
    at = (BatchNorm,)

    def match(self, graph: Graph, node: Node) -> Node | str:
        return linear_producer(graph, node, (Conv, Deconv, Fc))

    def rewrite(self, graph: Graph, node: Node, producer: Node) -> str:
        scale_outputs(producer, *gain_and_shift(node))
        _absorb(graph, producer, node)
        return f"BatchNorm merged into {producer.name}"


class BatchNormToAffine(Pass):
    """A BatchNorm that FuseBatchNorm left => Affine with weights g, bias s."""

    name = "batchnorm-to-affine"
    summary = "BatchNorm layers turned into Affine"
    at = (BatchNorm,)

    def match(self, graph: Graph, node: Node) -> bool:
        return True

    def rewrite(self, graph: Graph, node: Node, match: object) -> str:
        gain, shift = gain_and_shift(node)
        reference = node.params["scale"]
        node.op, node.params = Affine(), {"weights": cast_like(gain, reference), "bias": cast_like(shift, reference)}
        return "BatchNorm turned into a gain and a shift per channel"


# ---- padding ------------------------------------------------------------------------------------


def _sum(a: Pads, b: Pads) -> Pads:
    top, left, bottom, right = (p + q for p, q in zip(a, b, strict=True))
    return top, left, bottom, right


class FusePadding(Pass):
    """Padding whose readers are all Conv or Pool => larger, possibly asymmetric, pads of the readers. Crops stay."""

    name = "fuse-padding"
    summary = "Padding layers merged into Conv or Pool"
    at = (Padding,)

    def match(self, graph: Graph, node: Node) -> list[tuple[Node, Conv | Pool]] | str:
        if min(node.op.pads) < 0:
            return "it crops"
        if node.activation is not None:
            return "it carries an activation"
        if node.output in graph.outputs:
            return "it is a network output"
        readers = graph.consumers(node.output)
        if not readers:
            return "nothing reads it"
        ops = []
        for reader in readers:
            op = self._padded(graph, node, reader)
            if isinstance(op, str):
                return op
            ops.append(op)
        return list(zip(readers, ops, strict=True))

    @staticmethod
    def _padded(graph: Graph, node: Node, reader: Node) -> Conv | Pool | str:
        op, padding = reader.op, node.op.pads
        if not isinstance(op, (Conv, Pool)):
            return f"it feeds {reader.name} of type {op.kind}"
        if min(op.pads) < 0:
            return f"{reader.name} crops"
        fused = replace(op, pads=_sum(op.pads, padding))
        if isinstance(op, Conv):
            return fused
        if op.mode == "Average":
            if op.count_pad:
                return fused
            if any(op.pads):
                return f"{reader.name} averages without its own pads, but counts these zeros"
            return replace(fused, count_pad=True)
        if node.inputs[0] not in nonnegative_tensors(graph):
            return f"a padded zero can be the maximum in {reader.name}, as its input may be negative"
        size = graph.shape(node.inputs[0])[2:]
        inside = Pool("Average", op.kernel, op.stride, fused.pads, False)
        if int(inside.window_counts(size).min()) == 0:
            return f"a window of {reader.name} would hold padding only"
        return fused

    def rewrite(self, graph: Graph, node: Node, match: list[tuple[Node, Conv | Pool]]) -> str:
        for reader, op in match:
            reader.op = op
        drop(graph, node)
        return "padding merged into " + ", ".join(reader.name for reader, _ in match)
