"""Kernels that multiply groups of four inputs with 16 outputs at once: their weights lie in panels.

A layer that has them is exported with the orders of the portable kernel and of the panels. One of them is compiled
(`kernels/n2d2/isa.hpp`).
"""

from collections.abc import Callable

import numpy as np

from n2d2py.arithmetic import NumType, largest_place, round_up
from n2d2py.contracts.cpp.arrays import zero_padded
from n2d2py.contracts.cpp.code import Panels
from n2d2py.contracts.cpp.forms.contract import HALF, OUTPUTS, QUAD, KernelFacts, KernelForm, form, plain
from n2d2py.contracts.cpp.isa import CHANNELS, CONVOLUTION, DEPTHWISE, FLOATS, FULLY_CONNECTED
from n2d2py.contracts.cpp.layer import input_scratch, windows_scratch
from n2d2py.contracts.cpp.parts import PORTABLE, REAL_NATIVE, PanelOrder, chosen
from n2d2py.memory.scratch import ScratchNeed

# 8-bit products that kernels accumulate in 16 bits (`ByteTile` in `kernels/n2d2/x86`): exactness per layer.
PRODUCT_TIMES = (1.0, 0.77, 0.64)
"""Relative time of an 8-bit multiplication of the x86 kernels where sums of 0, 2 and 4 products fit 16 bits (docs/lab/speed_kernels.md)."""
LONG = 8
"""Run length from which a 16-bit accumulator is kept from word to word, and widened when they are added up."""
_RUNS = (256, 128, 96, 64, 48, 32, 24, 16, 12, LONG)
_FEW = 4
_LARGEST = 2**15 - 1
_SOME = 16


def _longest_run(weights: np.ndarray, most: int, runs: tuple[int, ...]) -> int:
    """Return the first of `runs` for which products of that many words of `weights` (rows, K) with inputs of 0 to `most` fit 16
    bits, or 0."""

    def fits(words: int) -> bool:
        # 8-bit weights seldom fit, which some rows show
        return all(most * int(largest_place(rows, words).max()) <= _LARGEST for rows in (weights[:_SOME], weights))

    return next((words for words in runs if fits(words)), 0)


def long_run(weights: np.ndarray, most: int) -> int:
    """Return the number of words whose products with inputs of 0 to `most` fit 16 bits in `weights` (rows, K): all of a row, or
    one of some numbers from LONG on; else 0."""
    every = -(-weights.shape[1] // 4)
    if every >= _FEW and not _longest_run(weights, most, (_FEW,)):
        return 0  # each of the runs holds whole runs of so many: seldom more than this is computed for 8-bit weights
    return _longest_run(weights, most, (every, *(words for words in _RUNS if words < every)))


def byte_sums(weights: np.ndarray, inputs: NumType, *, bounded: bool = False) -> int:
    """Return `long_run`, or 2, 1, or 0 if not even the products of one word fit.

    `weights` are integers (O, K) in the kernel's order. Inputs may be any byte; with `bounded`, any value of their type.
    """
    if inputs.is_float or inputs.bits != 8:
        return 0
    most = inputs.qmax + (128 if inputs.signed else 0) if bounded else 255  # kernels read inputs from 0 on
    long = long_run(weights, most) if weights.shape[1] > 8 else 0
    return long or _longest_run(weights, most, (2, 1))


def describe_sums(sums: int) -> str:
    """Return the clause for the report."""
    count = {1: "two", 2: "four"}.get(sums, str(2 * sums))
    return f"sums of {count} products fit 16 bits" if sums else "sums of two products may exceed 16 bits"


Need = Callable[[KernelFacts], "str | None"]


# Needs: the dot product instructions multiply bytes with bytes, or 16-bit integers with 16-bit integers, to 32-bit sums.
def _inputs_of(*bits: int) -> Need:
    wanted = " or ".join(map(str, bits))

    def need(f: KernelFacts) -> str | None:
        fits = f.input.bits in bits and not f.input.is_float
        return None if fits else f"its inputs are {f.input.name}; it takes integers of {wanted} bits"

    return need


def _weights_of(allowed: str, *types: str) -> Need:
    return lambda f: None if f.weight_type in types else f"its weights are {plain(f.weight_type)}; it takes {allowed}"


_BYTES_OR_WORDS = _inputs_of(8, 16)
_BYTE_WEIGHTS = _weights_of("int8", "std::int8_t")
_NARROW_WEIGHTS = _weights_of("int8 and int16", "std::int8_t", "std::int16_t")
_FLOATS = _weights_of("float", "float", HALF)


def _word_sums(f: KernelFacts) -> str | None:
    kind = f.layer.sum_type()
    return None if kind == "std::int32_t" else f"its sums are {plain(kind)}; it takes int32"


def _depth(f: KernelFacts) -> str | None:
    count = f.rows.shape[1]
    return None if count >= QUAD else f"an output has {count} inputs; it takes {QUAD} and more"


def _wide_groups(f: KernelFacts) -> str | None:
    wide = f.groups == 1 or f.outputs >= 8
    return None if wide else f"its groups have {f.outputs} outputs; it takes 8 and more"


def _whole_groups(f: KernelFacts) -> str | None:
    whole = f.groups == 1 or f.outputs % OUTPUTS == 0
    return None if whole else f"its groups have {f.outputs} outputs; it takes multiples of {OUTPUTS}"


def _no_multiplier(f: KernelFacts) -> str | None:
    return None if f.outputs == 1 else f"a channel has {f.outputs} outputs; it takes one"


class Needing(KernelForm[Panels]):
    """A form with a list of `needs`, in the order of the report."""

    needs: tuple[Need, ...]

    def fits(self, facts: KernelFacts) -> str | None:
        return next((reason for need in self.needs if (reason := need(facts))), None)

    def isa(self, facts: KernelFacts) -> str:
        return REAL_NATIVE if self.real else super().isa(facts)


class Matrix(Needing):
    """Panels of integers for a dense layer."""

    name = "panels of 16 outputs"

    def pack(self, facts: KernelFacts) -> Panels:
        each = facts.each
        rows = facts.rows.astype(np.int8 if facts.weight_type == "std::int8_t" else np.int16)
        layout = PanelOrder(len(rows), rows.shape[1], facts.outputs, each)
        enumerators, note = {}, ""
        if each == QUAD:
            sums = byte_sums(facts.rows, facts.input, bounded=facts.layer.computed)
            enumerators, note = {"ByteSums": sums}, f"; {describe_sums(sums)}"
        if facts.storage is not None:
            note += f"; weights of {facts.storage.bits} bits, unpacked before they are multiplied"
        panels = packed_matrix(rows, facts.outputs, each)
        return Panels(panels, moved_bias(facts), None, signed_bias(facts), layout, enumerators, note)


@form
class ConvolutionPanels(Matrix):
    """Panels of a convolution."""

    which, kernels, tiled = CONVOLUTION, ("convolution",), True
    needs = (_BYTES_OR_WORDS, _NARROW_WEIGHTS, _word_sums, _wide_groups, _depth)

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        return windows_scratch(facts.layer, (facts.weights.shape[1], facts.weights.shape[2]), facts.groups)


@form
class FullyConnectedPanels(Matrix):
    """Panels of a fully connected layer."""

    which, kernels = FULLY_CONNECTED, ("fullyConnected",)
    needs = (_BYTES_OR_WORDS, _NARROW_WEIGHTS, _word_sums, _depth)

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        return input_scratch(facts.layer)


class FloatPanels(Needing):
    """Panels of real numbers for a dense layer."""

    name, which, real = "panels of 16 outputs in floating point", FLOATS, True

    def pack(self, facts: KernelFacts) -> Panels:
        bias = zero_padded(facts.bias.astype(np.float32), round_up(len(facts.bias), OUTPUTS))
        layout = PanelOrder(len(facts.rows), facts.rows.shape[1], len(facts.rows), 1, filled=True)
        return Panels(packed_floats(facts.rows), bias, layout=layout)


@form
class FloatConvolutionPanels(FloatPanels):
    """Panels of a convolution in floating point."""

    kernels, needs, tiled = ("convolution",), (_FLOATS, _whole_groups), True
    scratch = ConvolutionPanels.scratch


@form
class FloatFullyConnectedPanels(FloatPanels):
    """Panels of a fully connected layer in floating point."""

    kernels, needs = ("fullyConnected",), (_FLOATS,)
    scratch = FullyConnectedPanels.scratch


class Depthwise(Needing):
    """A form of depthwise layers."""

    kernels = ("depthwise",)


@form
class LinesByFour(Depthwise):
    """Products of four lines of bytes at once."""

    name, which = "lines by four", DEPTHWISE
    needs = (_inputs_of(8), _BYTE_WEIGHTS, _word_sums, _no_multiplier)

    def cost(self, facts: KernelFacts) -> float:
        return 0.5  # four products an instruction; vectors of channels: two

    def pack(self, facts: KernelFacts) -> Panels:
        order, signed = depthwise_order(len(facts.weights)), signed_bias(facts)
        moved = moved_bias(facts)[order]
        return Panels(packed_depthwise(facts.weights), moved, order, None if signed is None else signed[order])


@form
class Channels(Depthwise):
    """Vectors of channels, 16-bit products; portable C++ where others bind a kernel of bytes only."""

    name, which = "vectors of channels", CHANNELS
    needs = (_BYTES_OR_WORDS, _NARROW_WEIGHTS, _word_sums, _no_multiplier)

    def isa(self, facts: KernelFacts) -> str:
        return chosen(self.sets, PORTABLE)

    def pack(self, facts: KernelFacts) -> Panels:
        order, packed = channel_order(len(facts.weights)), packed_channels(facts.weights)
        if facts.weight_type == "std::int8_t":
            packed = packed.astype("<i2").view(np.int8)
        moved = moved_bias(facts) if facts.input.bits == 16 else facts.bias
        return Panels(packed, moved[order], order)


@form
class FloatChannels(Depthwise):
    """Vectors of channels of real numbers, in the order of the portable kernel, (KH, KW, C)."""

    name, which, real = "vectors of channels in floating point", FLOATS, True
    needs = (_FLOATS, _no_multiplier)

    def pack(self, facts: KernelFacts) -> Panels:
        return Panels(facts.weights.transpose(1, 2, 0).reshape(-1), facts.bias)


def moved_bias(facts: KernelFacts) -> np.ndarray:
    """Return the bias for signed bytes stored + 128 and for unsigned 16-bit inputs stored - 32768."""
    shift = {(8, True): 128, (16, False): -32768}.get((facts.input.bits, facts.input.signed), 0)
    return _wrapped(facts.bias - shift * facts.rows.sum(axis=1, dtype=np.int64))


def signed_bias(facts: KernelFacts) -> np.ndarray | None:
    """Return the bias for bytes that are multiplied as signed ones, modulo 2^32; None for 16-bit products."""
    return _wrapped(facts.signed_bias) if facts.each == QUAD else None


def _wrapped(values: np.ndarray) -> np.ndarray:
    return (values & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def packed_matrix(weights: np.ndarray, outputs: int, each: int = QUAD) -> np.ndarray:
    """Pack (groups * outputs, K) into panels of 16 outputs of a group: [ceil(K / each)][outputs of the panel][each], flat.

    K is filled up with zeros; the last panel of a group has only the outputs that are left.
    """
    rows, inputs = weights.shape
    padded = zero_padded(weights, rows, round_up(inputs, each))
    panels = []
    for group in range(0, rows, outputs):
        for first in range(group, group + outputs, OUTPUTS):
            panel = padded[first : min(first + OUTPUTS, group + outputs)]
            panels.append(panel.reshape(len(panel), -1, each).transpose(1, 0, 2).reshape(-1))
    return np.concatenate(panels)


def packed_floats(weights: np.ndarray) -> np.ndarray:
    """Pack (outputs, K) float32 into panels of 16 outputs: [K][16], flat; missing outputs are zeros."""
    padded = zero_padded(weights.astype(np.float32), round_up(len(weights), OUTPUTS), weights.shape[1])
    return np.ascontiguousarray(padded.reshape(-1, OUTPUTS, weights.shape[1]).transpose(0, 2, 1)).reshape(-1)


def depthwise_order(channels: int) -> np.ndarray:
    """Position -> channel: each 64 channels as the unpack instructions leave them, the others in order.

    Register j of four holds, in its 128-bit part l, the channels 16 l + 4 j to 16 l + 4 j + 3.
    """
    order = np.arange(channels)
    whole = channels // 64 * 64
    order[:whole] = order[:whole].reshape(-1, 4, 4, 4).transpose(0, 2, 1, 3).reshape(-1)
    return order


def packed_depthwise(weights: np.ndarray) -> np.ndarray:
    """(C, KH, KW) -> per 16 positions of `depthwise_order`: [ceil(KH / 4)][KW][channels of the panel][4 lines], flat.

    Lines beyond KH are zeros; the last panel has only the channels that are left.
    """
    channels, lines, columns = weights.shape
    ordered = weights[depthwise_order(channels)].astype(np.int8)
    padded = zero_padded(ordered, channels, round_up(lines, QUAD), columns)
    quads = padded.reshape(channels, -1, QUAD, columns).transpose(1, 3, 0, 2)
    return np.concatenate([quads[:, :, first : first + OUTPUTS].reshape(-1) for first in range(0, channels, OUTPUTS)])


def channel_order(channels: int) -> np.ndarray:
    """Position -> channel, for each block of 32 of them (8 or 16 where there are no more): the first four of each eight, then the others."""
    size, numbers = _channel_block(channels), np.arange(channels)
    second = numbers % 8 // 4
    return numbers[np.lexsort((numbers, second, numbers // size))]


def _channel_block(channels: int) -> int:
    return next((size for size in (8, 16) if channels <= size), 32)


def packed_channels(weights: np.ndarray) -> np.ndarray:
    """(C, KH, KW) -> for each block of `channel_order`: [pair of taps][first fours, second fours][half of the block][2], int16, flat.

    A pair of taps is two lines of a column; of an odd number of lines the last one's are two columns. What is missing is zero.
    """
    channels, lines, columns = weights.shape
    size, even = _channel_block(channels), lines // 2 * 2
    down = weights[:, :even].reshape(channels, -1, 2, columns).transpose(0, 1, 3, 2).reshape(channels, -1, 2)
    last = weights[:, even:]
    last = np.pad(last, ((0, 0), (0, 0), (0, columns % 2))).reshape(channels, -1, 2)
    pairs = np.concatenate([down, last], axis=1)
    pairs = np.pad(pairs, ((0, -channels % size), (0, 0), (0, 0))).astype(np.int16)
    blocks = pairs.reshape(-1, size // 8, 2, 4, *pairs.shape[1:])  # (block, eight, which four, channel, pair, 2)
    return np.ascontiguousarray(blocks.transpose(0, 4, 2, 1, 3, 5)).reshape(-1)
