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
_FLAGS_TAPS = 128
"""Taps of a word of flags: 1024 bytes of the window."""


def _filled(weights: np.ndarray, taps: int) -> np.ndarray:
    """Weights (O, K) as (blocks, 2, K), zeros up to a multiple of two outputs and of `taps`."""
    outputs, inputs = weights.shape
    filled = np.zeros((-(-outputs // _OUTPUTS) * _OUTPUTS, -(-inputs // taps) * taps), np.int64)
    filled[:outputs, :inputs] = weights
    return filled.reshape(-1, _OUTPUTS, filled.shape[1])


def _reaches(rows: np.ndarray, taps: int) -> np.ndarray:
    """The larger sum of magnitudes of two outputs for every `taps` taps, (blocks, K / taps)."""
    return np.abs(rows).reshape(len(rows), _OUTPUTS, -1, taps).sum(axis=3).max(axis=1)


def group_taps(weights: np.ndarray) -> int:
    """Taps of a group for weights (O, K): four or eight, whichever takes fewer instructions; 0 where two taps may already leave 16 bits."""
    if _reaches(_filled(weights, 2), 2).max() > _LIMIT:
        return 0
    rows = _filled(weights, 8)
    if _reaches(rows, 4).max() > _LIMIT:  # half a group of eight
        return 4
    return min((8, 4), key=lambda taps: _instructions(_filled(weights, taps), taps))


def _instructions(rows: np.ndarray, taps: int) -> int:
    """Those of six pixels in the assembly of `pixel_pairs.hpp`, without what all groupings have in common."""
    reaches = _reaches(rows, taps)
    return reaches.size * (17 * taps + 18 + 5) + int((reaches > _LIMIT).sum()) * (18 + 1)


def pixel_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray, taps: int) -> np.ndarray:
    """int8 bytes of the stream of weights (O, K), biases (O) and multipliers (O) in groups of `taps`, as `pixel_pairs.hpp` describes it."""
    rows = _filled(weights, taps)
    words = np.zeros((2, len(rows) * _OUTPUTS), np.int64)
    words[0, : len(weights)], words[1, : len(weights)] = bias, 2 * multipliers
    first, factors = words.reshape(2, -1, _OUTPUTS)
    divided = _reaches(rows, taps) > _LIMIT
    groups = divided.shape[1] + divided.sum(axis=1)
    begin = first - _BASE * groups[:, None]
    each = _FLAGS_TAPS // taps  # groups of a word of flags, its highest bit first
    parts = []
    for block, flags in enumerate(divided):
        parts.append(word_bytes(begin[block]))
        for at in range(0, len(flags), each):
            bits = sum(1 << (31 - i) for i, one in enumerate(flags[at : at + each]) if one)
            parts += [
                word_bytes(np.array([bits])),
                rows[block, :, at * taps : (at + each) * taps].T.astype(np.int8).reshape(-1),
            ]
        parts.append(word_bytes(factors[block]))
    return np.concatenate(parts)


def pixels(layer: Layer, selection: Selection, weights: np.ndarray, groups: int = 1) -> Selection:
    """`selection` with the stream of dense weights (O, ...) too, where the layer fits; the reason where it does not."""
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "two pixels a word"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows) or ("it has groups" if groups != 1 else "")
    taps = 0 if problem else group_taps(rows)
    if not problem and not taps:
        problem = "two weights of -128 may leave 16 bits"
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(PIXELS), problem=problem))
    factors = np.broadcast_to(rescale.multipliers, len(rows))
    stream = pixel_stream(rows, signed_bias(layer, rows), factors, taps)
    return selection.with_stream(Stream(name, having(PIXELS), stream, facts={"Pixels": taps}))


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
