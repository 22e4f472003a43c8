"""Layers that change nothing, or only the layout of a tensor, are removed, merged or moved to where they cancel.

Reshape to its input's shape, Transpose that moves nothing    =>  nothing
Reshape(Reshape(x)), Transpose(Transpose(x))                  =>  one
Transpose that moves axes of size 1 only                      =>  Reshape
Fc(Reshape(x))                                                =>  Fc(x), which flattens in C, H, W order itself
Reshape between (C, 1, 1) and (C)                             =>  nothing, if no network output changes its shape
"""

import numpy as np

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph, Node, dims_text
from n2d2py.operators import Activation, Affine, Fc, Identity, Quantize, Reshape, Softmax, Transpose
from n2d2py.operators.linear import cast_like
from n2d2py.passes.base import Done, Outcome, drop, is_plain, reason_to_keep, recompute_shapes, rewrite


@rewrite("remove-identity", "Identity and Dropout layers removed", Identity)
def remove_identity(graph: Graph, node: Node) -> Outcome:
    """y = Identity(x) or Dropout(x) => x, unless a network output would become an input or another output."""
    reason = reason_to_keep(graph, node)
    if reason is not None:
        return reason
    drop(graph, node)
    return Done(f"{node.op.kind} removed")


@rewrite("drop-softmax", "Softmax at the network's outputs dropped", Softmax)
def drop_softmax(graph: Graph, node: Node) -> Outcome:
    """Softmax(x) at a network output => x; a Quantize of its result is dropped too."""
    if type(node.op) is not Softmax:
        return None
    reader = graph.sole_consumer(node.output)
    rounding = reader if reader is not None and isinstance(reader.op, Quantize) else None
    if not graph.is_last((rounding or node).output):
        return "it is not at the end of the network"
    reason = reason_to_keep(graph, node)
    if reason is not None:
        return reason
    if rounding is not None:
        drop(graph, rounding)
    log.notice("Softmax '%s' at the output is removed: the output gives logits instead of probabilities", node.name)
    drop(graph, node)
    return Done("Softmax dropped")


def _skip(graph: Graph, node: Node, before: Node, carrier: str) -> None:
    """Let `node` read the input of `before`, its producer; if that is read no longer, `carrier` has its result."""
    node.inputs = list(before.inputs)
    if not graph.consumers(before.output) and before.output not in graph.outputs:
        graph.remove(before)
        del graph.tensors[before.output]
        graph.aliases[before.output] = carrier


@rewrite("remove-reshape", "Reshape layers removed", Reshape)
def remove_reshape(graph: Graph, node: Node) -> Outcome:
    """Remove and merge Reshapes."""
    before = graph.producer(node.inputs[0])
    if node.activation is None and is_plain(before, Reshape):
        _skip(graph, node, before, node.output)
        return Done(f"merged with the Reshape {before.name}")
    reason = reason_to_keep(graph, node) or _reason_for_shape(graph, node)
    if reason is not None:
        return reason
    drop(graph, node)
    recompute_shapes(graph)
    return Done("Reshape removed")


def _reason_for_shape(graph: Graph, node: Node) -> str | None:
    """Return why the consumers of a Reshape need its shape; None if they accept that of its input, such as (C, 1, 1) for (C)."""
    before, after = graph.shape(node.inputs[0]), graph.shape(node.output)
    readers = graph.consumers(node.output)
    flattened = readers and node.output not in graph.outputs and all(isinstance(one.op, Fc) for one in readers)
    if before == after or flattened:
        return None
    if max((*before[2:], *after[2:]), default=1) > 1:
        text = " to ".join(dims_text(shape[1:]) for shape in (before, after))
        return f"it changes {text}, which its consumers distinguish"
    trial = graph.copy()
    drop(trial, trial.node(node.name))
    try:
        recompute_shapes(trial)
    except N2D2Error as error:
        return f"a layer after it needs this shape ({error.what})"
    ends = zip(graph.outputs, trial.outputs, strict=True)
    changed = next((old for old, new in ends if graph.shape(old) != trial.shape(new)), None)
    return None if changed is None else f"the output {changed} would change its shape"


@rewrite("remove-transpose", "Transpose layers removed or simplified", Transpose)
def merge_transpose(graph: Graph, node: Node) -> Outcome:
    """Remove and merge Transposes; those that keep the memory order become Reshapes."""
    if node.activation is not None:
        return "it carries an activation"
    perm, before = node.op.perm, graph.producer(node.inputs[0])
    if perm == tuple(range(len(perm))) and not graph.joins_ends(node):
        drop(graph, node)
        return Done("Transpose that moves nothing removed")
    if is_plain(before, Transpose):
        node.op = Transpose(tuple(before.op.perm[axis] for axis in perm))
        _skip(graph, node, before, before.inputs[0])
        return Done(f"merged with the Transpose {before.name}")
    shape = graph.shape(node.inputs[0])
    moved = [axis for axis in perm if shape[axis] != 1]
    if moved != sorted(moved):
        return "it changes the order of the elements"
    node.op = Reshape(graph.shape(node.output)[1:])
    return Done("Transpose of axes of size 1 turned into a Reshape")


@rewrite("move-transpose", "Transpose layers moved after element-wise layers", Transpose)
def move_transpose(graph: Graph, node: Node) -> Outcome:
    """Transpose2(f(Transpose1(x))) => Transpose2(Transpose1(f(x))) for a chain f of element-wise layers."""
    chain, last = [], graph.sole_consumer(node.output)
    while last is not None and _is_elementwise(last):
        chain.append(last)
        last = graph.sole_consumer(last.output)
    if node.activation is not None or not chain or last is None or not isinstance(last.op, Transpose):
        return None
    permutation = node.op.perm
    channels = graph.shape(node.inputs[0])[1]
    graph.bypass(node)
    for layer in chain:
        layer.params = {role: np.full(channels, array.flat[0], array.dtype) for role, array in layer.params.items()}
    last.op = Transpose(tuple(permutation[axis] for axis in last.op.perm))
    recompute_shapes(graph)
    return Done(f"merged with the Transpose {last.name}")


def _is_elementwise(node: Node) -> bool:
    if isinstance(node.op, Affine):
        return all((array == array.flat[0]).all() for array in node.params.values())
    return isinstance(node.op, Activation)


@rewrite("transpose-into-fc", "Transpose layers merged into the weights of Fc", Transpose)
def transpose_into_fc(graph: Graph, node: Node) -> Outcome:
    """Fc(Reshape(Transpose(x))) => Fc(x) with the columns of W in the order of x (a flattening in H, W, C order)."""
    layers = None if node.activation is not None else _linear_readers(graph, node.output)
    if layers is None or isinstance(layers, str):
        return layers
    source, sizes = node.inputs[0], graph.shape(node.output)[1:]
    back = np.argsort(node.op.perm[1:]) + 1
    for reader in layers:
        weights = reader.params["weights"]
        columns = weights.reshape(len(weights), *sizes).transpose(0, *back)
        reader.params = {**reader.params, "weights": cast_like(columns.reshape(len(weights), -1), weights)}
        reader.inputs = [source]
    for unread in graph.prune():
        graph.aliases.update(dict.fromkeys(unread.outputs, source))
    return Done("merged into the weights of " + ", ".join(reader.name for reader in layers))


def _linear_readers(graph: Graph, tensor: str) -> list[Node] | str:
    """Return the Fc layers that consume a tensor, directly or through Reshapes; the reason if it is used otherwise."""
    layers, waiting = [], [tensor]
    while waiting:
        tensor = waiting.pop(0)
        readers = graph.consumers(tensor)
        if tensor in graph.outputs or not readers:
            return f"{tensor} is a network output"
        for reader in readers:
            if isinstance(reader.op, Fc):
                layers.append(reader)
            elif is_plain(reader, Reshape):
                waiting.append(reader.output)
            else:
                return f"it feeds {reader.name} of type {reader.op.kind}"
    return layers
