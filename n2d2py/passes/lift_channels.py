"""Channels of an image that are moved as a vector are moved as channels: images keep their layout, and no transposition is
left.

A Reshape back to an image then cancels with the one that is left (layout.py).
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.contracts.operator import Op
from n2d2py.graph import Graph, Node
from n2d2py.operators import Activation, Concat, ElemWise, IndexSelect, Reshape
from n2d2py.passes.base import Pass


def _image_behind(graph: Graph, tensor: str) -> str | None:
    """Return the image whose elements the vector `tensor` holds in order; None without one, or if it has one pixel."""
    producer = graph.producer(tensor)
    if producer is None or not isinstance(producer.op, Reshape) or producer.activation is not None:
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


class LiftChannels(Pass):
    """f(Reshape(image), ...) => Reshape(f(image, ...)) for images of one size; f is an IndexSelect of whole channels (a
    shuffle, a split), a Concat, an Activation or an ElemWise."""

    name = "lift-channels"
    summary = "shuffles, splits, concatenations, functions and sums of flattened images made ones of images"

    def match(self, graph: Graph, node: Node) -> tuple[Op, list[str]] | str | None:
        if (
            not isinstance(node.op, (IndexSelect, Concat, Activation, ElemWise))
            or not (node.activation is None or isinstance(node.activation, Clip))
            or len(graph.shape(node.output)) != 2
            or (isinstance(node.op, Concat) and node.op != Concat())
        ):
            return None
        images = [image for name in node.inputs if (image := _image_behind(graph, name)) is not None]
        if len(images) < len(node.inputs):
            return None
        sizes = {graph.shape(image)[2:] for image in images}
        if len(sizes) > 1:
            return "its images differ in size"
        if not isinstance(node.op, IndexSelect):
            return node.op, images
        channels = _channels_taken(node.op, prod(sizes.pop()))
        return "it takes no whole channels" if channels is None else (IndexSelect((channels, None, None)), images)

    def rewrite(self, graph: Graph, node: Node, match: tuple[Op, list[str]]) -> str:
        op, images = match
        name = graph.fresh_name(f"{node.name}_channels")
        graph.add(
            Node(name, op, images, [name], node.params, node.activation, location=node.location, source=[name, *node.source]),
            at=graph.nodes.index(node),
        )
        node.op, node.inputs, node.params, node.activation = Reshape(graph.shape(node.output)[1:]), [name], {}, None
        graph.prune()
        return f"made {op.kind} of images"


class MergeTake(Pass):
    """IndexSelect(IndexSelect(x)) => IndexSelect(x)."""

    name = "merge-take"
    summary = "IndexSelect layers merged"
    at = (IndexSelect,)

    def match(self, graph: Graph, node: Node) -> Node | None:
        before = graph.producer(node.inputs[0])
        if before is None or not isinstance(before.op, IndexSelect) or before.activation is not None:
            return None
        plain = before.op.by_axes(graph.shape(before.inputs[0])) and node.op.by_axes(graph.shape(before.output))
        return before if plain else None

    def rewrite(self, graph: Graph, node: Node, before: Node) -> str:
        composed: list[tuple[int, ...] | None] = []
        for first, then in zip(before.op.indices, node.op.indices, strict=True):
            composed.append(then if first is None else first if then is None else tuple(first[i] for i in then))
        node.op = IndexSelect(tuple(composed))
        node.inputs = list(before.inputs)
        graph.prune()
        return f"merged with the IndexSelect {before.name}"
