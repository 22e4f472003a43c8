"""Constants of the kernels that multiply two outputs at once: `kernels/n2d2/mcu/lanes.hpp`.

Two weights share a 16-bit lane, 256 * wB + wA, and a word holds the lanes of two inputs. The sums of both outputs come from two
products, exact while the sum of B is below 2^23.
"""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.exact import round_up
from n2d2py.contracts.cpp.forms.contract import SHIFT, CoreForm, KernelFacts, form
from n2d2py.contracts.cpp.isa import LANES, PAIRS, ROW_PAIRS
from n2d2py.contracts.cpp.packing import joined_bytes, zero_padded

_OUTPUTS = 4
_INPUTS = {"convolution": 4, "fullyConnected": 8}
"""Of a step of the kernel."""
_LIMIT = 2**23
_CHUNK, _FEWEST_PIXELS = 24, 4
"""Columns of a chunk of `row_pair_depthwise.hpp`; outputs of a line from which on it is faster than by pairs of taps."""


def _sums(weights: np.ndarray, bias: np.ndarray, kind: NumType) -> np.ndarray:
    """Return the largest magnitude of bias + sum of w x, per output, for stored inputs of any value."""
    w, (least, most) = weights.astype(np.int64), (-128, 127) if kind.signed else (0, 255)
    low = np.minimum(w * least, w * most).sum(axis=1) + bias
    high = np.maximum(w * least, w * most).sum(axis=1) + bias
    return np.maximum(np.abs(low), np.abs(high))


def _packed(weights: np.ndarray, bias: np.ndarray, kernel: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights (blocks, 4, K) with K a multiple of the kernel's step, and bias (blocks, 4), filled up with zeros."""
    outputs, inputs = weights.shape
    blocks, depth = -(-outputs // _OUTPUTS), round_up(inputs, _INPUTS[kernel])
    padded, sums = zero_padded(weights.astype(np.int64), blocks * _OUTPUTS, depth), zero_padded(bias, blocks * _OUTPUTS)
    return padded.reshape(blocks, _OUTPUTS, depth), sums.reshape(blocks, _OUTPUTS)


def lane_stream(weights: np.ndarray, bias: np.ndarray, words: np.ndarray, kernel: str) -> np.ndarray:
    """int8 bytes of the stream of weights (O, K), biases (O) and `words` (1 or 2, O), as `lanes.hpp` describes it."""
    rows, first = _packed(weights, bias, kernel)
    factors = zero_padded(words, len(words), len(rows) * _OUTPUTS).reshape(len(words), len(rows), 2, 2).transpose(1, 2, 0, 3)
    lanes = 256 * rows[:, 1::2] + rows[:, ::2]  # (blocks, AB and CD, K)
    quads = lanes.reshape(len(rows), 2, -1, 4) & 0xFFFF
    pairs = np.stack([quads[..., 0] | quads[..., 2] << 16, quads[..., 1] | quads[..., 3] << 16], axis=-1)
    products = pairs.reshape(len(rows), 2, -1).transpose(0, 2, 1).reshape(len(rows), -1)
    begin = np.stack([first[:, 0], first[:, 0] + 256 * first[:, 1], first[:, 2], first[:, 2] + 256 * first[:, 3]], axis=1)
    return joined_bytes(begin, products, factors.reshape(len(rows), -1))


def without_dead(weights: np.ndarray, bias: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(bias, words) per output: those without weights get a small bias with the same result, where their scales are not those of a
    DoublingRescale, whose biases are small already.

    Scales of channels that training has switched off are tiny, so their biases are the largest numbers of a layer.
    """
    if len(words) > 1:
        return bias, words
    dead = ~weights.any(axis=1)
    multipliers = words[0].copy()
    result = (bias * multipliers + (1 << (SHIFT - 1))) >> SHIFT
    bias = np.where(dead, 4 * np.clip(result, -(1 << 17), 1 << 17), bias)  # beyond the 16-bit range it is clamped anyway
    multipliers[dead] = 1 << (SHIFT - 2)
    return bias, multipliers[None]


@form
class Lanes(CoreForm):
    """Dense layers, two weights in a 16-bit lane."""

    name, which, kernels = "two weights a lane", LANES, ("convolution", "fullyConnected")
    time, facts = 3.0, {"Lanes": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        if problem := super().problem(facts):
            return problem
        rows, _ = _packed(facts.rows, np.zeros(len(facts.rows), np.int64), facts.kernel)
        if (256 * rows[:, 1::2] + rows[:, ::2]).min() < -32768:
            return "a weight of -128 shares its lane with a negative one"
        bias, _ = without_dead(facts.rows, facts.bias, facts.high_words)
        return "a sum may reach 2^23" if _sums(facts.rows, bias, facts.input)[1::2].max(initial=0) >= _LIMIT else None

    def pack(self, facts: KernelFacts) -> np.ndarray:
        return lane_stream(facts.rows, *without_dead(facts.rows, facts.bias, facts.high_words), facts.kernel)

    def stack(self, facts: KernelFacts) -> int:
        """As `lane_convolution.hpp`: a window in 16 bits, its bytes, results; `lane_fullyconnected.hpp`: the same of one pixel."""
        outputs, inputs = facts.rows.shape
        depth, quads = round_up(inputs, _INPUTS[facts.kernel]), -(-outputs // _OUTPUTS)
        input_aligned, output_aligned = facts.layer.word_pixels
        direct = output_aligned and outputs % _OUTPUTS == 0
        if facts.kernel == "fullyConnected":
            results = 256 if facts.layer.output.bytes > 1 else 4 if direct else 4 * quads
            return 168 + 2 * depth + results + (facts.gathered_bytes if input_aligned else inputs)
        _, lines, width, channels = facts.weights.shape
        run = width * channels if input_aligned and channels % 4 == 0 else depth
        return 328 + 8 * lines + 4 * depth + run + (4 if direct else 8 * quads)


def pair_stream(weights: np.ndarray, bias: np.ndarray, multiplied: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of depthwise weights (C, taps), as `pairs.hpp` describes it; C is a multiple of 4."""
    blocks, taps = len(weights) // 4, weights.shape[1]
    rows = zero_padded(weights.astype(np.int64), len(weights), round_up(taps, 2)).reshape(len(weights), -1, 2)
    words = rows[..., 0] & 0xFFFF | rows[..., 1] << 16
    products = words.reshape(blocks, 4, -1).transpose(0, 2, 1).reshape(blocks, -1)
    factors = multiplied.reshape(len(multiplied), blocks, 4).transpose(1, 0, 2).reshape(blocks, -1)
    return joined_bytes(bias.reshape(blocks, 4), products, factors)


@form
class PairsOfTaps(CoreForm):
    """Depthwise layers, two taps in a word."""

    name, which, kernels = "two taps a word", PAIRS, ("depthwise",)
    time, facts = 3.0, {"Lanes": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        if len(facts.rows) % 4:
            return "the number of its channels is not a multiple of four"
        return facts.one_multiplier or facts.unaligned

    def pack(self, facts: KernelFacts) -> np.ndarray:
        return pair_stream(facts.rows, facts.bias, facts.high_words)

    def stack(self, facts: KernelFacts) -> int:
        """As `pair_depthwise.hpp`: pointers to lines and taps, a pixel of the padding."""
        channels, lines, columns = facts.weights.shape
        return 240 + 4 * lines + 4 * (lines * columns + 2) + channels


def row_pair_stream(weights: np.ndarray, bias: np.ndarray, multiplied: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of depthwise weights (C, 3, 3), as `row_pair_depthwise.hpp` describes it; C is a multiple of 4."""
    lanes = weights.astype(np.int64) & 0xFFFF
    pairs = lanes[:, :2] | lanes[:, 1:] << 16  # (C, U and V, column)
    return joined_bytes(multiplied[:1].T, pairs.reshape(len(weights), -1), bias[:, None], multiplied[1:].T)


@form
class PairsOfRows(CoreForm):
    """Depthwise 3x3 layers, a channel along two lines."""

    name, which, kernels = "two rows a word", ROW_PAIRS, ("depthwise",)
    time, facts = 2.0, {"RowPairs": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        if not facts.has_nine_taps or max(facts.layer.op.pads) > 2:
            return "it is not 3 x 3 with a stride of 1 or 2"
        if len(facts.rows) % 4:
            return "the number of its channels is not a multiple of four"
        if facts.layer.output_shape[3] < _FEWEST_PIXELS:
            return f"a line has less than {_FEWEST_PIXELS} pixels"
        return facts.one_multiplier or facts.unaligned

    def pack(self, facts: KernelFacts) -> np.ndarray:
        return row_pair_stream(facts.weights, facts.bias, facts.high_words)

    def stack(self, facts: KernelFacts) -> int:
        """As `row_pair_depthwise.hpp`: the columns of a chunk, a line of inputs."""
        pixels, op = facts.layer.output_shape[3], facts.layer.op
        outputs = min(pixels, _CHUNK // op.stride[1])
        columns = round_up(outputs, 3) + 2 if op.stride[1] == 1 else -(-outputs // 2) * 4 + 1
        line = facts.layer.copied_line_bytes if op.stride[0] == 1 else 0
        return 592 + 32 * columns + line
