"""Constants of the kernels of RV32: `pixel_pairs.hpp` and `column_depthwise.hpp` of `kernels/n2d2/mcu`.

In dense layers a word holds the inputs of two pixels, 16 bits each, and a product with a weight two products. Sums of a group of taps fit 16 bits each,
whatever the inputs: signed bytes, unsigned ones 128 lower.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.arithmetic import FixedPointRescale
from n2d2py.exports.cpp.isa import COLUMNS, PIXELS, having
from n2d2py.exports.cpp.lanes import unfit
from n2d2py.exports.cpp.layer import Layer
from n2d2py.exports.cpp.parts import Stream
from n2d2py.exports.cpp.variants import Selection
from n2d2py.exports.cpp.vector_streams import signed_bias, word_bytes

_OUTPUTS = 2
_LIMIT = 255
"""The sum of the magnitudes of weights whose products with -128 to 127 stay within 16 bits."""
_BASE = 1 << 15
"""What both halves of a group start at."""
_WORD_GROUPS = 10
"""Groups whose sizes a word of the stream has, three bits each."""
_SIZES = {2: (1, 26), 4: (4, 22), 8: (2, 24)}
"""By the taps that a group may have, its bits and the instructions beside its products, for six pixels."""


def _filled(weights: np.ndarray) -> np.ndarray:
    """Weights (O, K) as (blocks, 2, K), zeros up to a multiple of two outputs and of two taps."""
    outputs, inputs = weights.shape
    filled = np.zeros((-(-outputs // _OUTPUTS) * _OUTPUTS, -(-inputs // 2) * 2), np.int64)
    filled[:outputs, :inputs] = weights
    return filled.reshape(-1, _OUTPUTS, filled.shape[1])


def _reaches(rows: np.ndarray, taps: int) -> np.ndarray:
    """The larger sum of magnitudes of two outputs for `taps` taps from each even one on, (blocks, places)."""
    sums = np.cumsum(np.abs(rows), axis=2)
    sums = np.concatenate([np.zeros_like(sums[:, :, :1]), sums], axis=2)
    return (sums[:, :, taps:] - sums[:, :, :-taps])[:, :, ::2].max(axis=1)


def group_sizes(rows: np.ndarray) -> list[list[int]]:
    """The taps of the groups of each block of (blocks, 2, K): as few instructions as possible, each within 16 bits."""
    blocks, places = len(rows), rows.shape[2] // 2
    fits = {taps: _reaches(rows, taps) <= _LIMIT for taps in _SIZES}
    cost, best = np.full((blocks, places + 1), 1 << 40), np.full((blocks, places), 2)
    cost[:, places] = 0
    for place in range(places - 1, -1, -1):
        for taps, (_, instructions) in _SIZES.items():
            if place + taps // 2 <= places:
                other = cost[:, place + taps // 2] + instructions
                better = fits[taps][:, place] & (other < cost[:, place])
                cost[better, place], best[better, place] = other[better], taps
    found: list[list[int]] = []
    for choice in best.tolist():
        sizes, place = [], 0
        while place < places:
            sizes.append(choice[place])
            place += choice[place] // 2
        found.append(sizes)
    return found


def pixel_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of weights (O, K), biases (O) and multipliers (O), as `pixel_pairs.hpp` describes it."""
    rows = _filled(weights)
    words = np.zeros((2, len(rows) * _OUTPUTS), np.int64)
    words[0, : len(weights)], words[1, : len(weights)] = bias, 2 * multipliers
    first, factors = words.reshape(2, -1, _OUTPUTS)
    parts = []
    for block, sizes in enumerate(group_sizes(rows)):
        parts.append(word_bytes(first[block] - _BASE * len(sizes)))
        begin = 0
        for at in range(0, len(sizes), _WORD_GROUPS):
            some = sizes[at : at + _WORD_GROUPS]
            bits = sum(_SIZES[taps][0] << (29 - 3 * i) for i, taps in enumerate(some))
            end = begin + sum(some)
            parts += [word_bytes(np.array([bits])), rows[block, :, begin:end].T.astype(np.int8).reshape(-1)]
            begin = end
        parts.append(word_bytes(factors[block]))
    return np.concatenate(parts)


def pixels(layer: Layer, selection: Selection, weights: np.ndarray, groups: int = 1) -> Selection:
    """`selection` with the stream of dense weights (O, ...) too, where the layer fits; the reason where it does not."""
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "two pixels a word"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows) or ("it has groups" if groups != 1 else "")
    if not problem and _reaches(_filled(rows), 2).max() > _LIMIT:
        problem = "two weights of -128 may leave 16 bits"
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(PIXELS), problem=problem))
    factors = np.broadcast_to(rescale.multipliers, len(rows))
    stream = pixel_stream(rows, signed_bias(layer, rows), factors)
    return selection.with_stream(Stream(name, having(PIXELS), stream, facts={"Pixels": 1}))


def columns(
    layer: Layer, selection: Selection, weights: np.ndarray, stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int]
) -> Selection:
    """`selection` with the stream of depthwise weights (C, KH, KW) too, where the layer fits; the reason where it does not."""
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "channels along a line"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows)
    if not problem and layer.input_shape[1] != len(rows):
        problem = "a channel has several outputs"
    if not problem and (weights.shape[1:] != (3, 3) or tuple(dilation) != (1, 1) or stride[1] > 2 or max(pads) > 1):
        problem = "it is not 3 x 3 with a stride of 1 or 2 and padding of 1"
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(COLUMNS), problem=problem))
    stream = column_stream(rows, layer.values("bias").astype(np.int64), rescale.multipliers)
    return selection.with_stream(Stream(name, having(COLUMNS), stream, facts={"Columns": 1}))


def column_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes for depthwise weights (C, 9), as `column_depthwise.hpp` describes it: for each channel its bias, twice its multiplier,
    nine weights and three zeros."""
    words = np.stack([bias, 2 * np.broadcast_to(multipliers, len(weights))], axis=1)
    filled = np.zeros((len(weights), 12), np.int8)
    filled[:, :9] = weights
    return np.concatenate([word_bytes(words).reshape(len(weights), 8), filled], axis=1).reshape(-1)
