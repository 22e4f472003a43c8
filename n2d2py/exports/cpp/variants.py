"""Implementations of a kernel beside the portable one: what each needs, and its order of the constants.

SIMD kernels multiply groups of four inputs with 16 outputs at once, so their weights lie in panels. A layer
that has them is exported with both orders, one of which is compiled (`kernels/n2d2/isa.hpp`); the C++
specialisations for an instruction set read the panels and take any layer that has them. Which sets have them: `isa.py`.

Adding one: its needs, a function that packs, and a line in `IMPLEMENTATIONS`. A need is a function of the facts that
returns what rules the layer out, as a clause for the report, or "" where it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.exports.cpp.isa import CHANNELS, CONVOLUTION, DEPTHWISE, FLOATS, FULLY_CONNECTED, having
from n2d2py.exports.cpp.packing import Storage
from n2d2py.exports.cpp.parts import NATIVE, PORTABLE, REAL_NATIVE, LayerForm, PanelOrder, Stream, chosen
from n2d2py.exports.cpp.winograd import Winograd

_FLOAT_PANELS = "panels of 16 outputs in floating point"
TABLE = "table in registers"
"""The kernel of functions of bytes, by name."""
VECTORS = "vectors of sums"
ROW_DOTS = "rows of weights"
"""Kernels of layers whose constants have one order in all instruction sets, by name."""

HALF = "n2d2::Half"
"""The type of weights that are stored in binary16."""
OUTPUTS = 16
"""Outputs of a panel: 32-bit sums of one 512-bit register."""
QUAD = 4
"""Products of bytes that one instruction adds to a sum; half as many of 16-bit integers."""


@dataclass(frozen=True)
class KernelFacts:
    """What a choice may depend on; `outputs` and `inputs` are those of one group, `taps` the kernel's positions."""

    kernel: str
    input: NumType
    output: NumType
    weight_type: str
    sum_type: str
    groups: int
    outputs: int
    inputs: int
    taps: int

    @property
    def each(self) -> int:
        """Products of integers in a word of the dense kernels: of four bytes, or of two where inputs or weights have 16 bits."""
        return QUAD if self.input.bits == 8 and self.weight_type == "std::int8_t" else QUAD // 2


@dataclass(frozen=True, eq=False)
class Panels:
    """Constants in the order of SIMD kernels.

    Attributes:
        weights: int8, int16 or float32, flat.
        bias: float32, or int32 with what the moving of inputs by half their range adds taken out; modulo 2^32.
        signed_bias: the same for the sets that multiply bytes as signed ones, unsigned ones - 128; None where it does not matter.
        order: position -> output, for all constants per output; None when it is the identity.
        layout: how the weights lie to those of the portable kernel, where these are panels of rows.
    """

    weights: np.ndarray
    bias: np.ndarray
    order: np.ndarray | None = None
    signed_bias: np.ndarray | None = None
    layout: PanelOrder | None = None

    def sorted(self, values: np.ndarray) -> np.ndarray:
        """Constants per output in the order of the kernel."""
        return values if self.order is None or len(values) != len(self.order) else values[self.order]


@dataclass(frozen=True)
class Implementation:
    """One order of constants, with the layers that it is for.

    Attributes:
        kernel: the C++ function.
        name: for reports.
        which: what an instruction set has that it is written for (`isa.InstructionSet.has`).
        needs: what a layer must have, in the order of the report.
        pack: (weights (O, inputs of an output in the kernel's order), bias, facts) -> Panels.
        real: whether it is for floating point; the others are for integers.
    """

    kernel: str
    name: str
    which: str
    needs: tuple[Callable[[KernelFacts], str], ...]
    pack: Callable[[np.ndarray, np.ndarray, KernelFacts], Panels]
    real: bool = False

    @property
    def sets(self) -> tuple[str, ...]:
        """The instruction sets that it is written for, best first."""
        return having(self.which)

    @property
    def isa(self) -> str:
        """The instruction set of a config: where others bind a kernel of bytes only, portable C++."""
        if self.which == CHANNELS:
            return chosen(self.sets, PORTABLE)
        return REAL_NATIVE if self.real else NATIVE

    @property
    def signed_sets(self) -> tuple[str, ...]:
        """Those of them that multiply signed bytes."""
        return having(self.which, signed=True)

    def ruled_out(self, facts: KernelFacts) -> str:
        """The first need that a layer does not meet; "" where it can use this implementation."""
        return next((reason for need in self.needs if (reason := need(facts))), "")


@dataclass(frozen=True, eq=False)
class Selection:
    """The kernel of a layer, or of a part of one, beside the portable one, and its constants.

    Attributes:
        reason: why this kernel, for the report.
        kernel, sets: its name, and the instruction sets that it is for; "" without one.
        isa: the instruction set of its config.
        signed_sets: those of `sets` that multiply signed bytes.
        panels: its constants; None where they have one order in all instruction sets.
        byte_sums: how many products of bytes may be summed in 16 bits (`byte_sums`).
        winograd: the Winograd form beside it.
        winograd_sums: words that the Winograd form of packed weights sums in 16 bits; 0 without it.
        winograd_wide: the same of the positions with the largest inputs of tiles of four in bytes; 0 without these.
        packed_fours: whether packed weights are transformed on the stack for tiles of four by four outputs.
        nibble_sums: `byte_sums` of the kernel that multiplies packed weights as they come out of their bytes.
        streams: the constants for kernels of microcontrollers, or why there are none; a set takes the last one that it has.
        storage: how its weights are packed; None for a byte or more each.
        prepacked: bytes of static memory that they take where they are unpacked, or transformed (`transforms`), once; 0 without.
    """

    reason: str
    kernel: str = ""
    sets: tuple[str, ...] = ()
    isa: str = PORTABLE
    signed_sets: tuple[str, ...] = ()
    panels: Panels | None = None
    byte_sums: int = 0
    winograd: Winograd | None = None
    winograd_sums: int = 0
    winograd_wide: int = 0
    packed_fours: bool = False
    nibble_sums: int = 0
    streams: tuple[Stream, ...] = ()
    storage: Storage | None = None
    prepacked: int = 0

    @property
    def transforms(self) -> bool:
        """Whether packed weights are transformed for a Winograd form."""
        return self.packed_fours or self.winograd_sums > 0

    def forms(self, panels: np.ndarray | None, signed: np.ndarray | None = None) -> tuple[LayerForm, ...]:
        """The forms of an array: `panels` for the sets of the kernel, `signed` for those of them that multiply signed bytes."""
        if panels is None:
            return ()
        return (*(() if signed is None else (LayerForm(self.signed_sets, signed),)), LayerForm(self.sets, panels))

    def with_stream(self, stream: Stream) -> Selection:
        """The same with one stream more."""
        known = {name for one in self.streams for name in one.form.sets}
        new = [name for name in stream.form.sets if name not in known]
        isa = (
            self.isa if self.isa in (NATIVE, REAL_NATIVE) or not new else chosen(new, self.isa)
        )  # a native kernel: all sets have something for this layer
        return replace(self, isa=isa, streams=(*self.streams, stream))

    def per_output(self, values: np.ndarray) -> tuple[LayerForm, ...]:
        """The forms of an array of constants per output."""
        return () if self.panels is None else self.forms(self.panels.sorted(np.asarray(values).reshape(-1)))


# ---- needs: the dot product instructions multiply bytes with bytes, or 16-bit integers with 16-bit integers, to 32-bit sums ----
def _inputs_of(*bits: int) -> Callable[[KernelFacts], str]:
    wanted = " or ".join(map(str, bits))
    return lambda f: (
        ""
        if f.input.bits in bits and not f.input.is_float
        else (f"its inputs are {f.input.name}; it takes integers of {wanted} bits")
    )


def _byte_weights(f: KernelFacts) -> str:
    return "" if f.weight_type == "std::int8_t" else f"its weights are {plain(f.weight_type)}; it takes int8"


def _narrow_weights(f: KernelFacts) -> str:
    taken = ("std::int8_t", "std::int16_t")
    return "" if f.weight_type in taken else f"its weights are {plain(f.weight_type)}; it takes int8 and int16"


def _word_sums(f: KernelFacts) -> str:
    return "" if f.sum_type == "std::int32_t" else f"its sums are {plain(f.sum_type)}; it takes int32"


def _depth(f: KernelFacts) -> str:
    count = f.inputs * f.taps
    return "" if count >= QUAD else f"an output has {count} inputs; it takes {QUAD} and more"


def _wide_groups(f: KernelFacts) -> str:
    return "" if f.groups == 1 or f.outputs >= 8 else f"its groups have {f.outputs} outputs; it takes 8 and more"


def _floats_only(f: KernelFacts) -> str:
    return "" if f.weight_type in ("float", HALF) else f"its weights are {plain(f.weight_type)}; it takes float"


def _whole_groups(f: KernelFacts) -> str:
    return (
        ""
        if f.groups == 1 or f.outputs % OUTPUTS == 0
        else f"its groups have {f.outputs} outputs; it takes multiples of {OUTPUTS}"
    )


def _no_multiplier(f: KernelFacts) -> str:
    return "" if f.outputs == 1 else f"a channel has {f.outputs} outputs; it takes one"


def plain(ctype: str) -> str:
    """A type of C++ as reports name it."""
    return ctype.removeprefix("std::").removesuffix("_t")


def _moved_bias(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> np.ndarray:
    """The bias for signed bytes stored + 128 and for unsigned 16-bit inputs stored - 32768."""
    shift = {(8, True): 128, (16, False): -32768}.get((facts.input.bits, facts.input.signed), 0)
    bias = bias.astype(np.int64) - shift * _sums(weights)
    return (bias & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def _signed_bias(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> np.ndarray | None:
    """The bias for unsigned bytes multiplied as signed ones, 128 less; as it is for signed ones."""
    if facts.each != QUAD:
        return None
    shift = 0 if facts.input.signed else 128
    moved = bias.astype(np.int64) + shift * _sums(weights)
    return (moved & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def _sums(weights: np.ndarray) -> np.ndarray:
    return weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)


def packed_matrix(weights: np.ndarray, outputs: int, each: int = QUAD) -> np.ndarray:
    """(groups * outputs, K) -> per group and per 16 of its outputs: [ceil(K / each)][outputs of the panel][each], flat.

    K is filled up with zeros; the last panel of a group has only the outputs that are left.
    """
    rows, inputs = weights.shape
    padded = np.zeros((rows, -(-inputs // each) * each), weights.dtype)
    padded[:, :inputs] = weights
    panels = []
    for group in range(0, rows, outputs):
        for first in range(group, group + outputs, OUTPUTS):
            panel = padded[first : min(first + OUTPUTS, group + outputs)]
            panels.append(panel.reshape(len(panel), -1, each).transpose(1, 0, 2).reshape(-1))
    return np.concatenate(panels)


def _matrix(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> Panels:
    rows, each = weights.reshape(len(weights), -1), facts.each
    rows = rows.astype(np.int8 if facts.weight_type == "std::int8_t" else np.int16)
    layout = PanelOrder(*rows.shape, facts.outputs, each)
    packed = packed_matrix(rows, facts.outputs, each)
    return Panels(packed, _moved_bias(weights, bias, facts), None, _signed_bias(weights, bias, facts), layout)


def _as_they_are(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> Panels:
    """Constants in the order of the portable kernel, (KH, KW, C)."""
    return Panels(weights.transpose(1, 2, 0).reshape(-1), bias)


def packed_floats(weights: np.ndarray) -> np.ndarray:
    """(outputs, K) float32 -> per 16 outputs: [K][16], flat; the outputs are filled up with zeros."""
    padded = np.zeros((-(-len(weights) // OUTPUTS) * OUTPUTS, weights.shape[1]), np.float32)
    padded[: len(weights)] = weights
    return np.ascontiguousarray(padded.reshape(-1, OUTPUTS, weights.shape[1]).transpose(0, 2, 1)).reshape(-1)


def _floats(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> Panels:
    padded = np.zeros(-(-len(bias) // OUTPUTS) * OUTPUTS, np.float32)
    padded[: len(bias)] = bias
    rows = weights.reshape(len(weights), -1)
    return Panels(packed_floats(rows), padded, layout=PanelOrder(*rows.shape, len(rows), 1, filled=True))


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
    padded = np.zeros((channels, -(-lines // QUAD) * QUAD, columns), np.int8)
    padded[:, :lines] = weights[depthwise_order(channels)]
    quads = padded.reshape(channels, -1, QUAD, columns).transpose(1, 3, 0, 2)
    return np.concatenate([quads[:, :, first : first + OUTPUTS].reshape(-1) for first in range(0, channels, OUTPUTS)])


def _depthwise(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> Panels:
    order, signed = depthwise_order(len(weights)), _signed_bias(weights, bias, facts)
    moved = _moved_bias(weights, bias, facts)[order]
    return Panels(packed_depthwise(weights), moved, order, None if signed is None else signed[order])


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


def _channels(weights: np.ndarray, bias: np.ndarray, facts: KernelFacts) -> Panels:
    order, packed = channel_order(len(weights)), packed_channels(weights)
    if facts.weight_type == "std::int8_t":
        packed = packed.astype("<i2").view(np.int8)
    moved = _moved_bias(weights, bias, facts) if facts.input.bits == 16 else bias
    return Panels(packed, moved[order], order)


IMPLEMENTATIONS: tuple[Implementation, ...] = (
    Implementation(
        "convolution",
        "panels of 16 outputs",
        CONVOLUTION,
        (_inputs_of(8, 16), _narrow_weights, _word_sums, _wide_groups, _depth),
        _matrix,
    ),
    Implementation(
        "depthwise", "lines by four", DEPTHWISE, (_inputs_of(8), _byte_weights, _word_sums, _no_multiplier), _depthwise
    ),
    Implementation(
        "depthwise",
        "vectors of channels",
        CHANNELS,
        (_inputs_of(8, 16), _narrow_weights, _word_sums, _no_multiplier),
        _channels,
    ),
    Implementation(
        "fullyConnected",
        "panels of 16 outputs",
        FULLY_CONNECTED,
        (_inputs_of(8, 16), _narrow_weights, _word_sums, _depth),
        _matrix,
    ),
    Implementation("convolution", _FLOAT_PANELS, FLOATS, (_floats_only, _whole_groups), _floats, True),
    Implementation(
        "depthwise", "vectors of channels in floating point", FLOATS, (_floats_only, _no_multiplier), _as_they_are, True
    ),
    Implementation("fullyConnected", _FLOAT_PANELS, FLOATS, (_floats_only,), _floats, True),
)


def choose(facts: KernelFacts) -> tuple[Implementation | None, str]:
    """The first implementation that fits, None for the portable kernel alone; and what ruled out those before."""
    ruled_out = []
    for one in IMPLEMENTATIONS:
        if one.kernel == facts.kernel and one.real == (facts.weight_type in ("float", "double", HALF)):
            reason = one.ruled_out(facts)
            if not reason:
                return one, "; ".join(ruled_out)
            ruled_out.append(f"no {one.name}: {reason}")
    return None, "; ".join(ruled_out)
