"""Gains g and shifts s are merged into their weighted consumers: W' = W g, b' = b + sum of W s.

Layers that move elements may lie between. A shift needs consumers without padding, which adds zeros after it. Gains of arrays
may differ by at most a factor of two, because the weights of an output share one scale; channel equalization handles wider
gains (quant/correct/channels.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap, gains_and_shifts
from n2d2py.operators.linear import WeightedReaders, gain_and_shift, padded_reader, scale_inputs, weighted_readers
from n2d2py.operators.normalize import Normalize
from n2d2py.operators.pointwise import Affine
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes.base import Pass, drop

_LARGEST_RATIO = 2.0
"""Largest ratio of the gains of an array."""


@dataclass(frozen=True)
class _Gains:
    """A layer that computes gain[n] * x + shift[n], float64; `numbers`: n of each element of its result (1, ...)."""

    gain: np.ndarray
    shift: np.ndarray
    numbers: np.ndarray

    @staticmethod
    def of(gain: np.ndarray, shift: np.ndarray, numbers: np.ndarray) -> _Gains:
        """Return the gains with equal ones merged."""
        pairs, equal = np.unique(np.stack([gain, shift]), axis=1, return_inverse=True)
        return _Gains(pairs[0], pairs[1], equal.reshape(-1)[numbers])

    @property
    def is_wide(self) -> bool:
        sizes = np.abs(self.gain)
        return not np.isfinite(sizes).all() or sizes.max() > _LARGEST_RATIO * sizes.min()


def _gains_of_affine(graph: Graph, node: Node) -> _Gains:
    gain, shift = gain_and_shift(node)
    shape = graph.shape(node.output)
    numbers = np.arange(len(gain)).reshape(1, -1, *(1,) * (len(shape) - 2))
    return _Gains.of(gain, shift, np.broadcast_to(numbers, shape))


def _gains_of_array(graph: Graph, node: Node) -> _Gains | None:
    """Return the gains of a normalization, or of a map without shift."""
    if isinstance(node.op, Normalize) and "gain" in node.params:
        gain, shift = (node.params[role].astype(np.float64) for role in ("gain", "shift"))
        return _Gains.of(gain, shift, node.op.channel_numbers(graph.shape(node.output)))
    gains = gains_and_shifts(node)
    if gains is None or gains[2].any() or not isinstance(node.op, ArrayMap):
        return None
    shape, gain, shift = gains
    return _Gains.of(gain, shift, np.broadcast_to(np.arange(len(gain)).reshape(shape), node.op.dims).reshape(1, -1))


class MergeGains(Pass):
    """Affine, then Conv, Fc or recurrent layers => these layers; with `arrays`, the same for ArrayMap Mul, Div or Neg by
    constants and for the gain and shift of a Normalize."""

    summary = "constant gains and shifts merged into the weights after them"

    def __init__(self, *, arrays: bool):
        self.arrays, self.name = arrays, "merge-gains-of-arrays" if arrays else "merge-gains"

    def match(self, graph: Graph, node: Node) -> tuple[_Gains, WeightedReaders] | str | None:
        if isinstance(node.op, Affine):
            gains = None if self.arrays else _gains_of_affine(graph, node)
        else:
            gains = _gains_of_array(graph, node) if self.arrays and not is_quantized(graph) else None
        if gains is None:
            return None
        if node.activation is not None:
            return f"it has the activation {node.activation.kind}"
        if self.arrays and gains.is_wide:
            return f"its gains differ by more than a factor of {_LARGEST_RATIO:g}"
        readers = weighted_readers(graph, node.output, gains.numbers)
        if isinstance(readers, str):
            return readers
        padded = padded_reader(readers)
        if padded is not None and gains.shift.any():
            return f"{padded.name} pads with zeros, which the shift would change"
        return gains, readers

    def rewrite(self, graph: Graph, node: Node, match: tuple[_Gains, WeightedReaders]) -> str:
        gains, readers = match
        for reader, numbers in readers:
            scale_inputs(reader, gains.gain[numbers], gains.shift[numbers])
        if isinstance(node.op, Normalize):
            node.params = {}
        else:
            drop(graph, node)
        return "gain and shift merged into " + ", ".join(reader.name for reader, _ in readers)
