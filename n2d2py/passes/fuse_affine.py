"""Gains and shifts per channel are merged into what is linear beside them.

    Affine(Conv(x))    =>  Conv with W' = g W, b' = g b + s                        (the same for Fc)
    Affine(Affine(x))  =>  Affine with g' = g2 g1, s' = g2 s1 + s2
    Conv(Affine(x))    =>  Conv with W' = W g, b' = b + sum of W s                 (the same for Fc)
    Affine(x)          =>  x where all g = 1 and all s = 0

The third is exact without padding only, or with s = 0: padding adds zeros behind the Affine.
"""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.affine import Affine
from n2d2py.operators.conv import Conv
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.fc import Fc
from n2d2py.passes.base import Match, Pass, drop
from n2d2py.passes.fuse_batchnorm import linear_producer
from n2d2py.passes.linear import gain_and_shift, like, scale_inputs, scale_outputs


class FuseAffine(Pass):
    """Conv, Deconv, Fc or Affine, then Affine => one layer; an Affine that changes nothing disappears."""

    name = "fuse-affine"
    summary = "constant gains and shifts merged into the layer before"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, Affine):
            return None
        gain, shift = gain_and_shift(node)
        if node.activation is None and (gain == 1).all() and not shift.any() and not graph.joins_ends(node):
            return Match("neutral")
        producer = linear_producer(graph, node, (Conv, Deconv, Fc, Affine))
        return Match.no(producer) if isinstance(producer, str) else Match(producer)

    def rewrite(self, graph: Graph, node: Node, found: Node | str) -> str:
        if isinstance(found, str):
            drop(graph, node)
            return "Affine that changes nothing removed"
        gain, shift = gain_and_shift(node)
        if isinstance(found.op, Affine):
            first_gain, first_shift = gain_and_shift(found)
            reference = found.params["weights"]
            found.params = {"weights": like(gain * first_gain, reference), "bias": like(gain * first_shift + shift, reference)}
        else:
            scale_outputs(found, gain, shift)
        graph.absorb(found, node)
        found.activation = node.activation
        return f"gain and shift merged into {found.name}"


class FuseAffineForward(Pass):
    """Affine, then Conv or Fc => Conv or Fc."""

    name = "fuse-affine-forward"
    summary = "constant gains and shifts merged into the layer after"

    def match(self, graph: Graph, node: Node) -> Match | None:
        if not isinstance(node.op, Affine):
            return None
        if node.activation is not None:
            return Match.no(f"it has the activation {node.activation.kind}")
        if node.output in graph.outputs:
            return Match.no("it is a network output")
        readers = graph.consumers(node.output)
        if not readers:
            return Match.no("nothing reads it")
        _, shift = gain_and_shift(node)
        for reader in readers:
            if not isinstance(reader.op, (Conv, Fc)):
                return Match.no(f"it feeds {reader.name} of type {reader.op.kind}")
            if "weight_scales" in reader.params:
                return Match.no(f"the weights of {reader.name} are integers, which a gain of its inputs would change")
            if isinstance(reader.op, Conv) and any(reader.op.pads) and shift.any():
                return Match.no(f"{reader.name} pads with zeros, which the shift would change")
        return Match(readers)

    def rewrite(self, graph: Graph, node: Node, found: list[Node]) -> str:
        gain, shift = gain_and_shift(node)
        for reader in found:
            scale_inputs(graph, reader, gain, shift)
        drop(graph, node)
        return "gain and shift merged into " + ", ".join(reader.name for reader in found)
