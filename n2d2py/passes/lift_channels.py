"""Channels of an image that are moved as a vector are moved as channels: images keep their layout, and no transposition is
left.

A Reshape back to an image then cancels with the one that is left (layout.py).
"""

from math import prod

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Concat, ElemWise, IndexSelect, Reshape
from n2d2py.passes.base import Done, Outcome, is_plain, rewrite


def _image_behind(graph: Graph, tensor: str) -> str | None:
    """Return the image whose elements the vector `tensor` holds in order; None without one, or if it has one pixel."""
    producer = graph.producer(tensor)
    if not is_plain(producer, Reshape):
        return None
    shape = graph.shape(producer.inputs[0])
    return producer.inputs[0] if len(graph.shape(tensor)) == 2 and len(shape) == 4 and prod(shape[2:]) > 1 else None


def _channels_taken(op: IndexSelect, pixels: int) -> tuple[int, ...] | None:
    """Return the channels that `op` selects from images of `pixels`, in order; None if it does not select whole ones."""
    positions, _ = op.positions()
    if op.fills or len(positions) % pixels:
        return None
    rows = positions.reshape(-1, pixels)
    if (rows[:, :1] % pixels).any() or (rows != rows[:, :1] + np.arange(pixels)).any():
        return None
    return tuple(int(first) // pixels for first in rows[:, 0])


@rewrite(
    "lift-channels",
    "shuffles, splits, concatenations, functions and sums of flattened images made ones of images",
    *(IndexSelect, Concat, Activation, ElemWise),
)
def lift_channels(graph: Graph, node: Node) -> Outcome:
    """f(Reshape(image), ...) => Reshape(f(image, ...)) for images of one size; f is an IndexSelect of whole channels (a
    shuffle, a split), a Concat, an Activation or an ElemWise."""
    op, has_clamp = node.op, node.activation is None or isinstance(node.activation, Clip)
    if not has_clamp or len(graph.shape(node.output)) != 2 or (isinstance(op, Concat) and op != Concat()):
        return None
    images = [image for name in node.inputs if (image := _image_behind(graph, name)) is not None]
    if len(images) < len(node.inputs):
        return None
    sizes = {graph.shape(image)[2:] for image in images}
    if len(sizes) > 1:
        return "its images differ in size"
    if isinstance(op, IndexSelect):
        channels = _channels_taken(op, prod(sizes.pop()))
        if channels is None:
            return "it takes no whole channels"
        op = IndexSelect((channels, None, None))
    name = graph.fresh_name(f"{node.name}_channels")
    source = [name, *node.source]
    graph.add(Node(name, op, images, [name], node.params, node.activation, node.location, source), graph.nodes.index(node))
    node.op, node.inputs, node.params, node.activation = Reshape(graph.shape(node.output)[1:]), [name], {}, None
    graph.prune()
    return Done(f"made {op.kind} of images")


@rewrite("merge-take", "IndexSelect layers merged", IndexSelect)
def merge_take(graph: Graph, node: Node) -> Outcome:
    """IndexSelect(IndexSelect(x)) => IndexSelect(x)."""
    before = graph.producer(node.inputs[0])
    if not is_plain(before, IndexSelect):
        return None
    if not (before.op.by_axes(graph.shape(before.inputs[0])) and node.op.by_axes(graph.shape(before.output))):
        return None
    composed: list[tuple[int, ...] | None] = []
    for first, then in zip(before.op.indices, node.op.indices, strict=True):
        composed.append(then if first is None else first if then is None else tuple(first[i] for i in then))
    node.op, node.inputs = IndexSelect(tuple(composed)), list(before.inputs)
    graph.prune()
    return Done(f"merged with the IndexSelect {before.name}")
