"""Constants of the kernels of microcontrollers with vectors, which the headers of `kernels/n2d2/mcu` describe.

Both operands of a product are signed bytes. Unsigned inputs are taken 128 lower, which the bias corrects.
"""

import numpy as np

from n2d2py.arithmetic import DoublingRescale, round_up
from n2d2py.contracts.cpp.arrays import joined_bytes, word_bytes, zero_padded
from n2d2py.contracts.cpp.forms.contract import CoreForm, KernelFacts, form
from n2d2py.contracts.cpp.isa import DOTS, OUTPUTS, TAPS

_BYTES = 16
"""Of a vector."""
_KEPT_LINES = 1536
"""Bytes of all channels of three lines, which a depthwise layer keeps for the next lines."""
_TAPS = (2, 1, 0, 5, 4, 3, 8, 7, 6)
"""The order of the taps of 3 x 3: each line from the right, so that the last load of a line moves its pointer."""


def _constants(facts: KernelFacts) -> np.ndarray:
    """Return the biases, multipliers and shifts to the left, (2 or 3, O)."""
    return np.vstack([facts.signed_bias, facts.multipliers * np.array([[1], [-1]])[: len(facts.multipliers)]])


@form
class DotProducts(CoreForm):
    """Products that are added across vectors, for four pixels; for one in a fully connected layer, whose outputs may have 16 bits."""

    name, which, kernels = "dot products of vectors", DOTS, ("convolution", "fullyConnected")
    time, facts = 2.0, {"Vectors": 1}

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """For every two outputs A and B: 16 weights of A, 16 of B, and so on; biases A, B, A, B; words in the same way. For one
        pixel: for every four outputs their biases, then 16 weights of each in turn, words."""
        count, constants = 4 if facts.kernel == "fullyConnected" else 2, _constants(facts)
        outputs, inputs = (round_up(size, unit) for size, unit in zip(facts.rows.shape, (count, _BYTES), strict=True))
        filled = zero_padded(facts.rows.astype(np.int8), outputs, inputs).reshape(-1, count, inputs // _BYTES, _BYTES)
        vectors = filled.transpose(0, 2, 1, 3)
        first, *words = zero_padded(constants, len(constants), outputs).reshape(len(constants), -1, count)
        if count == 4:
            return joined_bytes(first, vectors, *words)
        return joined_bytes(vectors, *(np.tile(one, 2) for one in (first, *words)))

    def stack(self, facts: KernelFacts) -> int:
        """As the headers of `kernels/n2d2/mcu`: windows of four pixels, the bytes of one, a line of the padding, results, pointers to lines
        and taps; for a fully connected layer the input."""
        outputs, inputs = facts.rows.shape
        depth = round_up(inputs, _BYTES)
        if facts.kernel == "fullyConnected":
            return 96 + depth
        _, lines, columns, channels = facts.weights.shape
        is_split = outputs % 2 or facts.layer.place.bytes > 65535 - outputs
        bytes_of_one = max(depth, 34) if channels % _BYTES else 0
        results = 4 * (outputs + outputs % 2) if is_split else 0
        return 544 + 4 * depth + bytes_of_one + columns * channels + results + 8 * lines * (1 + columns)


@form
class VectorsOfChannels(CoreForm):
    """Depthwise layers whose vectors hold channels."""

    name, which, kernels = "vectors of channels", TAPS, ("depthwise",)
    time, facts = 2.0, {"Vectors": 1}

    def problem(self, facts: KernelFacts) -> str | None:
        if facts.one_multiplier:
            return facts.one_multiplier
        if not facts.has_nine_taps or max(facts.layer.op.pads[:2]) > 2:
            return "it is not 3 x 3 with a stride of 1 or 2"
        wide = np.any(np.all(facts.rows[:, list(_TAPS[:8])].reshape(-1, 4, 2) == -128, axis=2))
        return "two weights of -128 may leave 16 bits" if wide else None

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """For every 16 channels: biases of channels 0, 4, 8, 12; 2, 6, ...; 1, 5, ...; 3, 7, ...; the nine taps in the order of
        `_TAPS`; words as the biases. Eight channels stand twice, for two pixels."""
        weights, constants = facts.rows[:, list(_TAPS)].astype(np.int8), _constants(facts)
        if len(weights) == _BYTES // 2:
            weights, constants = np.tile(weights, (2, 1)), np.tile(constants, 2)
        channels = round_up(len(weights), _BYTES)
        filled = zero_padded(weights, channels, len(_TAPS)).reshape(-1, _BYTES, len(_TAPS)).transpose(0, 2, 1)
        constants = zero_padded(constants, len(constants), channels).reshape(len(constants), -1, 4, 4)
        first, *words = constants[..., [0, 2, 1, 3]].transpose(0, 1, 3, 2)
        return joined_bytes(first, filled, *words)

    def stack(self, facts: KernelFacts) -> int:
        """As the header of `kernels/n2d2/mcu`: three lines of 16 channels, or of all where these are little."""
        pixels, step, channels = facts.layer.output_shape[3], facts.layer.op.stride[1], len(facts.weights)
        plane = facts.layer.place
        two = channels == _BYTES // 2 and step == 1 and pixels % 2 == 0 and plane.stride == plane.size
        line = ((pixels - 1) * step + 3) * (_BYTES // 2 if two else _BYTES)
        whole = 3 * line * -(-channels // _BYTES)
        return 400 + (whole if whole <= _KEPT_LINES else 3 * line)


@form
class VectorsOfOutputs(CoreForm):
    """All outputs for one input after the other; a depthwise layer has one weight of each tap for a channel."""

    name, which, kernels = "vectors of outputs", OUTPUTS, ("convolution", "fullyConnected", "depthwise")
    time, facts = 5.0, {"Outputs": 1}

    def considered(self, facts: KernelFacts) -> bool:
        return facts.dense or not facts.one_multiplier

    def pack(self, facts: KernelFacts) -> np.ndarray:
        """Return biases, words, then the weights of all outputs for each tap."""
        multipliers, *shifts = facts.multipliers
        rescale = facts.layer.node.rescale
        rounded = isinstance(rescale, DoublingRescale) and rescale.twice  # by an instruction that doubles
        constants = np.concatenate([facts.bias, multipliers * (2 - rounded), *shifts])
        return np.concatenate([word_bytes(constants), facts.rows.T.astype(np.int8).reshape(-1)])

    def stack(self, facts: KernelFacts) -> int:
        """As `output_convolution.hpp`, `output_depthwise.hpp` and `output_fullyconnected.hpp`: windows of four pixels, a line of the padding,
        pointers to lines; pointers to lines and taps, a pixel of the padding; the input where its lines lie apart."""
        if facts.kernel == "fullyConnected":
            return 152 + facts.gathered_bytes
        lines, columns = facts.weights.shape[1:3]
        if not facts.dense:
            return 240 + 4 * lines * (1 + columns) + len(facts.weights)
        inputs = facts.rows.shape[1]
        return 320 + 4 * inputs + inputs // lines + 16 * lines
