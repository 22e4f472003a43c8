"""Constants of the kernels that multiply two outputs at once: `kernels/n2d2/mcu/lanes.hpp`.

Two weights share a 16-bit lane, 256 * wB + wA, and a word holds the lanes of two inputs. The sums of both outputs come from two
products, exact while the sum of B is below 2^23.
"""

from collections.abc import Mapping
from enum import IntEnum
from math import gcd

import numpy as np

from n2d2py.arithmetic import DoublingRescale, NumType, round_up
from n2d2py.contracts.cpp.arrays import joined_bytes, zero_padded
from n2d2py.contracts.cpp.forms.contract import SHIFT, CoreForm, KernelFacts, form
from n2d2py.contracts.cpp.isa import CHANNEL_PAIRS, LANES, PAIRS, ROW_PAIRS
from n2d2py.contracts.cpp.layer import Layer
from n2d2py.contracts.cpp.winograd import positions

_OUTPUTS = 4
_LIMIT = 2**23
_INPUTS = 8
"""Of a step of the kernel of fully connected layers."""
_CHUNK, _NEXT_PAIRS, _FEWEST_PIXELS = 24, 128, 4
"""Columns of a chunk of `row_pair_depthwise.hpp`; bytes for further pairs of rows; outputs of a line from which on it is faster than by pairs
of taps."""


class CoreRounding(IntEnum):
    """The rescale of accumulators by kernels of microcontrollers: `lanes::Rounding` of `kernels/n2d2/mcu/lane_shape.hpp`."""

    HIGH_WORD = 0
    TWICE = 1
    TWICE_SIGNED = 2
    ONCE = 3


def stored_limits(layer: Layer) -> tuple[int, int, int]:
    """Return the zero point, the least and the largest stored result of a layer."""
    least, most = map(int, layer.node.clamp or (layer.output.qmin, layer.output.qmax))
    return 0 if layer.node.zero_in_bias else layer.output.zero_point, least, most


def lane_offset(layer: Layer) -> int:
    """Return how much higher kernels of Armv7E-M compute the results of a layer: 128 for signed bytes."""
    return 128 if layer.output.signed and layer.output.bits == 8 else 0


def rounding(layer: Layer) -> CoreRounding:
    """Return the rescale of a layer; ties below 0 count where not all results below the zero point are clamped."""
    rescale, (zero, least, _) = layer.node.rescale, stored_limits(layer)
    if not isinstance(rescale, DoublingRescale):
        return CoreRounding.HIGH_WORD
    if not rescale.twice:
        return CoreRounding.ONCE
    return CoreRounding.TWICE_SIGNED if least < zero else CoreRounding.TWICE


def stored_facts(layer: Layer) -> dict[str, int]:
    """Return rounding and storing of results by kernels of microcontrollers: by lanes, signed bytes 128 higher; by vectors."""
    (zero, least, most), high = stored_limits(layer), lane_offset(layer)
    signed = int(layer.output.signed)
    lanes = {"LaneZero": zero + high, "LaneSigned": signed, "LaneLow": least + high, "LaneHigh": most + high}
    vectors = {"VectorZero": zero, "VectorLow": least, "VectorHigh": most}
    words = dict(zip(("WordInput", "WordOutput"), map(int, layer.word_pixels), strict=True))
    return {**lanes, **vectors, **words, "Rounding": int(rounding(layer))}


def _sums(weights: np.ndarray, bias: np.ndarray, kind: NumType) -> np.ndarray:
    """Return the largest magnitude of bias + sum of w x, per output, for stored inputs of any value."""
    w, (least, most) = weights.astype(np.int64), (-128, 127) if kind.signed else (0, 255)
    low = np.minimum(w * least, w * most).sum(axis=1) + bias
    high = np.maximum(w * least, w * most).sum(axis=1) + bias
    return np.maximum(np.abs(low), np.abs(high))


def _blocks(values: np.ndarray) -> np.ndarray:
    """Return values of outputs (O, ...) as (blocks, 4, ...), filled up with zeros."""
    size = round_up(len(values), _OUTPUTS)
    return zero_padded(values.astype(np.int64), size, *values.shape[1:]).reshape(-1, _OUTPUTS, *values.shape[1:])


def _lanes(rows: np.ndarray) -> np.ndarray:
    """Return the lanes (blocks, AB and CD, K) of weights (O, K)."""
    blocks = _blocks(rows)
    return 256 * blocks[:, 2:] + blocks[:, :2]


def lane_stream(rows: np.ndarray, bias: np.ndarray, words: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of weights (O, K), biases (O) and `words` (1 or 2, O), as `lanes.hpp` describes it; K is even."""
    lanes, first = _lanes(rows) & 0xFFFF, _blocks(bias)
    blocks = len(first)
    factors = zero_padded(words, len(words), blocks * _OUTPUTS).reshape(len(words), blocks, 2, 2).transpose(1, 2, 0, 3)
    products = (lanes[..., ::2] | lanes[..., 1::2] << 16).transpose(0, 2, 1).reshape(blocks, -1)
    begin = np.concatenate([first[:, :2], 256 * first[:, 2:] + first[:, :2]], axis=1)
    return joined_bytes(begin, products, factors.reshape(blocks, -1))


def _even_bytes_first(rows: np.ndarray) -> np.ndarray:
    """Return weights (..., K) in the order of words that UXTB16 gives: inputs 0, 2, 1, 3 of every four."""
    return rows.reshape(*rows.shape[:-1], -1, 4)[..., [0, 2, 1, 3]].reshape(rows.shape)


def _columns(facts: KernelFacts) -> np.ndarray:
    """Return the weights of a convolution (O, K) in the order of `lane_convolution.hpp`: columns of all lines, of an even number of inputs."""
    outputs, lines, width, channels = facts.weights.shape
    columns = facts.weights.transpose(0, 2, 1, 3).reshape(outputs, width, lines * channels)
    if channels % 4 == 0 and facts.layer.word_pixels[0]:
        return _even_bytes_first(columns).reshape(outputs, -1)
    return zero_padded(columns, outputs, width, round_up(lines * channels, 2)).reshape(outputs, -1)


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


def _lane_words(facts: KernelFacts) -> np.ndarray:
    """Return `high_words` as `lanes.hpp` has them: B and D of every four outputs have accumulators that are 256 times as large."""
    words = facts.high_words
    if rounding(facts.layer) not in (CoreRounding.TWICE, CoreRounding.ONCE):
        return words
    multipliers, shifts = facts.multipliers
    upper = np.stack([multipliers, -(np.int64(1) << np.maximum(25 - shifts, 0)) * (shifts <= 25)])
    return np.where(np.arange(words.shape[1]) % _OUTPUTS < _OUTPUTS // 2, words, upper)


def _has_half_results(facts: KernelFacts, bias: np.ndarray, words: np.ndarray) -> bool:
    """True if results fit 16 bits before they are clamped, for stored inputs of any value and zero points of bytes."""
    factors, shift = (words[0], SHIFT) if len(words) == 1 else (facts.multipliers[0], SHIFT - 1 + facts.multipliers[1])
    return bool(((_sums(facts.rows, bias, facts.input) * factors >> shift) + 512).max(initial=0) < 2**15)


def _chunk_bytes(facts: KernelFacts, inputs: int) -> int:
    """Return the bytes of the columns of a chunk, of `inputs` each, as ColumnsOf of `lane_convolution.hpp`."""
    width, op = facts.weights.shape[2], facts.layer.op
    pixel = 1 if width == 1 else op.stride[1] // gcd(op.stride[1], op.dilation[1])
    room = (1024 if width == 1 else 2560) // (4 * inputs)
    outputs = min(8, max(0, room - width) // pixel + 1, facts.layer.output_shape[3])
    return 4 * inputs * ((outputs - 1) * pixel + width)


@form
class Lanes(CoreForm):
    """Dense layers, two weights in a 16-bit lane."""

    name, which, kernels = "two weights a lane", LANES, ("convolution", "fullyConnected")
    time, facts = 3.0, {"Lanes": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        if problem := super().problem(facts):
            return problem
        if _lanes(facts.rows).min() < -32768:
            return "a weight of -128 shares its lane with a negative one"
        bias, _ = without_dead(facts.rows, facts.bias, facts.high_words)
        upper = _blocks(_sums(facts.rows, bias, facts.input))[:, 2:]
        return "a sum may reach 2^23" if upper.max(initial=0) >= _LIMIT else None

    def enumerators(self, facts: KernelFacts) -> Mapping[str, int]:
        """LaneHalves: whether results have 16 bits before they are clamped."""
        bias, words = without_dead(facts.rows, facts.bias, facts.high_words)
        return {**self.facts, "LaneHalves": int(facts.dense and _has_half_results(facts, bias, words))}

    def pack(self, facts: KernelFacts) -> np.ndarray:
        constants = without_dead(facts.rows, facts.bias, _lane_words(facts))
        if facts.kernel == "convolution":
            return lane_stream(_columns(facts), *constants)
        depth = round_up(facts.rows.shape[1], _INPUTS)
        return lane_stream(_even_bytes_first(zero_padded(facts.rows, len(facts.rows), depth)), *constants)

    def stack(self, facts: KernelFacts) -> int:
        """As `lane_convolution.hpp`: columns in 16 bits, results; `lane_fullyconnected.hpp`: one pixel, its bytes."""
        outputs, inputs = facts.rows.shape
        quads, (input_aligned, output_aligned) = -(-outputs // _OUTPUTS), facts.layer.word_pixels
        direct = output_aligned and outputs % _OUTPUTS == 0
        if facts.kernel == "fullyConnected":
            results = 256 if facts.layer.output.bytes > 1 else 4 if direct else 4 * quads
            return 176 + 2 * round_up(inputs, _INPUTS) + results + (facts.gathered_bytes if input_aligned else inputs)
        _, lines, _, channels = facts.weights.shape
        columns = _chunk_bytes(facts, round_up(lines * channels, 2))
        pointers = 16 if input_aligned and channels % 4 == 0 else 20  # of a line
        return 464 + pointers * lines + columns + channels + (0 if direct else 8 * quads)


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
        """As `pair_depthwise.hpp` describes it."""
        channels, taps = facts.rows.shape
        rows = zero_padded(facts.rows.astype(np.int64), channels, round_up(taps, 2)).reshape(channels // 4, 4, -1, 2)
        words = (rows[..., 0] & 0xFFFF | rows[..., 1] << 16).transpose(0, 2, 1)
        factors = facts.high_words.reshape(-1, channels // 4, 4).transpose(1, 0, 2)
        return joined_bytes(facts.bias.reshape(-1, 4), words, factors)

    def stack(self, facts: KernelFacts) -> int:
        """As `pair_depthwise.hpp`: pointers to lines and taps, a pixel of the padding."""
        channels, lines, columns = facts.weights.shape
        return 240 + 4 * lines + 4 * (lines * columns + 2) + channels


def _negated(facts: KernelFacts) -> np.ndarray:
    """True for channels whose second factor, 2^(32 - shift), is -2^31 as a signed word: their accumulators are negative too."""
    return facts.multipliers[1] == 1


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

    @staticmethod
    def _rounding(facts: KernelFacts) -> CoreRounding:
        """Return the rescale of its kernel: that for ties upwards has no zero point, and products of negated channels are never ties."""
        zero, known = stored_limits(facts.layer)[0] + lane_offset(facts.layer), rounding(facts.layer)
        if known is not CoreRounding.TWICE:
            return known
        ties = facts.layer.node.bound >= 2**20 or not (facts.multipliers[0][_negated(facts)] % 2**10).all()
        return CoreRounding.TWICE_SIGNED if zero or ties else known

    def enumerators(self, facts: KernelFacts) -> Mapping[str, int]:
        return {**self.facts, "RowRounding": int(self._rounding(facts))}

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """As `row_pair_depthwise.hpp` describes it."""
        weights, bias, words = facts.weights.astype(np.int64), facts.bias, facts.high_words
        if self._rounding(facts) is CoreRounding.TWICE:
            sign = 1 - 2 * _negated(facts)
            weights, bias, words = weights * sign[:, None, None], bias * sign, words * [[1], [-1]]
        lanes = weights & 0xFFFF
        pairs = lanes[:, :2] | lanes[:, 1:] << 16  # (C, U and V, column)
        return joined_bytes(words[:1].T, pairs, bias[:, None], words[1:].T)

    def stack(self, facts: KernelFacts) -> int:
        """As `row_pair_depthwise.hpp`: the columns of a chunk, further pairs of rows or a line of inputs."""
        pixels, op = facts.layer.output_shape[3], facts.layer.op
        outputs = min(pixels, _CHUNK // op.stride[1])
        columns = round_up(outputs, 3) + 2 if op.stride[1] == 1 else -(-outputs // 2) * 4 + 1
        line = facts.layer.copied_line_bytes if op.stride[0] == 1 else 0
        ordered = facts.layer.serial or facts.layer.streamed or facts.layer.backwards or op.stride[0] > 2
        return 608 + 32 * columns + line + (0 if ordered else _NEXT_PAIRS)


_CHANNELS = 4
_MATRIX = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
"""Winograd's 2 G of tiles of two by two outputs."""
_FRAMES = 784
_ROWS = (1, 2, 0, 3)
"""The order of the rows of a column of positions."""
_SIGNS = np.array([1, 1, 1, -1])
"""Of rows, and of columns: the sums of the last ones are added."""


def inexact(weights: np.ndarray, kind: NumType) -> str:
    """Reason against the form for weights (O, 3, 3, C) and stored inputs of any value, as a clause; "" where it is exact.

    Transformed inputs and weights are at most 4 * 255 and 9 * 128; all sums are modulo 2^32 but for those of the results, four
    times each.
    """
    sums = _sums(weights.reshape(len(weights), -1), np.zeros(len(weights), np.int64), kind)
    return "" if 4 * int(sums.max()) < 2**31 else "four times its sums may exceed 32 bits"


def faster(facts: KernelFacts) -> str:
    """Why the kernel by lanes is to be preferred, as a clause; "" where this form takes a tenth less instructions.

    Both were counted on a Cortex-M4: for each two pixels, and for each two tiles; for four outputs of these; for the channels.
    """
    weights, (lines, pixels) = facts.weights, facts.layer.output_shape[2:]
    channels, outputs = weights.shape[-1], -(-len(weights) // _OUTPUTS)
    inputs, more = round_up(9 * channels, 8), -(-channels // 16) - 1
    direct = -(-lines * pixels // 2) * (100 + 3 * inputs + outputs * (75 + 51 * inputs // 8))
    tiles = -(-lines // 2) * -(-pixels // 4) * (300 + 66 * channels + outputs * (480 + 88 * channels + 48 * more))
    return "" if 10 * tiles <= 9 * direct else f"it would take about {100 * tiles // direct} % of the instructions"


@form
class ChannelPairs(CoreForm):
    """The Winograd form of a convolution for Cortex-M4, M7 and M33, in tiles of two by two outputs, two channels at a time:
    `kernels/n2d2/mcu/tile_convolution.hpp`. Its 16-bit weights are 3.6 times as many bytes: for exports that trade flash for speed."""

    name, which, kernels = "Winograd by pairs of channels", CHANNEL_PAIRS, ("convolution",)
    time, facts = 1.0, {"Transformed": 1}

    def considered(self, facts: KernelFacts) -> bool:
        return facts.layer.choices.trades_flash

    def problem(self, facts: KernelFacts) -> str | None:
        op, weights = facts.layer.op, facts.weights
        if weights.shape[1:3] != (3, 3) or tuple(op.stride) != (1, 1) or tuple(op.dilation) != (1, 1) or facts.groups != 1:
            return "it takes windows of 3 x 3 that lie side by side, stride 1, of one group"
        if weights.shape[-1] % _CHANNELS:
            return f"it takes channels by four, not {weights.shape[-1]}"
        if facts.layer.streamed:
            return "it computes pairs of rows; the layer runs row by row"
        return facts.unaligned or inexact(weights, facts.input) or faster(facts) or None

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """As `tile_convolution.hpp` describes it."""
        outputs, channels = facts.weights.shape[0], facts.weights.shape[-1]
        blocks = -(-outputs // _OUTPUTS)
        filled = zero_padded(facts.weights.astype(np.int64), blocks * _OUTPUTS, 3, 3, channels)
        constants = np.pad(np.vstack([facts.bias, facts.high_words]), ((0, 0), (0, -outputs % _OUTPUTS)))
        rest = constants[2:].reshape(-1, blocks, _OUTPUTS).transpose(1, 0, 2)
        signed = positions(filled, _MATRIX) * _SIGNS[:, None, None, None] * _SIGNS[:, None, None]
        ordered = signed[list(_ROWS)].transpose(1, 0, 2, 3)  # column, row, output, channel
        quads = ordered.reshape(16, blocks, _OUTPUTS, channels // _CHANNELS, _CHANNELS) & 0xFFFF
        pairs = np.stack([quads[..., 0] | quads[..., 2] << 16, quads[..., 1] | quads[..., 3] << 16], axis=-1)
        products = pairs.reshape(16, blocks, _OUTPUTS, channels // 2).transpose(1, 0, 3, 2)
        return joined_bytes(products, constants[:2].T.reshape(blocks, -1), rest)

    def stack(self, facts: KernelFacts) -> int:
        """As `tile_convolution.hpp`: transformed inputs of two tiles, a pixel of the padding, results, a line of inputs."""
        outputs, channels = facts.layer.output_shape[1], facts.layer.input_shape[1]
        wide = round_up(outputs, _OUTPUTS)
        return _FRAMES + 64 * channels + channels + wide * (8 if outputs % _OUTPUTS else 1) + facts.layer.copied_line_bytes
