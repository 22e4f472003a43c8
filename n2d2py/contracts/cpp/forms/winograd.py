"""Winograd forms of convolutions, next to the direct one: where they are exact, where they pay, their scratch.

A time is that of the products of a pixel, in 16-bit products by weight: nine of the direct form are half of that in bytes.
Weights are (O, 3, 3, C).
"""

import numpy as np

from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp.forms.contract import KernelFacts, KernelForm, Role, form
from n2d2py.contracts.cpp.isa import WINOGRAD
from n2d2py.contracts.cpp.winograd import Winograd, tiles
from n2d2py.memory.scratch import ScratchNeed

_SUM_FACTOR = 64
"""Number of times that a sum has to fit into 32 bits."""
_CHANNEL_MULTIPLE = 16
_GROUP_TILES = 6
"""Tiles of a group, at most."""
_TILE_PIXELS = 6
"""Pixels that the direct form computes in the time of a tile: 4 to 8 by instruction set."""
_PANEL_TILES = 16
_CACHE_BYTES = 524288
"""Bytes of weights that the second-level cache of a core holds next to the rest."""
_POSITION_GAP = 128
"""Bytes between two positions of a panel that is transformed."""
_STACK_INPUTS, _STACK_REST = 131072, 32768
"""Bytes of the stack that transformed inputs may take where the plan has less, and those of the other scratch."""
UNLIMITED = 1 << 62
"""Scratch without a limit."""
_STACK_BLOCK = 262144
"""Bytes of transformed inputs that a block may take of the stack, where the plan of the memory has no place for it."""


def impossible(facts: KernelFacts, planned: int) -> str:
    """Reason against it, as a clause for the report; "" where it is exact. `planned`: the bytes that the plan leaves for its
    scratch, 0 where the stack has room."""
    op, weights = facts.layer.op, facts.weights
    if tuple(op.stride) != (1, 1) or tuple(op.dilation) != (1, 1):
        return "it takes windows that lie side by side: stride 1, dilation 1"
    if op.groups != 1:
        return f"it has {op.groups} groups; it takes one"
    if facts.input.bits != 8:
        return f"its inputs have {facts.input.bits} bits; it takes 8"
    if weights.min(initial=0) < -128 or weights.max(initial=0) > 127:
        return "its weights have 16 bits; it takes 8"
    if facts.layer.streamed:
        return "it runs by lines"
    if not _fits(facts.rows):
        return "64 times its sums may exceed 32 bits"
    room = max(planned, _STACK_INPUTS + _STACK_REST) if planned else _STACK_BLOCK
    needed = winograd_scratch(facts)
    reason = f"its transformed inputs take {needed} bytes, of which the plan of the memory leaves {room}"
    return "" if needed <= room else reason


def _fits(rows: np.ndarray) -> bool:
    """True if 64 times each sum fits into 32 bits; all before is modulo 2^32."""
    # Inputs are bytes from 0 to 255 (signed ones + 128), on ARM from -128 to 127.
    wide = rows.astype(np.int64)
    sides = np.maximum(wide, 0).sum(axis=1), np.maximum(-wide, 0).sum(axis=1)
    return _SUM_FACTOR * max(255 * int(np.maximum(*sides).max()), 128 * int(np.add(*sides).max())) < 2**31


def winograd_scratch(facts: KernelFacts) -> int:
    """Return the bytes of `WinogradStack` of `kernels/n2d2/panels/winograd_transforms.hpp`, the most over the instruction sets."""
    channels = facts.weights.shape[-1]
    tile, columns = 72 * round_up(channels, _CHANNEL_MULTIPLE), -(-facts.layer.output_shape[3] // 4)
    inputs = columns * tile if facts.layer.serial else max(_GROUP_TILES * tile, 65536)
    return round_up(channels, 64) + 2304 * _GROUP_TILES + inputs


def unprofitable(facts: KernelFacts) -> str:
    """Why the direct kernel is faster, as a clause for the report; "" where Winograd is."""
    outputs, channels, size = len(facts.weights), facts.weights.shape[-1], facts.layer.output_shape[2:]
    if channels < 4 or outputs < 8:
        return f"{channels} inputs and {outputs} outputs are too few to pay for the transforms"
    pixels = size[0] * size[1]
    if pixels < max(12, _TILE_PIXELS * tiles(size)):
        return f"{pixels} pixels are too few"
    if 72 * outputs * channels > _CACHE_BYTES and pixels < 512:
        return f"{pixels} pixels are too few for {72 * outputs * channels / 2**20:.1f} MB of transformed weights"
    return ""


def pays_on_stack(facts: KernelFacts, stored: bool = True) -> bool:
    """True if tiles of four are exact for weights of a byte, and faster with weights that are transformed on the stack, as much
    work as two or three tiles (`kernels/n2d2/panels/winograd_stack_panel.hpp`), than with stored ones: so many take longer to
    be read than to be multiplied. Without `stored` ones, than the direct form."""
    large = 72 * len(facts.weights) * facts.weights.shape[-1] > _CACHE_BYTES
    lines, pixels = size = facts.layer.output_shape[2:]
    return (large or not stored) and lines * pixels >= _TILE_PIXELS * (tiles(size) + 3) and _takes_stack_panels(facts)


def _takes_stack_panels(facts: KernelFacts) -> bool:
    """True if tiles of four are exact and have room where panels of weights are transformed from those of the direct form."""
    outputs, channels, planned = len(facts.weights), facts.weights.shape[-1], facts.layer.scratch.bytes
    if channels % 4 or outputs % 8 or channels // _parts(channels) < min(channels, 32) or impossible(facts, 0):
        return False
    return not planned or stack_scratch(facts, _STACK_INPUTS) <= max(planned, _STACK_INPUTS + _STACK_REST)


def _parts(channels: int) -> int:
    """`winogradParts`: the parts of whole words of four channels, at most 128 each, in which weights are transformed."""
    return next(parts for parts in range(1, channels) if channels % (4 * parts) == 0 and channels <= 128 * parts)


def stack_scratch(facts: KernelFacts, most: int = UNLIMITED) -> int:
    """Return the bytes with which weights are transformed for _PANEL_TILES tiles of four at a time, or for all, or for as many as
    `most` holds."""
    channels, size = facts.weights.shape[-1], facts.layer.output_shape[2:]
    tile = 72 * round_up(channels, _CHANNEL_MULTIPLE) + (2304 if _parts(channels) > 1 else 0)
    unit = -(-size[1] // 4) if facts.layer.serial else _GROUP_TILES
    units = max(1, min(-(-min(_PANEL_TILES, tiles(size)) // unit), most // (unit * tile)))
    return max(round_up(channels, 64) + _GROUP_TILES * 2304 + units * unit * tile, winograd_scratch(facts))


class WinogradForm(KernelForm[Winograd]):
    """A form of convolutions of 3 x 3 in integers, in tiles of four by four outputs."""

    role, kernels, which = Role.WINOGRAD, ("convolution",), WINOGRAD
    time = 36 / 16

    def note(self, facts: KernelFacts) -> str:
        """Return a clause for the report of a layer that has it, or ""."""
        return ""

    def on_stack(self, facts: KernelFacts, kept: int = 0) -> Winograd:
        """Return the form that transforms the weights of the direct one on the stack, or once, into `kept` bytes."""
        name = facts.layer.identifier
        return Winograd(name, f"{name}_weights", facts.weights, self.sets, self.sets, True, kept)

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        wanted = stack_scratch(facts)
        return ScratchNeed(1, 1, wanted, 4 * wanted)  # the stack has room for less


@form
class PackedWinograd(WinogradForm):
    """Packed weights that are transformed each time, on the stack, or once."""

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is not None

    def fits(self, facts: KernelFacts) -> str | None:
        few_bits = facts.storage is not None and facts.storage.bits <= 4
        return None if few_bits and (self.kept(facts) or pays_on_stack(facts, False)) else "its weights are packed"

    def kept(self, facts: KernelFacts) -> int:
        """Return the bytes of static memory (`WinogradKeptPanels` of `kernels/n2d2/panels/winograd_stack_panel.hpp`) of weights
        that are transformed once, for tiles of four, which have to be few for that; 0 if each time is faster."""
        outputs, channels = len(facts.weights), facts.weights.shape[-1]
        few = tiles(facts.layer.output_shape[2:]) <= _PANEL_TILES and 72 * outputs * channels <= _CACHE_BYTES
        if not (facts.layer.choices.prepacks_weights and few and _takes_stack_panels(facts)) or unprofitable(facts):
            return 0
        parts = _parts(channels)
        sizes = (2 * channels // parts * min(16, outputs - first) + _POSITION_GAP for first in range(0, outputs, 16))
        return parts * 36 * sum(sizes)

    def pack(self, facts: KernelFacts) -> Winograd:
        return self.on_stack(facts, self.kept(facts))


@form
class StackWinograd(WinogradForm):
    """Weights of a byte that are transformed on the stack."""

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is None

    def fits(self, facts: KernelFacts) -> str | None:
        return None if pays_on_stack(facts, facts.layer.choices.stores_winograd) else "stored weights are faster"

    def pack(self, facts: KernelFacts) -> Winograd:
        return self.on_stack(facts)


@form
class StoredWinograd(WinogradForm):
    """Transformed weights instead of those of the direct form."""

    time = 36 / 16 + 1 / 4  # more weights are read

    def considered(self, facts: KernelFacts) -> bool:
        return facts.storage is None

    def fits(self, facts: KernelFacts) -> str | None:
        larger = None if facts.layer.choices.stores_winograd else "its weights would be larger"
        return impossible(facts, facts.layer.scratch.bytes) or larger

    def pack(self, facts: KernelFacts) -> Winograd:
        name = facts.layer.identifier
        sets = () if unprofitable(facts) else self.sets
        return Winograd(f"{name}_transformed", f"{name}_weights", facts.weights, sets, self.sets)

    def note(self, facts: KernelFacts) -> str:
        problem = unprofitable(facts)
        return f"no Winograd: {problem}" if problem else ""

    def scratch(self, facts: KernelFacts) -> ScratchNeed | None:
        wanted = winograd_scratch(facts)
        return None if unprofitable(facts) else ScratchNeed(1, 1, wanted, 4 * wanted)
