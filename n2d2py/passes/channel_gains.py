"""Gains and shifts of the channels of an array become a layer that has integers.

ArrayMap Add, Sub, Mul, Div of an array (C, ...) and a constant for each of its C parts   =>  Affine of the image (C, W)
    of an array (..., C) and a constant for each place of its rows                      =>  Affine of rows, channels last
    by which nothing changes                                                           =>  Identity

Those behind a group or instance normalisation are of this kind, and learnt scales of a branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.channels_last import FromChannelsLast, ToChannelsLast
from n2d2py.operators.identity import Identity
from n2d2py.operators.quantize import Quantize
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.base import Match, Pass


@dataclass(frozen=True)
class Gains:
    """y = gain * x + shift, both (C), of the array (C, height, width), or of (height, width, C) with `last`."""

    gain: np.ndarray
    shift: np.ndarray
    height: int
    width: int
    last: bool

    @property
    def changes_nothing(self) -> bool:
        """Whether y = x."""
        return bool((self.gain == 1).all() and not self.shift.any())


def _channel_axes(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, int] | None:
    """[first, end) of the axes of `dims` along which a constant of `shape` may differ; None where it is repeated between them."""
    padded = (1,) * (len(dims) - len(shape)) + shape
    axes = [axis for axis, size in enumerate(padded) if size > 1]
    first, end = (axes[0], axes[-1] + 1) if axes else (0, 0)
    return (first, end) if padded[first:end] == dims[first:end] else None


def gains_of(node: Node) -> Gains | None:
    """What an ArrayMap does to the channels of its only input; None for any other layer, and for constants that differ otherwise."""
    op = node.op
    if (
        not isinstance(op, ArrayMap)
        or op.function not in ("Add", "Sub", "Mul", "Div")
        or op.result
        or node.activation is not None
    ):
        return None
    if sorted(op.slots) != [-1, 0]:
        return None
    index = op.slots.index(-1)
    constant, axes = node.params[f"operand{index}"], _channel_axes(op.shapes[index], op.dims)
    if axes is None or op.shapes[1 - index] != op.dims or constant.dtype.kind != "f" or (op.function == "Div" and index == 0):
        return None
    values = constant.astype(np.float64).reshape(-1)
    one, none = np.ones_like(values), np.zeros_like(values)
    if op.function in ("Mul", "Div"):
        with np.errstate(all="ignore"):
            gain, shift = (values if op.function == "Mul" else 1 / values), none
    else:
        sign = -1.0 if op.function == "Sub" else 1.0
        gain, shift = (one, sign * values) if index == 1 else (sign * one, values)
    before, behind = op.dims[: axes[0]], op.dims[axes[1] :]
    if not (np.isfinite(gain).all() and np.isfinite(shift).all()) or (
        prod(before) > 1 and prod(behind) > 1 and values.size > 1
    ):
        return None
    pixels = before if prod(before) > 1 else behind
    return Gains(gain, shift, prod(pixels[:-1]), prod(pixels[-1:]), prod(before) > 1)


class ChannelGains(Pass):
    """ArrayMap with a constant for each channel => Affine; not in networks that come quantized."""

    name = "channel-gains"
    summary = "gains and shifts of the channels of arrays turned into layers that have integers"

    def match(self, graph: Graph, node: Node) -> Match | None:
        found = gains_of(node)
        if found is None or graph.kind(node.output):
            return None
        if any(isinstance(other.op, Quantize) for other in graph.nodes):
            return Match.no("it computes in integers of the file")
        if not found.changes_nothing and len(found.gain) == 1:
            return Match.no("it has one constant for all channels")
        return Match(found)

    def rewrite(self, graph: Graph, node: Node, found: Gains) -> str:
        channels = len(found.gain)
        if found.changes_nothing:
            node.op, node.params = Identity(), {}
            return "it changes nothing"
        affine = Affine()
        params = {"weights": found.gain.astype(np.float32), "bias": found.shift.astype(np.float32)}
        if found.height * found.width == 1:
            node.op, node.params = affine, params
            return f"gains of {channels} elements"
        at, (source,) = graph.nodes.index(node), node.inputs
        image, scaled = (graph.fresh_name(f"{node.output}_{what}") for what in ("channels", "scaled"))
        view = FromChannelsLast(channels) if found.last else Reshape((channels, found.height, found.width))
        graph.add(Node(image, view, [source], [image], location=node.location, helper=True), at=at)
        graph.add(
            Node(scaled, affine, [image], [scaled], params, location=node.location, source=[scaled, *node.source]), at=at + 1
        )
        node.op = ToChannelsLast() if found.last else Reshape(graph.shape(node.output)[1:])
        node.inputs, node.params = [scaled], {}
        return f"gains of {channels} channels"
