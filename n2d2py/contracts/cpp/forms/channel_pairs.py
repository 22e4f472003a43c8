"""The Winograd form of a convolution for Cortex-M4, M7 and M33: `kernels/n2d2/mcu/tile_convolution.hpp`.

Weights are transformed to 16 bits, 3.6 times as many bytes: it is for exports that trade flash for speed.
"""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.exact import round_up
from n2d2py.contracts.cpp.forms.contract import CoreForm, KernelFacts, form
from n2d2py.contracts.cpp.isa import CHANNEL_PAIRS
from n2d2py.contracts.cpp.packing import joined_bytes, zero_padded
from n2d2py.contracts.cpp.winograd import positions

_OUTPUTS, _CHANNELS = 4, 4
_MATRIX = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64)
"""Winograd's 2 G of tiles of two by two outputs."""
_FRAMES = 784
_ROWS = (1, 2, 0, 3)
"""The order of the rows of a column of positions."""
_SIGNS = np.array([1, 1, 1, -1])
"""Of rows, and of columns: the sums of the last ones are added."""


def tile_stream(weights: np.ndarray, bias: np.ndarray, words: np.ndarray) -> np.ndarray:
    """int8 bytes of the stream of weights (O, 3, 3, C), biases (O) and `words` (1 or 2, O), as `tile_convolution.hpp` describes it."""
    channels, blocks = weights.shape[-1], -(-len(weights) // _OUTPUTS)
    filled = zero_padded(weights.astype(np.int64), blocks * _OUTPUTS, 3, 3, channels)
    constants = zero_padded(np.vstack([bias, words]), 1 + len(words), blocks * _OUTPUTS)
    pairs_of_constants = constants[:2].T.reshape(blocks, -1)
    rest = constants[2:].reshape(-1, blocks, _OUTPUTS).transpose(1, 0, 2)
    signed = positions(filled, _MATRIX) * _SIGNS[:, None, None, None] * _SIGNS[:, None, None]
    ordered = signed[list(_ROWS)].transpose(1, 0, 2, 3)  # column, row, output, channel
    quads = ordered.reshape(16, blocks, _OUTPUTS, channels // _CHANNELS, _CHANNELS) & 0xFFFF
    pairs = np.stack([quads[..., 0] | quads[..., 2] << 16, quads[..., 1] | quads[..., 3] << 16], axis=-1)
    products = pairs.reshape(16, blocks, _OUTPUTS, channels // 2).transpose(1, 0, 3, 2)
    return joined_bytes(products.reshape(blocks, -1), pairs_of_constants, rest.reshape(blocks, -1))


def inexact(weights: np.ndarray, kind: NumType) -> str:
    """Reason against the form for weights (O, 3, 3, C) and stored inputs of any value, as a clause; "" where it is exact.

    Transformed inputs and weights are at most 4 * 255 and 9 * 128; all sums are modulo 2^32 but for those of the results, four
    times each.
    """
    rows, (least, most) = weights.reshape(len(weights), -1).astype(np.int64), (-128, 127) if kind.signed else (0, 255)
    high, low = np.maximum(rows * least, rows * most).sum(axis=1), np.minimum(rows * least, rows * most).sum(axis=1)
    return "" if 4 * max(int(high.max()), -int(low.min())) < 2**31 else "four times its sums may exceed 32 bits"


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
    """Tiles of two by two outputs, two channels at a time."""

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
        return tile_stream(facts.weights, facts.bias, facts.high_words)

    def stack(self, facts: KernelFacts) -> int:
        """As `tile_convolution.hpp`: transformed inputs of two tiles, a pixel of the padding, results, a line of inputs."""
        outputs, channels = facts.layer.output_shape[1], facts.layer.input_shape[1]
        wide = round_up(outputs, _OUTPUTS)
        return _FRAMES + 64 * channels + channels + wide * (8 if outputs % _OUTPUTS else 1) + facts.layer.copied_line_bytes
