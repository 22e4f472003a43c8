"""Manual edits of a float graph: each returns a changed copy with recomputed shapes."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from n2d2py.contracts.functions import FUNCTIONS, FunctionRow
from n2d2py.contracts.operator import Op
from n2d2py.errors import InternalError, N2D2Error, join_names, nearest, suggest
from n2d2py.graph import Graph, Node, Precision, dims_text
from n2d2py.operators import Activation
from n2d2py.passes.base import FuseReport, Pass, drop, recompute_shapes
from n2d2py.passes.fuse import late_passes, passes

Operation = Op | FunctionRow | str
"""An operator, an element-wise function, or the name of a function without attributes, such as "Tanh"."""

_WIDTHS = {"bits": (None, 8, 16), "weight_bits": (None, *range(2, 9), 16), "quantize": (None, False, True)}


def insert_layer(
    graph: Graph, after: str, name: str, operation: Operation, params: Mapping[str, np.ndarray] | None = None
) -> Graph:
    """Return the graph with a layer of one input inserted after a layer or input, before all its consumers.

    A network output keeps its name. `params` are the constants of the operator by role. Raises N2D2Error (E245 an unknown
    layer, a name in use, an operator that does not fit; E2xx shapes).
    """
    result, tensor = graph.copy(), graph.resolve(after)
    if tensor is None:
        raise _unknown_layer(graph, after)
    _check_free(graph, name)
    output, before = name, result.producer(tensor)
    if tensor in result.outputs and before is not None:
        inner = result.fresh_name(f"{tensor}_inner")
        result.rename_tensor(tensor, inner)
        tensor, output = inner, tensor
    for node in result.consumers(tensor):
        node.inputs = [output if one == tensor else one for one in node.inputs]
    result.outputs = [output if one == tensor else one for one in result.outputs]
    index = 0 if before is None else result.nodes.index(before) + 1
    return _with_node(result, Node(name, _operator(operation), [tensor], [output], dict(params or {})), index)


def replace_layer(graph: Graph, layer: str, operation: Operation, params: Mapping[str, np.ndarray] | None = None) -> Graph:
    """Return the graph with another operator in a layer, which keeps its name, inputs and outputs.

    A function replaces the activation of a layer that computes something else. Without `params` the layer keeps its constants.
    Raises N2D2Error (E245 an unknown layer, an operator that does not fit; E2xx shapes).
    """
    result = graph.copy()
    node = _layer(result, layer)
    changed = replace(node, params=node.params if params is None else dict(params))
    new_op = _operator(operation)
    if isinstance(new_op, Activation) and not isinstance(node.op, Activation):
        changed.activation = new_op.function
    else:
        changed.op = new_op
    index = result.nodes.index(node)
    result.remove(node)
    for name in node.outputs:
        del result.tensors[name]
    return _with_node(result, changed, index)


def remove_layer(graph: Graph, layer: str) -> Graph:
    """Return the graph without a layer of one output: its consumers read its first input. Raises N2D2Error (E245 an unknown
    layer, or one between a network input and output; E2xx shapes)."""
    result = graph.copy()
    node = _layer(result, layer)
    if len(node.outputs) != 1 or result.joins_ends(node):
        what = f"layer '{layer}' has several outputs, or connects two ends of the network"
        raise _unfit_operator(what, "keep it, or replace it")
    drop(result, node)
    recompute_shapes(result)
    result.prune()
    result.verify()
    return result


def rename(graph: Graph, old: str, new: str) -> Graph:
    """Return the graph with another name for a layer and its tensor, which may be an input or an output. Raises N2D2Error (E245
    an unknown name, or a new name in use)."""
    result = graph.copy()
    nodes = [node for node in result.nodes if node.name == old]
    if not nodes and old not in result.tensors:
        raise _unknown_layer(graph, old)
    _check_free(graph, new)
    for node in nodes:
        node.name, node.source = new, [new, *node.source]
    if old in result.tensors:
        result.rename_tensor(old, new)
    result.aliases.pop(new, None)
    result.aliases[old] = new if new in result.tensors else nodes[0].outputs[0]
    if old in result.precisions:
        result.precisions[new] = result.precisions.pop(old)
    result.verify()
    return result


def set_precision(
    graph: Graph, layer: str, bits: int | None = None, weight_bits: int | None = None, quantize: bool | None = None
) -> Graph:
    """Return the graph with the precision of a layer, as `QuantBits`, `QuantWeightBits` and `Quantize` set it; None changes
    nothing. Raises N2D2Error (E245 an unknown layer or value)."""
    result = graph.copy()
    node = _layer(result, layer)
    for name, value in (("bits", bits), ("weight_bits", weight_bits), ("quantize", quantize)):
        if value not in _WIDTHS[name]:
            raise _unfit_operator(f"{name}={value} is not supported", f"give one of {join_names(map(str, _WIDTHS[name]))}")
    result.precisions[node.name] = Precision(bits, weight_bits, quantize).over(result.precisions.get(node.name))
    return result


def every_pass() -> list[Pass]:
    """Return all rewrites of integer exports in the order in which they run."""
    return [*passes(integer=True, logits=True), *late_passes()]


def apply_pass(graph: Graph, name: str) -> tuple[Graph, FuseReport]:
    """Return the graph after applying one rewrite wherever it fits, and the report. Raises N2D2Error (E245 unknown rewrite)."""
    names = list(dict.fromkeys(one.name for one in every_pass()))
    if name not in names:
        raise _unfit_operator(f"no pass is called '{name}'", suggest(name, names))
    result, report = graph.copy(), FuseReport()
    for one in every_pass():
        if one.name == name:
            one.run(result, report)
    report.publish()
    return result, report


def _with_node(graph: Graph, node: Node, index: int) -> Graph:
    """Return the graph with a node inserted at an index; E245 if its operator does not fit, E2xx for other shape errors."""
    try:
        graph.add(node, index)
    except (InternalError, KeyError, TypeError, ValueError, IndexError, AttributeError) as problem:
        shapes = " and ".join(dims_text(graph.shape(name)[1:]) for name in node.inputs)
        contents = f"inputs of {shapes} and the constants {', '.join(node.params) or 'none'}"
        remedy = "use another operator, or give its constants in params"
        raise _unfit_operator(f"{node.op.kind} does not fit into layer '{node.name}' with {contents}", remedy) from problem
    recompute_shapes(graph)
    graph.verify()
    return graph


def _operator(operation: Operation) -> Op:
    op, like = operation, None
    if isinstance(operation, str):
        like = nearest(operation, FUNCTIONS)
        with suppress(KeyError, TypeError):
            op = FUNCTIONS[operation]()
    if isinstance(op, FunctionRow):
        op = Activation(op)
    if not isinstance(op, Op):
        remedy = f"did you mean {like}, or an object of this class?" if like else "give one, or an object of n2d2py.operators"
        raise _unfit_operator(f"{operation!r} is neither an operator nor a function without attributes", remedy)
    return op


def _layer(graph: Graph, name: str) -> Node:
    layer = next((node for node in graph.nodes if node.name == name), None)
    if layer is None:
        raise _unknown_layer(graph, name)
    return layer


def _check_free(graph: Graph, name: str) -> None:
    if not name or name in graph.tensors or any(node.name == name for node in graph.nodes):
        remedy = f"use another one, such as {graph.fresh_name(name or 'layer')}"
        raise _unfit_operator(f"the name '{name}' is empty or in use", remedy)


def _unknown_layer(graph: Graph, name: str) -> N2D2Error:
    known = [*graph.inputs, *(node.name for node in graph.nodes)]
    remedy = suggest(str(name), known, f"the layers are {join_names(known)}")
    return _unfit_operator(f"'{name}' is not a layer of {graph.name}", remedy)


def _unfit_operator(what: str, remedy: str) -> N2D2Error:
    return N2D2Error("E245", what, remedy=remedy)
