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

from dataclasses import replace
from operator import add

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.contracts.operator import Op
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Affine, BatchNorm, Conv, Deconv, ElemWise, Fc, Padding, Pool, divisor_tensor
from n2d2py.operators.linear import cast_like, gain_and_shift, nonnegative_tensors, scale_outputs
from n2d2py.operators.reshape import MemoryView, Reshape, Transpose
from n2d2py.passes.base import Done, Outcome, drop, is_plain, reason_to_keep, rewrite

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


@rewrite("fuse-activation", "activations merged into the layer before", Activation)
def fuse_activation(graph: Graph, node: Node) -> Outcome:
    """Merge a clamping Activation into the layer before."""
    function = node.op.function
    if not isinstance(function, Clip):
        return f"{function.kind} is not a clamp"
    if function.low > 0 and any(divisor_tensor(reader) is not None for reader in graph.consumers(node.output)):
        return "it keeps a divisor, or what a logarithm is taken of, above zero"
    target = _clamping_layer(graph, node)
    if isinstance(target, str):
        return target
    if node.activation is not None:
        if not isinstance(node.activation, Clip):
            return f"it carries the activation {node.activation.kind}"
        function = compose(function, node.activation)
    present = target.op.function if isinstance(target.op, Activation) else target.activation
    if isinstance(present, Clip):
        function = compose(present, function)
    if isinstance(target.op, Activation):
        target.op = Activation(function)
    else:
        target.activation = function
    graph.absorb(graph.required_producer(node.inputs[0]), node)
    return Done(f"{function.kind} merged into {target.name}")


def _clamping_layer(graph: Graph, node: Node) -> Node | str:
    """Return the layer before an Activation that can take its clamp, through layers that move single values; else the reason."""
    reader = node
    while True:
        tensor = reader.inputs[0]
        producer = graph.producer(tensor)
        if producer is None:
            return "it reads a network input"
        if graph.sole_consumer(tensor) is not reader:
            return f"the output of {producer.name} is also used elsewhere"
        if _takes_clamp(producer) or (is_plain(producer, Activation) and isinstance(producer.op.function, Clip)):
            return producer
        moves = is_plain(producer, MemoryView, Reshape, Transpose) or (is_plain(producer, Pool) and producer.op.mode == "Max")
        if not moves:
            return f"{producer.name} of type {producer.op.kind} cannot take it"
        reader = producer


@rewrite("remove-unlimited", "activations without effect removed", Activation)
def remove_unlimited(graph: Graph, node: Node) -> Outcome:
    """Remove an Activation whose Clip has no limits."""
    if node.op.function != Clip():
        return None
    reason = reason_to_keep(graph, node)
    if reason is not None:
        return reason
    drop(graph, node)
    return Done("activation without effect removed")


@rewrite("split-activation", "activations made layers of their own", Op)
def split_activation(graph: Graph, node: Node) -> Outcome:
    """Split a layer whose activation is not a clamp into the layer and an Activation (for integer exports).

    The Activation keeps the tensor's name; the linear result gets the suffix "_linear".
    """
    function = node.activation
    if function is None or function.is_clamp or len(node.outputs) != 1:
        return None
    node.activation = None
    layer = graph.add_after(node, Activation(function), f"{node.output}_linear", f"{node.name}_activation")
    graph.precisions[layer.name] = graph.precision(node)
    return Done(f"{function.kind} made the layer {layer.name}")


# ---- gains and shifts ---------------------------------------------------------------------------


@rewrite("fuse-affine", "constant gains and shifts merged into the layer before", Affine)
def fuse_affine(graph: Graph, node: Node) -> Outcome:
    """Conv, Deconv, Fc or Affine, then Affine => one layer; an Affine that changes nothing disappears."""
    gain, shift = gain_and_shift(node)
    if node.activation is None and (gain == 1).all() and not shift.any() and not graph.joins_ends(node):
        drop(graph, node)
        return Done("Affine that changes nothing removed")
    return _into_producer(graph, node, (Conv, Deconv, Fc, Affine))


def _into_producer(graph: Graph, node: Node, kinds: tuple[type, ...]) -> Outcome:
    """Merge a layer with a gain and a shift into its producer, if that is one of `kinds`; its activation is kept."""
    producer, (gain, shift) = linear_producer(graph, node, kinds), gain_and_shift(node)
    if isinstance(producer, str):
        return producer
    if isinstance(producer.op, Affine):
        first_gain, first_shift = gain_and_shift(producer)
        producer.params = _affine_params(gain * first_gain, gain * first_shift + shift, producer.params["weights"])
    else:
        scale_outputs(producer, gain, shift)
    graph.absorb(graph.required_producer(node.inputs[0]), node)
    producer.activation = node.activation
    return Done(f"{node.op.kind} merged into {producer.name}")


def _affine_params(gain: np.ndarray, shift: np.ndarray, like: np.ndarray) -> dict[str, np.ndarray]:
    return {"weights": cast_like(gain, like), "bias": cast_like(shift, like)}


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


@rewrite("fuse-batchnorm", "BatchNorm layers merged into Conv or Fc", BatchNorm)
def fuse_batch_norm(graph: Graph, node: Node) -> Outcome:
    """BatchNorm of a Conv, Deconv or Fc => that layer with W' = g W, b' = g b + s; the activation of the BatchNorm is kept."""
    return _into_producer(graph, node, (Conv, Deconv, Fc))


@rewrite("batchnorm-to-affine", "BatchNorm layers turned into Affine", BatchNorm)
def batch_norm_to_affine(graph: Graph, node: Node) -> Outcome:
    """Turn a BatchNorm that `fuse_batch_norm` left into an Affine with weights g, bias s."""
    params = _affine_params(*gain_and_shift(node), node.params["scale"])
    node.op, node.params = Affine(), params
    return Done("BatchNorm turned into a gain and a shift per channel")


# ---- padding ------------------------------------------------------------------------------------


@rewrite("fuse-padding", "Padding layers merged into Conv or Pool", Padding)
def fuse_padding(graph: Graph, node: Node) -> Outcome:
    """Padding whose readers are all Conv or Pool => larger, possibly asymmetric, pads of the readers. Crops stay."""
    if min(node.op.pads) < 0:
        return "it crops"
    if node.activation is not None:
        return "it carries an activation"
    readers = graph.consumers(node.output)
    if node.output in graph.outputs or not readers:
        return "it is a network output, or nothing reads it"
    padded = {}
    for reader in readers:
        padded[reader] = op = _padded(graph, node, reader)
        if isinstance(op, str):
            return op
    for reader, op in padded.items():
        reader.op = op
    drop(graph, node)
    return Done("padding merged into " + ", ".join(reader.name for reader in readers))


def _padded(graph: Graph, node: Node, reader: Node) -> Conv | Pool | str:
    """Return the operator of a consumer of a Padding with larger pads; the reason if it cannot have them."""
    op, padding = reader.op, node.op.pads
    if not isinstance(op, (Conv, Pool)):
        return f"it feeds {reader.name} of type {op.kind}"
    if min(op.pads) < 0:
        return f"{reader.name} crops"
    top, left, bottom, right = map(add, op.pads, padding)
    fused = replace(op, pads=(top, left, bottom, right))
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
