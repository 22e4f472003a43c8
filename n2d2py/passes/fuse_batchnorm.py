"""Batch normalization with stored statistics is a gain g = scale / sqrt(variance + epsilon) and a shift s = bias - mean * g per
channel, merged into the layer before where possible."""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.operators.linear import cast_like, gain_and_shift, scale_outputs
from n2d2py.operators.pointwise import Affine
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.base import Pass, drop


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
