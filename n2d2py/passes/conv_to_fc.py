"""A Conv whose kernel covers the whole input, followed by a flattening, becomes an Fc."""

from __future__ import annotations

from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc
from n2d2py.operators.linear import cast_like
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.base import Match, Pass


class ConvToFc(Pass):
    """Reshape(Conv(x)) to (C) with one output position and no padding => Fc(x) with W' = W as (O, C * KH * KW)."""

    name = "conv-to-fc"
    summary = "Conv over a whole input turned into Fc"
    at = (Conv,)

    def match(self, graph: Graph, node: Node) -> Match | None:
        reshape = graph.sole_consumer(node.output)
        if reshape is None or not isinstance(reshape.op, Reshape) or len(reshape.op.dims) != 1:
            return None
        kernel, size = node.params["weights"].shape[2:], graph.shape(node.inputs[0])[2:]
        if kernel != size or any(node.op.pads):
            return Match.no(f"its window of {kernel[1]}x{kernel[0]} is not its whole input of {size[1]}x{size[0]}")
        if node.op.groups != 1:
            return Match.no("it has groups")
        if reshape.activation is not None:
            return Match.no(f"{reshape.name} carries an activation")
        return Match(reshape)

    def rewrite(self, graph: Graph, node: Node, reshape: Node) -> str:
        weights = node.params["weights"]
        node.op = Fc()
        node.params = {**node.params, "weights": cast_like(weights.reshape(len(weights), -1), weights)}
        graph.absorb(node, reshape)
        return f"Conv and {reshape.name} turned into Fc"
