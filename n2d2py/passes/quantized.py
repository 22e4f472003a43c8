"""Quantize layers of pre-quantized networks are moved to the layers that compute."""

from dataclasses import replace

from n2d2py.arithmetic import NumType
from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Quantize, grid_type, is_real_concat, values_source
from n2d2py.passes.base import Done, Outcome, drop, is_plain, reason_to_keep, rewrite


@rewrite("merge-quantize", "repeated roundings merged", Quantize)
def merge_quantize(graph: Graph, node: Node) -> Outcome:
    """Quantize(x) of integers of this type => x; two Quantize of one type of one tensor => one; Quantize(Quantize(x)) to a
    subset of the integers => the second one."""
    if node.activation is not None:
        return None
    source = node.inputs[0]
    if grid_type(graph, source) == node.op.type:
        reason = reason_to_keep(graph, node)
        if reason is not None:
            return reason
        drop(graph, node)
        return Done("rounding of integers of the same type removed")
    first = graph.producer(source)
    if is_plain(first, Quantize) and _narrows(first.op.type, node.op.type) and graph.sole_consumer(source) is node:
        drop(graph, first)
        return Done(f"merged with {first.name}, which keeps more of the same integers")
    others = [other for other in graph.consumers(source) if other is not node and other.output not in graph.outputs]
    twin = next((other for other in others if other.op == node.op and other.activation is None), None)
    if twin is None or graph.nodes.index(twin) < graph.nodes.index(node):
        return None
    graph.remove(twin)
    graph.redirect(twin.output, node.output)
    return Done(f"merged with {twin.name}")


def _narrows(wide: NumType, narrow: NumType) -> bool:
    alike = replace(wide, least=None, most=None) == replace(narrow, least=None, most=None)
    return alike and wide.qmin <= narrow.qmin and narrow.qmax <= wide.qmax


@rewrite("hoist-quantize", "roundings moved before layers that move values", Quantize)
def hoist_quantize(graph: Graph, node: Node) -> Outcome:
    """Quantize(Move(x)) => Move(Quantize(x)), also for a Concat. A padded zero is an integer of every type.

    The mover takes over the name of the quantized result.
    """
    mover = graph.producer(node.inputs[0])
    if node.inputs[0] in graph.outputs or mover is None or mover.activation is not None:
        return None
    moves = len(mover.inputs) == 1 and values_source(graph, mover.output) != mover.output
    if grid_type(graph, mover.output) is not None or not (moves or is_real_concat(mover)):
        return None
    if graph.sole_consumer(mover.output) is not node:
        return f"the output of {mover.name} is read in other ways too"
    at = graph.nodes.index(mover)
    graph.absorb(mover, node)
    for index, source in enumerate(dict.fromkeys(mover.inputs)):
        name = graph.fresh_name(f"{source}_quantized")
        graph.add(Node(name, node.op, [source], [name], location=node.location), at=at + index)
        mover.inputs = [name if given == source else given for given in mover.inputs]
    return Done(f"moved before {mover.name}")


@rewrite("clip-before-quantize", "clamps moved before the rounding", Activation)
def clip_before_quantize(graph: Graph, node: Node) -> Outcome:
    """Quantize(Clip(Quantize(x))), both of one type => Quantize(Clip(x)): exact because rounding is monotonic."""
    first, last = graph.producer(node.inputs[0]), graph.sole_consumer(node.output)
    if not isinstance(node.op.function, Clip) or node.activation is not None:
        return None
    if first is None or last is None or not isinstance(first.op, Quantize) or first.op != last.op:
        return None
    if first.inputs[0] in graph.inputs:
        return None
    if graph.sole_consumer(first.output) is not node:
        return "what it clamps is also used without"
    drop(graph, first)
    return Done(f"moved before {first.name}")
