"""Constants of the kernels of microcontrollers with vectors, which the headers of `kernels/n2d2/mcu` describe.

Both operands of a product are signed bytes. Unsigned inputs are taken 128 lower, which the bias makes up for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from n2d2py.arithmetic import FixedPointRescale
from n2d2py.exports.cpp.isa import DOTS, TAPS, having
from n2d2py.exports.cpp.lanes import unfit
from n2d2py.exports.cpp.layer import Layer
from n2d2py.exports.cpp.parts import Stream
from n2d2py.exports.cpp.variants import Selection

_BYTES = 16
"""Of a vector."""
_TAPS = (2, 1, 0, 5, 4, 3, 8, 7, 6)
"""The order of the taps of 3 x 3: each line from the right, so that the last load of a line moves its pointer."""


def word_bytes(words: np.ndarray) -> np.ndarray:
    """The bytes of words of 32 bits, int8, four along the last axis for each."""
    return np.ascontiguousarray(words & 0xFFFFFFFF).astype("<u4").view(np.int8)


def _words(*parts: np.ndarray) -> np.ndarray:
    """Parts with the same first axis, int8 or words of 32 bits, joined to bytes."""
    rows = [part if part.dtype == np.int8 else word_bytes(part) for part in parts]
    return np.concatenate([row.reshape(len(row), -1) for row in rows], axis=1).reshape(-1)


def _filled(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray, outputs: int) -> tuple[np.ndarray, ...]:
    """(weights, bias, multipliers) with zeros up to whole vectors of inputs and a multiple of `outputs`."""
    rows, inputs = weights.shape
    count = -(-rows // outputs) * outputs
    filled = np.zeros((count, -(-inputs // _BYTES) * _BYTES), np.int8)
    filled[:rows, :inputs] = weights
    words = np.zeros((2, count), np.int64)
    words[0, :rows], words[1, :rows] = bias, multipliers
    return filled, words[0], words[1]


def pair_of_outputs_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes for weights (O, K), biases (O) and multipliers (O): the kernel of four pixels.

    For every two outputs A and B: 16 weights of A, 16 of B, and so on; biases A, B, A, B; multipliers in the same way.
    """
    filled, first, factors = _filled(weights, bias, multipliers, 2)
    vectors = filled.reshape(len(filled) // 2, 2, -1, _BYTES).transpose(0, 2, 1, 3).reshape(len(filled) // 2, -1)
    return _words(vectors, np.tile(first.reshape(-1, 2), 2), np.tile(factors.reshape(-1, 2), 2))


def one_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """The same for the kernel of one pixel: for every four outputs their biases, 16 weights of each and so on, their multipliers."""
    filled, first, factors = _filled(weights, bias, multipliers, 4)
    vectors = filled.reshape(len(filled) // 4, 4, -1, _BYTES).transpose(0, 2, 1, 3).reshape(len(filled) // 4, -1)
    return _words(first.reshape(-1, 4), vectors, factors.reshape(-1, 4))


def channel_stream(weights: np.ndarray, bias: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """int8 bytes for depthwise weights (C, 9).

    For every 16 channels: biases of channels 0, 4, 8, 12; 2, 6, ...; 1, 5, ...; 3, 7, ...; the nine taps in the order of `_TAPS`;
    multipliers as the biases. Eight channels stand twice, for two pixels.
    """
    if len(weights) == _BYTES // 2:
        weights, bias, multipliers = np.tile(weights, (2, 1)), np.tile(bias, 2), np.tile(multipliers, 2)
    blocks = -(-len(weights) // _BYTES)
    filled = np.zeros((blocks * _BYTES, len(_TAPS)), np.int8)
    filled[: len(weights)] = weights[:, list(_TAPS)]
    words = np.zeros((2, blocks * _BYTES), np.int64)
    words[0, : len(bias)], words[1, : len(bias)] = bias, multipliers
    first, factors = words.reshape(2, blocks, 4, 4)[..., [0, 2, 1, 3]].transpose(0, 1, 3, 2)
    return _words(first, filled.reshape(blocks, _BYTES, -1).transpose(0, 2, 1), factors)


def vector_facts(layer: Layer) -> dict[str, int]:
    """Enumerators of a config that has such a stream: how results are rounded and stored."""
    output = layer.output
    least, most = layer.node.clamp or (output.qmin, output.qmax)
    return {"VectorZero": 0 if layer.node.zero_in_bias else output.zero_point, "VectorLow": int(least), "VectorHigh": int(most)}


def signed_bias(layer: Layer, rows: np.ndarray) -> np.ndarray:
    """The bias for inputs that are multiplied as signed bytes."""
    below = 0 if layer.inputs[0].signed else 128
    return layer.values("bias").astype(np.int64) + below * rows.astype(np.int64).sum(axis=1)


def dots(layer: Layer, selection: Selection, weights: np.ndarray, groups: int = 1, single: bool = False) -> Selection:
    """`selection` with the stream of dense weights (O, ...) too, where the layer fits; the reason where it does not.

    `single`: its input is one pixel; outputs may have 16 bits.
    """
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "dot products of vectors"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows, 16 if single else 8) or ("it has groups" if groups != 1 else "")
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(DOTS), problem=problem))
    pack = one_stream if single else pair_of_outputs_stream
    factors = np.broadcast_to(rescale.multipliers, len(rows))
    stream = pack(rows, signed_bias(layer, rows), factors)
    return selection.with_stream(Stream(name, having(DOTS), stream, facts={"Vectors": 1}))


def taps(
    layer: Layer, selection: Selection, weights: np.ndarray, stride: Sequence[int], dilation: Sequence[int], pads: Sequence[int]
) -> Selection:
    """`selection` with the stream of depthwise weights (C, KH, KW) too, where the layer fits; the reason where it does not."""
    rows, rescale, name = weights.reshape(len(weights), -1), layer.node.rescale, "vectors of channels"
    if not layer.integer:
        return selection
    problem = unfit(layer, rows)
    if not problem and layer.input_shape[1] != len(rows):
        problem = "a channel has several outputs"
    if not problem and (weights.shape[1:] != (3, 3) or tuple(dilation) != (1, 1) or stride[1] > 2 or max(pads[:2]) > 2):
        problem = "it is not 3 x 3 with a stride of 1 or 2"
    if not problem and np.any(np.all(rows[:, list(_TAPS[:8])].reshape(-1, 4, 2) == -128, axis=2)):
        problem = "two weights of -128 may leave 16 bits"
    if problem or not isinstance(rescale, FixedPointRescale):
        return selection.with_stream(Stream(name, having(TAPS), problem=problem))
    factors = np.broadcast_to(rescale.multipliers, len(rows))
    stream = channel_stream(rows, signed_bias(layer, rows), factors)
    return selection.with_stream(Stream(name, having(TAPS), stream, facts={"Vectors": 1}))
