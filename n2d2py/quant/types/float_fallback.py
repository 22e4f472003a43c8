"""Float fallback: layers of an integer network that compute in floating point, and the conversions around them.

These layers fall back to floating point:
- layers with `Quantize=0`, and layers without an integer form;
- the power spectrum up to its logarithm and divisors (dynamic_range.py);
- the first layers after a float input (float_inputs.py), and layers that the target runs in floating point;
- layers between float layers that only move values or compute exactly (maximum, product, sum of two);
- a Concat with a float producer or consumer: one integer scale for boxes and scores of a detector would spoil the scores.

Functions without an integer form use `arithmetic/functions.py`, so every export computes the same bits.
"""

from collections.abc import Callable
from dataclasses import replace
from math import prod

from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.quantizer import refusal, refused
from n2d2py.graph import Graph, Node, Precision, TargetForm
from n2d2py.operators import ArrayMap, ArrayOp, ArrayReduce, ArrayTopK, Conv, Convert, ElemWise, Pool, Reshape, is_real_concat
from n2d2py.operators.pointwise import Activation, AddConstants, Affine
from n2d2py.quant.types.dynamic_range import EXACT_FUNCTIONS, divisor_layers, only_clamps, power_layers
from n2d2py.quant.types.float_inputs import input_layers

_ROUNDED = ("Logistic", "Exp", "Log", "Erf", "Softplus")
"""Functions of `EXACT_FUNCTIONS` whose last bits would depend on the math library."""
_ORDERED = ("ArgMax", "ArgMin", "ArgMaxLast", "ArgMinLast")


def float_layers(graph: Graph) -> set[str]:
    """Return the names of the layers that compute in floating point.

    Layers that only move values between float layers are added, to avoid conversions. A Concat next to a float layer is
    added too, with the layers that move its result: the parts of its result are then quantized one by one.
    """
    chosen = {
        node.name for node in graph.nodes if graph.precision(node).quantize is False or _has_form(graph, node, TargetForm.REAL)
    }
    chosen |= _without_integer_form(graph) | power_layers(graph) | divisor_layers(graph) | input_layers(graph)
    concats: set[str] = set()
    while chosen:
        between = _between_float_layers(graph, chosen)
        others = (node for node in graph.nodes if node.name not in chosen)
        added = {node.name for node in others if _is_float_concat(graph, node, chosen, concats)}
        if not between and not added:
            break
        chosen |= between | added
        concats |= added
    return chosen


def _has_form(graph: Graph, node: Node, form: TargetForm) -> bool:
    return graph.precision(node).target is form


def _is_float_concat(graph: Graph, node: Node, chosen: set[str], concats: set[str]) -> bool:
    """True for a Concat with a producer or consumer in `chosen`, and for layers that move the result of one of `concats`."""
    if graph.precision(node).quantize is not None or any(graph.kind(name) for name in (*node.inputs, *node.outputs)):
        return False
    if is_real_concat(node):
        touches = _touches(node, chosen, graph.producers) or _touches(node, chosen, graph.followers)
        return only_clamps(node) and touches
    producer = graph.producer(node.inputs[0]) if node.only_moves else None
    return producer is not None and producer.name in concats


def _touches(node: Node, chosen: set[str], neighbours: Callable[[Node], list[Node]]) -> bool:
    """True if one of `chosen` layers is a neighbour of a layer, directly or through layers that move values."""
    return any(one.name in chosen or (one.op.moves_values and _touches(one, chosen, neighbours)) for one in neighbours(node))


def _without_integer_form(graph: Graph) -> set[str]:
    """Return the layers without an integer form, and the layers after them that are exact in floating point."""
    chosen: set[str] = set()
    real: set[str] = set()
    for node in graph.nodes:
        sources = [name for name in node.inputs if not graph.kind(name)]
        continues_float = bool(sources) and all(name in real for name in sources) and _is_exact_in_float(node, graph)
        if (
            not _uses_order_only(node)
            and not isinstance(node.op, Convert)
            and (continues_float or _has_form(graph, node, TargetForm.REAL) or refused(node) is not None)
        ):
            chosen.add(node.name)
            real.update(node.outputs)
    return chosen


def _uses_order_only(node: Node) -> bool:
    """True if only the order of the values counts, which quantization preserves."""
    return isinstance(node.op, ArrayTopK) or (isinstance(node.op, ArrayReduce) and node.op.function in _ORDERED)


def _is_exact_in_float(node: Node, graph: Graph) -> bool:
    """True if the float result of a layer with an integer form has the same bits on every machine."""
    op = node.op
    if graph.precision(node).quantize or not only_clamps(node):
        return False
    if isinstance(op, Activation):
        return isinstance(op.function, Clip) or _as_array_operator(node, graph) is not None
    if isinstance(op, ElemWise):
        return op.operation in ("Prod", "Max", "Min") or op.is_plain_sum
    return op.moves_values or is_real_concat(node) or (isinstance(op, Pool) and op.mode == "Max")


def _as_array_operator(node: Node, graph: Graph) -> ArrayMap | None:
    """Return the array operator that is equivalent to an activation function of a vector; None without one."""
    shape = graph.shape(node.output)
    return _array_function(node, shape[1], EXACT_FUNCTIONS) if len(shape) == 2 else None


def _array_function(node: Node, size: int, kinds: tuple[str, ...]) -> ArrayMap | None:
    """Return the array operator of an activation function, one of `kinds`, of `size` elements; None for other layers."""
    op = node.op
    is_function = isinstance(op, Activation) and op.function.kind in kinds and node.activation is None
    return ArrayMap(op.function.onnx, (size,), ((size,),)) if is_function else None


def _between_float_layers(graph: Graph, chosen: set[str]) -> set[str]:
    """Return the layers that move or scale values only between `chosen` layers: quantization there only adds error."""
    candidates = {
        node.name: node
        for node in graph.nodes
        if node.name not in chosen
        and (node.op.moves_values or (only_clamps(node) and isinstance(node.op, (AddConstants, Affine, ElemWise))))
        and graph.precision(node).quantize is None
        and graph.followers(node)
        and len(graph.producers(node)) == len(node.inputs)
        and not any(name in graph.outputs for name in node.outputs)
    }
    while True:
        names = chosen | candidates.keys()
        remaining = {
            name: node
            for name, node in candidates.items()
            if all(one.name in names for one in (*graph.producers(node), *graph.followers(node)))
        }
        if len(remaining) == len(candidates):
            return set(remaining)
        candidates = remaining


def float_tensors(graph: Graph) -> set[str]:
    """Return the float tensors of a graph that has its conversions.

    The type follows from the conversions: a layer computes in the type that it reads. `float_layers` could decide otherwise,
    since a conversion hides the producer of a Concat's input.
    """
    chosen = float_layers(graph)
    return _propagate_float(graph, chosen, _float_inputs(graph, _propagate_float(graph, chosen, set())))


def _float_inputs(graph: Graph, real: set[str]) -> set[str]:
    """Return the float inputs, and the states whose outputs are in `real`."""
    ends = zip(graph.state_inputs, graph.state_outputs, strict=True)
    return {*graph.float_inputs, *(name for name, output in ends if output in real)}


def _propagate_float(graph: Graph, chosen: set[str], states: set[str]) -> set[str]:
    floats = set(states)
    for node in graph.nodes:
        sources = [name for name in node.inputs if not graph.kind(name)]
        if isinstance(node.op, Convert):
            real = node.op.to_float
        else:
            computed = any(name in floats for name in sources) if sources else node.name in chosen
            real = computed or _has_form(graph, node, TargetForm.SUMS)
        floats.update(name for name in node.outputs if real and not graph.kind(name))
    return floats


def insert_conversions(graph: Graph, chosen: set[str] | None = None) -> Graph:
    """Return a copy of a fused float graph with a Convert layer on every edge between integers and floating point.

    A tensor with several consumers is converted once. Outputs of the network keep their computed type. `chosen` are the float
    layers; by default `float_layers`. Raises N2D2Error (E510 for a layer with neither an integer form nor a reproducible float
    kernel).
    """
    chosen = float_layers(graph) if chosen is None else chosen
    if not chosen and not graph.float_inputs and not any(_has_form(graph, node, TargetForm.SUMS) for node in graph.nodes):
        return graph
    result = graph.copy()
    floats = [node for node in result.nodes if node.name in chosen or _has_form(result, node, TargetForm.SUMS)]
    real = {name for node in floats for name in node.outputs}
    real |= _float_inputs(result, real)
    fallback = {
        node.name
        for node in result.nodes
        if node.name in chosen and result.precision(node).quantize is not False and not _has_form(result, node, TargetForm.REAL)
    }
    converted: dict[tuple[str, bool], str] = {}
    for node in list(result.nodes):
        is_float = node.name in chosen
        if node.name in fallback:
            reason = refused(node)
            if reason is not None and not isinstance(node.op, ArrayOp) and not node.op.same_bits:
                raise refusal(node, reason)
            node.op = _as_array_operator(node, result) or node.op
        for position, name in enumerate(node.inputs):
            if (name in real) == is_float or result.kind(name) or _uses_order_only(node):
                continue
            if (name, is_float) not in converted:
                suffix = "float" if is_float else "integer"
                converted[name, is_float] = result.add_before(node, Convert(is_float), name, f"{name}_{suffix}")
            node.inputs = [*node.inputs[:position], converted[name, is_float], *node.inputs[position + 1 :]]
    for node in list(result.nodes):
        if node.name in fallback:
            _replace_by_array_operator(result, node)
    result.verify()
    return result


def _replace_by_array_operator(graph: Graph, node: Node) -> None:
    """Replace a function of an image by the array operator with reproducible bits, between two views."""
    shape, output = graph.shape(node.output), node.output
    function = _array_function(node, prod(shape[1:]), _ROUNDED) if len(shape) > 2 else None
    if function is not None:
        node.inputs = [graph.add_before(node, Reshape(function.dims), node.inputs[0], f"{output}_elements")]
        node.op = function
        graph.view_output(node, f"{output}_mapped", function.dims, Reshape(tuple(shape[1:])))


def with_target_forms(graph: Graph, in_integers: Callable[[Node], bool]) -> Graph:
    """Return a copy of a fused float graph with the target's form of each layer, for targets with weighted layers in integers only.

    A layer for which `in_integers` is true quantizes its input and returns its accumulators as real numbers; everything between
    stays in floating point. If only integer convolutions consume the result of a convolution, the result is quantized once.
    """
    chosen = {
        node.name
        for node in graph.nodes
        if in_integers(node) and refused(node) is None and graph.precision(node).quantize is not False
    }
    result = graph.copy()

    def is_chosen(node: Node) -> bool:
        return isinstance(node.op, Conv) and node.name in chosen

    def stays_integer(node: Node) -> bool:
        return node.output not in result.outputs and is_chosen(node) and result.feeds_only(node.output, is_chosen)

    for node in result.nodes:
        form = TargetForm.REAL
        if node.name in chosen:
            form = TargetForm.INTEGERS if stays_integer(node) else TargetForm.SUMS
        result.precisions[node.name] = replace(result.precisions.get(node.name, Precision()), target=form)
    return result
