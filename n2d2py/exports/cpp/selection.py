"""The kernel of a layer beside the portable one, and its constants in that kernel's order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.exports.cpp.byte_sums import byte_sums, explained, nibble_sums
from n2d2py.exports.cpp.channel_pairs import channel_pairs
from n2d2py.exports.cpp.isa import CHANNELS, FOURS, ROW_PANELS, ROWS, RUNS, TABLES, WEIGHTS_ON_STACK, WINOGRAD, having
from n2d2py.exports.cpp.lanes import lane_facts, lanes, pairs
from n2d2py.exports.cpp.layer import Layer
from n2d2py.exports.cpp.output_streams import outputs
from n2d2py.exports.cpp.packing import Storage, storage_of
from n2d2py.exports.cpp.parts import NATIVE, REAL_NATIVE, Array, Expression, LayerForm, Stream
from n2d2py.exports.cpp.pixels import columns, pixels
from n2d2py.exports.cpp.variants import (
    HALF,
    OUTPUTS,
    QUAD,
    ROW_DOTS,
    TABLE,
    VECTORS,
    KernelFacts,
    Selection,
    choose,
    packed_matrix,
    plain,
)
from n2d2py.exports.cpp.vector_streams import dots, taps, vector_facts
from n2d2py.exports.cpp.winograd import (
    UNLIMITED,
    Winograd,
    WinogradFacts,
    byte_fours,
    fours_on_stack,
    impossible,
    kept_byte_fours,
    kept_bytes,
    kept_fours,
    on_stack_scratch,
    packed_fours,
    tile_of,
    unprofitable,
    winograd_scratch,
)
from n2d2py.exports.cpp.winograd import byte_sums as winograd_byte_sums
from n2d2py.memory.scratch import ScratchNeed

_FEW_PIXELS = 20
"""Unpacking a weight takes as long as multiplying it with so many pixels, less that of a byte; measured without a dot product of bytes."""
_MOST_PREPACKED = 524288
"""Bytes of weights that a second-level cache holds; more are read faster as they are packed."""
_LARGEST_RUN = 4608
"""Weights of an output that are unpacked at a time, at most: those of 512 channels by 3 x 3. SIMD kernels unpack up to 64 outputs (128
of a fully connected layer) on the stack."""


def _storage(layer: Layer, weights: np.ndarray, groups: int) -> Storage | None:
    """How the weights of a dense layer are packed."""
    if not (layer.choices.packs_weights and layer.integer and weights[0].size <= _LARGEST_RUN):
        return None
    if groups > 1 and len(weights) // groups % OUTPUTS:
        return None  # panels of its groups would not begin at bytes
    return storage_of(weights)


def select_kernel(layer: Layer, kernel: str, weights: np.ndarray, groups: int = 1, *, packable: bool = False) -> Selection:
    """The implementation of `kernel` beside the portable one, and its panels.

    `weights` are (O, positions..., inputs of an output) for a dense kernel and (C, KH, KW) for a depthwise one; `packable`: the
    kernel unpacks those of few bits.
    """
    dense = kernel != "depthwise"
    storage = _storage(layer, weights, groups) if packable and dense else None
    facts = _facts(layer, kernel, weights, groups)
    found, reason = choose(facts)
    if found is None:
        return Selection(reason, storage=storage)
    reason = f"{facts.input.name} inputs, " + (
        f"{plain(facts.weight_type)} weights, int32 sums" if layer.integer else "sums in one order"
    )
    sums = 0
    if layer.integer and dense and facts.each == QUAD:
        sums = byte_sums(weights.reshape(len(weights), -1), facts.input, bounded=layer.computed)
        reason += f"; {explained(sums)}"
    panels = found.pack(weights, layer.values("bias"), facts)
    if storage is not None:
        reason += f"; weights of {storage.bits} bits, unpacked before they are multiplied"
    nibbles = 0
    if kernel == "fullyConnected" and storage is not None and storage.bits == 4:
        nibbles = nibble_sums(weights.reshape(len(weights), -1), facts.input, bounded=layer.computed)
    return Selection(
        reason, found.name, found.sets, found.isa, found.signed_sets, panels, sums, nibble_sums=nibbles, storage=storage
    )


def _facts(layer: Layer, kernel: str, weights: np.ndarray, groups: int) -> KernelFacts:
    inputs = weights.shape[-1] if kernel != "depthwise" else 1
    return KernelFacts(
        kernel,
        layer.inputs[0],
        layer.output,
        _weight_type(layer, weights),
        layer.sum_type(),
        groups,
        len(weights) // groups,
        inputs,
        weights[0].size // inputs,
    )


def has_panels(layer: Layer, kernel: str, weights: np.ndarray, groups: int = 1) -> bool:
    """Whether a kernel on panels of weights fits; the arguments are those of `select_kernel`."""
    found = choose(_facts(layer, kernel, weights, groups))[0]
    return found is not None and found.which != CHANNELS


def winograd_geometry(layer: Layer) -> WinogradFacts:
    """What the Winograd form of a convolution depends on."""
    op, (lines, pixels) = layer.op, layer.output_shape[2:]
    line = layer.over[0].line_bytes if layer.over else 0
    bits, scratch = layer.inputs[0].bits, layer.scratch.bytes
    return WinogradFacts(op.stride, op.dilation, op.groups, bits, (lines, pixels), layer.streamed, layer.serial, scratch, line)


def winograd_need(layer: Layer, weights: np.ndarray, direct: ScratchNeed) -> ScratchNeed:
    """The scratch of a convolution whose direct form needs `direct`, with what the Winograd form needs where that is exact and, with room
    for it, faster; `weights` are (O, KH, KW, C).
    """
    if not (layer.integer and layer.choices.uses_winograd and weights.shape[1:3] == (3, 3)):
        return direct
    geometry, channels = winograd_geometry(layer), weights.shape[-1]
    storage, unlimited = _storage(layer, weights, layer.op.groups), replace(geometry, scratch=UNLIMITED)
    if storage is not None:
        packed = packed_form(layer, weights, unlimited, storage)
        if not packed.what:
            return direct
        return on_stack_scratch(channels, geometry, direct, fours=packed.fours, byte_fours=packed.wide > 0)
    if impossible(weights, unlimited):
        return direct
    if fours_on_stack(weights, unlimited, layer.choices.stores_winograd):
        return on_stack_scratch(channels, geometry, direct, fours=True)
    if not layer.choices.stores_winograd or unprofitable(weights, unlimited):
        return direct
    form = winograd_scratch(channels, geometry)
    return ScratchNeed(
        direct.least, max(direct.least, form.least), max(direct.enough, form.enough), max(direct.most, form.most)
    )


@dataclass(frozen=True)
class PackedForm:
    """The Winograd form of packed weights: `sums` words of four channels of the one in bytes are summed in 16 bits, 0 without it; `wide` of them
    in the positions with the largest inputs of its tiles of four, 0 for tiles of two; `fours`: whether, without it, that in 16 bits is used.
    """

    sums: int = 0
    wide: int = 0
    fours: bool = False

    @property
    def what(self) -> str:
        """For the report; "" for none."""
        tiles = "tiles of four" if self.wide or self.fours else ""
        return f"bytes{', ' * bool(tiles)}{tiles}" if self.sums else tiles


def packed_form(layer: Layer, weights: np.ndarray, geometry: WinogradFacts, storage: Storage) -> PackedForm:
    """That of a layer, none where there is no faster one."""
    if layer.computed and layer.choices.prepacks_weights:
        sums, wide = byte_fours(weights, geometry, layer.inputs[0], storage)
        if sums and wide:
            return PackedForm(sums, wide)
    if layer.computed and (sums := winograd_byte_sums(weights, geometry, layer.inputs[0], storage)):
        return PackedForm(sums)
    kept = layer.choices.prepacks_weights and kept_fours(weights, geometry, storage) > 0
    return PackedForm(fours=kept or packed_fours(weights, geometry, storage))


def prepack(layer: Layer, selection: Selection, weights: np.ndarray, geometry: WinogradFacts | None = None) -> Selection:
    """`selection` with packed weights (O, ..., C) that are unpacked once, where that is faster than in each inference; `geometry` is that of a
    convolution.
    """
    if not layer.choices.prepacks_weights or selection.storage is None:
        return selection
    made = 0
    if geometry is not None and selection.winograd_sums:
        made = kept_byte_fours(weights) if selection.winograd_wide else kept_bytes(weights, geometry)
    elif geometry is not None and selection.packed_fours:
        made = kept_fours(weights, geometry, selection.storage)
    elif geometry is None or math.prod(geometry.size[1:] if geometry.streamed else geometry.size) < _FEW_PIXELS:
        size = 2 if _weight_type(layer, weights) == "std::int16_t" else 1
        word = selection.panels.layout.each if selection.panels is not None and selection.panels.layout else 1
        needed = len(weights) * -(-weights[0].size // word) * word * size
        made = needed if needed <= _MOST_PREPACKED else 0
    if not made:
        return selection
    what = "transformed" if selection.transforms else "unpacked"
    return replace(selection, prepacked=made, reason=f"{selection.reason}; {what} once, into {made:,} bytes")


def vectors(layer: Layer) -> Selection:
    """The kernel of the instruction set for a layer whose constants have the same order in all."""
    if not layer.integer:
        return layer.portable
    return Selection("the compiler makes the sums, registers the epilogue", VECTORS, having(RUNS), NATIVE)


def row_dots() -> Selection:
    """The kernel of the instruction set for products of a vector with rows of weights, which have the same order in all."""
    return Selection("a vector of inputs with some rows of weights at a time", ROW_DOTS, having(ROWS), NATIVE)


def row_panels(rows: np.ndarray, run: int, kind: NumType, reach: int) -> tuple[LayerForm, ...]:
    """The rows of a recurrent layer (R, K), `run` of them for each gate, for sets that multiply panels of 16 rows.

    Panels are those of dense layers, [ceil(K / 4)][16][4] for each gate. Behind them lie R integers of 32 bits, what moving the inputs by half
    their range, so that none is negative, takes from the sums. `kind` is the type of the inputs, `reach` the largest sum:
    other weights than int8, and larger sums than 32 bits have, keep their rows.
    """
    if rows.dtype != np.int8 or reach >= 2**31:
        return ()
    first = -(2 ** (kind.bits - 1) if kind.signed else 0) * rows.sum(axis=1, dtype=np.int64)
    begin = (first & 0xFFFFFFFF).astype("<u4").view(np.int8)
    return (LayerForm(having(ROW_PANELS), np.concatenate([packed_matrix(rows, run), begin])),)


def table(layer: Layer) -> Selection:
    """The kernel of the instruction set for a table from bytes to bytes."""
    if not layer.inputs[0].bits == layer.output.bits == 8:
        return layer.portable
    return Selection(
        "bytes to bytes: 256 entries in registers", TABLE, having(TABLES), NATIVE if layer.integer else REAL_NATIVE
    )


def winograd(layer: Layer, selection: Selection, weights: np.ndarray, geometry: WinogradFacts) -> Selection:
    """`selection` with the Winograd form too where that is exact, used where it pays; `weights` are (O, 3, 3, C)."""
    if not (layer.integer and layer.choices.uses_winograd and selection.panels and weights.shape[1:3] == (3, 3)):
        return selection
    problem, form = impossible(weights, geometry), None
    if selection.storage is not None:
        packed = packed_form(layer, weights, geometry, selection.storage)
        if packed.what:
            reason = f"{selection.reason}; Winograd in {packed.what} on x86 without AVX-512 VNNI"
            return replace(
                selection, winograd_sums=packed.sums, winograd_wide=packed.wide, packed_fours=packed.fours, reason=reason
            )
        problem = "its weights are packed"
    name = layer.identifier
    if selection.storage is None and fours_on_stack(weights, geometry, layer.choices.stores_winograd):
        problem, sets = "", having(WEIGHTS_ON_STACK)
        form = Winograd(name, f"{name}_weights", weights, sets, sets, layer.streamed, 4, on_stack=True)
    elif not problem and layer.choices.stores_winograd:
        problem, tile = unprofitable(weights, geometry), tile_of(weights, geometry)
        possible = having(WINOGRAD) if tile == 2 else (*having(FOURS), *having(WINOGRAD))
        used = () if problem else possible
        form = Winograd(f"{name}_transformed", f"{name}_weights", weights, used, possible, layer.streamed, tile)
    elif not problem:
        problem = "its weights would be larger"
    reason = f"{selection.reason}; no Winograd: {problem}" if problem else selection.reason
    return replace(selection, winograd=form, reason=reason)


def for_cores(layer: Layer, selection: Selection, weights: np.ndarray, groups: int = 1, *, single: bool = False) -> Selection:
    """`selection` with the dense kernels of microcontrollers too, where they are exact; `weights` are (O, ...), `single`: the input is
    one pixel."""
    if selection.storage is not None:
        return replace(selection, streams=(Stream("kernel of microcontrollers", (), problem="its weights are packed"),))
    selection = outputs(layer, selection, weights, groups)
    if not single:
        selection = pixels(layer, selection, weights, groups)
    selection = dots(layer, lanes(layer, selection, weights, groups), weights, groups, single)
    return channel_pairs(layer, selection, weights, groups) if layer.choices.trades_flash and not single else selection


def depthwise_for_cores(layer: Layer, selection: Selection, weights: np.ndarray) -> Selection:
    """`selection` with the depthwise kernels of microcontrollers too; `weights` are (C, KH, KW)."""
    stride, dilation, pads = layer.op.stride, layer.op.dilation, layer.op.pads
    if layer.input_shape[1] == len(weights):
        selection = outputs(layer, selection, weights)
    selection = pairs(layer, columns(layer, selection, weights, stride, dilation, pads), weights)
    return taps(layer, selection, weights, stride, dilation, pads)


def _weight_type(layer: Layer, values: np.ndarray) -> str:
    if not layer.integer:
        return HALF if values.dtype == np.float16 else layer.output.cpp
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return next(f"std::int{bits}_t" for bits in (8, 16, 32, 64) if -(2 ** (bits - 1)) <= low <= high < 2 ** (bits - 1))


@dataclass(frozen=True, eq=False)
class Packed:
    """Weights and bias as arrays.

    Attributes:
        types: the typedefs of their elements, Weight and Sum.
        facts: the enumerators FullWeights and ByteSums, what products of bytes in 16 bits depend on, those of packed weights and those
            of the streams.
        arguments: weights and bias as arguments of a call.
    """

    types: dict[str, str]
    facts: dict[str, int]
    arguments: tuple[Array | Expression, Array]


def pack(layer: Layer, selection: Selection, weights: np.ndarray, suffix: str = "") -> Packed:
    """`weights`, in the order of the portable kernel, and the layer's bias, with the forms of the selected kernel.

    Integers are stored in the narrowest of int8, int16, int32 that holds them, halves by their bits, the bias as the accumulator.
    """
    panels, sum_type = selection.panels, layer.sum_type()
    ctype, stored, packed = _weight_type(layer, weights), weights, panels and panels.weights
    if ctype == HALF:
        stored = np.ascontiguousarray(weights).view(np.uint16)
        packed = None if packed is None else packed.astype(np.float16).view(np.uint16)
    storage, kind = selection.storage, "std::uint16_t" if ctype == HALF else ctype
    if storage is not None:
        stored, kind = storage.rows(weights), "std::uint8_t"
        packed = None if packed is None else storage.run(packed)
    streams = [one for one in selection.streams if one.values is not None]
    order = panels.layout if panels and storage is None else None
    forms = (*selection.forms(packed), *(one.form for one in streams[::-1]))
    array = layer.array("weights" + suffix, stored, kind, forms, order)
    forms = () if panels is None else selection.forms(panels.bias, panels.signed_bias)
    bias = layer.array("bias" + suffix, layer.values("bias"), sum_type, forms)
    # Products of two bytes in 16 bits do not stand weights of -128.
    full = layer.integer and int(layer.values("weights").min(initial=0)) <= -128
    return Packed(
        {"Weight": ctype, "Sum": sum_type},
        {
            "FullWeights": full,
            "ByteSums": selection.byte_sums,
            **({} if storage is None else storage.facts),
            **({"PrepackedWinograd" if selection.transforms else "Prepacked": 1} if selection.prepacked else {}),
            **({"NibbleSums": selection.nibble_sums} if selection.nibble_sums else {}),
            **({"WinogradSums": selection.winograd_sums} if selection.winograd_sums else {}),
            **({"WinogradWide": selection.winograd_wide} if selection.winograd_wide else {}),
            **({"WinogradTile": 4} if selection.packed_fours or (selection.winograd and selection.winograd.tile == 4) else {}),
            **({"WinogradOnStack": 1} if selection.winograd and selection.winograd.on_stack else {}),
            **{name: value for one in streams for name, value in one.facts.items()},
            **({**lane_facts(layer), **vector_facts(layer)} if streams else {}),
        },
        (Expression.of(f"reinterpret_cast<const {HALF}*>({array})", array) if ctype == HALF else array, bias),
    )
