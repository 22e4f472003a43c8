"""Constants of the kernels of RV32: `pixel_pairs.hpp` and `column_depthwise.hpp` of `kernels/n2d2/mcu`.

In dense layers a word holds the inputs of two pixels, 16 bits each, and a product with a weight two products. Sums of a group
of taps fit 16 bits each, whatever the inputs: signed bytes, unsigned ones 128 lower.
"""

import numpy as np

from n2d2py.arithmetic import DoublingRescale, round_up
from n2d2py.contracts.cpp.arrays import joined_bytes, word_bytes, zero_padded
from n2d2py.contracts.cpp.forms.contract import CoreForm, KernelFacts, form
from n2d2py.contracts.cpp.isa import COLUMNS, PIXELS

_OUTPUTS = 2
_LIMIT = 255
"""The sum of the magnitudes of weights whose products with -128 to 127 stay within 16 bits."""
_MOST_SHIFT = 20
_WORD_GROUPS = 10
"""Groups whose sizes a word of the stream has, three bits each."""
_SIZES = {2: (1, 26), 4: (4, 22), 8: (2, 24)}
"""By the taps that a group may have, its bits and the instructions next to its products, for six pixels."""


def _filled(weights: np.ndarray) -> np.ndarray:
    """Return the weights (O, K) as (blocks, 2, K), zeros up to a multiple of two outputs and of two taps."""
    outputs, inputs = weights.shape
    filled = zero_padded(weights.astype(np.int64), round_up(outputs, _OUTPUTS), round_up(inputs, 2))
    return filled.reshape(-1, _OUTPUTS, filled.shape[1])


def _reaches(rows: np.ndarray, taps: int) -> np.ndarray:
    """Return the larger sum of magnitudes of two outputs for `taps` taps from each even one on, (blocks, places)."""
    sums = np.cumsum(np.abs(rows), axis=2)
    sums = np.concatenate([np.zeros_like(sums[:, :, :1]), sums], axis=2)
    return (sums[:, :, taps:] - sums[:, :, :-taps])[:, :, ::2].max(axis=1)


def group_sizes(rows: np.ndarray) -> list[list[int]]:
    """Return the taps of the groups of each block of (blocks, 2, K): as few instructions as possible, each within 16 bits."""
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
    groups: list[list[int]] = []
    for choice in best.tolist():
        sizes, place = [], 0
        while place < places:
            sizes.append(choice[place])
            place += choice[place] // 2
        groups.append(sizes)
    return groups


def scaling_words(facts: KernelFacts) -> np.ndarray:
    """(1 or 3, O) int64: multipliers, doubled; the addends and the shifts of a DoublingRescale."""
    rescale, node, output = facts.layer.node.rescale, facts.layer.node, facts.layer.output
    multipliers, *shifts = facts.multipliers
    if not isinstance(rescale, DoublingRescale):
        return 2 * multipliers[None]
    (shift,) = shifts
    by, zero = shift + rescale.twice, output.zero_point - int((node.clamp or (0, output.qmax))[1])
    return np.stack([2 * multipliers, (np.int64(1) << by - 1) + (zero << by) + rescale.twice, by])


def small_shifts(facts: KernelFacts) -> str | None:
    """Reason against a form whose addends have the zero point, shifted."""
    return "a shift is longer than 20 bits" if len(facts.multipliers) > 1 and facts.multipliers[1].max() > _MOST_SHIFT else None


@form
class PixelPairs(CoreForm):
    """The inputs of two pixels in a word."""

    name, which, kernels = "two pixels a word", PIXELS, ("convolution",)
    time, facts = 4.0, {"Pixels": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        wide = _reaches(_filled(facts.rows), 2).max() > _LIMIT
        return super().problem(facts) or small_shifts(facts) or ("two weights of -128 may leave 16 bits" if wide else None)

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """As `pixel_pairs.hpp` describes it."""
        rows, constants = _filled(facts.rows), np.vstack([facts.signed_bias, scaling_words(facts)])
        words = zero_padded(constants, len(constants), len(rows) * _OUTPUTS).reshape(len(constants), -1, _OUTPUTS)
        parts = []
        for block, sizes in enumerate(group_sizes(rows)):
            parts.append(word_bytes(words[0, block]))
            begin = 0
            for at in range(0, len(sizes), _WORD_GROUPS):
                some = sizes[at : at + _WORD_GROUPS]
                bits = sum(_SIZES[taps][0] << (29 - 3 * i) for i, taps in enumerate(some))
                end = begin + sum(some)
                parts += [word_bytes(np.array([bits])), rows[block, :, begin:end].T.astype(np.int8).reshape(-1)]
                begin = end
            parts.append(word_bytes(words[1:, block].reshape(-1)))
        return np.concatenate(parts)

    def stack(self, facts: KernelFacts) -> int:
        """As `pixel_convolution.hpp`: windows of six or four pixels, a line of the padding, results, pointers to lines."""
        outputs, lines, columns, channels = facts.weights.shape
        depth = round_up(lines * columns * channels, 2)
        pixels = 6 if depth <= 256 else 4
        results = pixels * (outputs + 1) if outputs % _OUTPUTS else 0
        return 256 + 32 * pixels + 2 * pixels * depth + columns * channels + results + 4 * pixels * lines


@form
class ColumnsOfTaps(CoreForm):
    """Depthwise layers, a channel along a line."""

    name, which, kernels = "channels along a line", COLUMNS, ("depthwise",)
    time, facts = 4.0, {"Columns": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        fits = facts.has_nine_taps and max(facts.layer.op.pads) <= 1
        other = None if fits else "it is not 3 x 3 with a stride of 1 or 2 and padding of 1"
        return facts.one_multiplier or small_shifts(facts) or other

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """As `column_depthwise.hpp` describes it: for each channel its bias, `scaling_words`, nine weights and three zeros."""
        constants = np.stack([facts.bias, *scaling_words(facts)], axis=1)
        return joined_bytes(constants, zero_padded(facts.rows.astype(np.int8), len(facts.rows), 12))

    def stack(self, facts: KernelFacts) -> int:
        """Return 0: registers and pointers alone (`column_depthwise.hpp`)."""
        return 320
