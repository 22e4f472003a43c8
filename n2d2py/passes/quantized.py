"""Quantize layers of pre-quantized networks are moved to the layers that compute."""

from __future__ import annotations

from dataclasses import replace

from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Quantize, grid_type, is_real_concat, values_source
from n2d2py.passes.base import Pass, drop


class MergeQuantize(Pass):
    """Quantize(x) of integers of this type => x; two Quantize of one type of one tensor => one; Quantize(Quantize(x)) to a
    subset of the integers => the second one."""

    name = "merge-quantize"
    summary = "repeated roundings merged"

    def match(self, graph: Graph, node: Node) -> bool | tuple[Node] | Node | str | None:
        if not isinstance(node.op, Quantize) or node.activation is not None:
            return None
        source = node.inputs[0]
        if grid_type(graph, source) == node.op.type:
            if graph.joins_ends(node):
                return "it joins a network output and an input or another output"
            return True
        first = graph.producer(source)
        if first is not None and _narrows(first, node.op) and graph.sole_consumer(source) is node:
            return (first,)
        others = [other for other in graph.consumers(source) if other is not node and other.output not in graph.outputs]
        twin = next((other for other in others if other.op == node.op and other.activation is None), None)
        if twin is not None and graph.nodes.index(twin) > graph.nodes.index(node):
            return twin
        return None

    def rewrite(self, graph: Graph, node: Node, match: bool | tuple[Node] | Node) -> str:
        if isinstance(match, bool):
            drop(graph, node)
            return "rounding of integers of the same type removed"
        if isinstance(match, tuple):
            drop(graph, match[0])
            return f"merged with {match[0].name}, which keeps more of the same integers"
        graph.remove(match)
        graph.redirect(match.output, node.output)
        return f"merged with {match.name}"


def _narrows(first: Node, second: Quantize) -> bool:
    if not isinstance(first.op, Quantize) or first.activation is not None:
        return False
    wide, narrow = first.op.type, second.type
    alike = replace(wide, least=None, most=None) == replace(narrow, least=None, most=None)
    return alike and wide.qmin <= narrow.qmin and narrow.qmax <= wide.qmax


class HoistQuantize(Pass):
    """Quantize(Move(x)) => Move(Quantize(x)), also for a Concat. A padded zero is an integer of every type."""

    name = "hoist-quantize"
    summary = "roundings moved before layers that move values"

    def match(self, graph: Graph, node: Node) -> Node | str | None:
        if not isinstance(node.op, Quantize) or node.inputs[0] in graph.outputs:
            return None
        mover = graph.producer(node.inputs[0])
        if mover is None or mover.activation is not None or grid_type(graph, mover.output) is not None:
            return None
        moves = len(mover.inputs) == 1 and values_source(graph, mover.output) != mover.output
        if not moves and not is_real_concat(mover):
            return None
        if graph.sole_consumer(mover.output) is not node:
            return f"the output of {mover.name} is read in other ways too"
        return mover

    def rewrite(self, graph: Graph, node: Node, mover: Node) -> str:
        """Quantize each input of the mover, which takes over the name of the quantized result."""
        at = graph.nodes.index(mover)
        graph.absorb(mover, node)
        for index, source in enumerate(dict.fromkeys(mover.inputs)):
            name = graph.fresh_name(f"{source}_quantized")
            graph.add(Node(name, node.op, [source], [name], location=node.location), at=at + index)
            mover.inputs = [name if given == source else given for given in mover.inputs]
        return f"moved before {mover.name}"


class ClipBeforeQuantize(Pass):
    """Quantize(Clip(Quantize(x))), both of one type => Quantize(Clip(x)): exact because rounding is monotonic."""

    name = "clip-before-quantize"
    summary = "clamps moved before the rounding"

    def match(self, graph: Graph, node: Node) -> Node | str | None:
        if not isinstance(node.op, Activation) or not isinstance(node.op.function, Clip) or node.activation is not None:
            return None
        first, last = graph.producer(node.inputs[0]), graph.sole_consumer(node.output)
        if first is None or last is None or not isinstance(first.op, Quantize) or first.op != last.op:
            return None
        if first.inputs[0] in graph.inputs:
            return None
        if graph.sole_consumer(first.output) is not node:
            return "what it clamps is also used without"
        return first

    def rewrite(self, graph: Graph, node: Node, rounding: Node) -> str:
        drop(graph, rounding)
        return f"moved before {rounding.name}"
