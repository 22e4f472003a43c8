"""Gains and shifts per channel are merged into the linear layer before them.

Affine(Conv(x))    =>  Conv with W' = g W, b' = g b + s                        (the same for Fc)
Affine(Affine(x))  =>  Affine with g' = g2 g1, s' = g2 s1 + s2
Affine(x)          =>  x where all g = 1 and all s = 0
"""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.affine import Affine
from n2d2py.operators.conv import Conv
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.fc import Fc
from n2d2py.operators.linear import gain_and_shift, like, scale_outputs
from n2d2py.passes.base import Match, Pass, drop
from n2d2py.passes.fuse_batchnorm import linear_producer


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
