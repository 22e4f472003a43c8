"""Winograd's F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3) in integers (`kernels/n2d2/winograd.hpp`): where they are exact, where they pay, their weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.arithmetic.exact import round_up
from n2d2py.contracts.cpp.isa import condition
from n2d2py.contracts.cpp.packing import Storage, zero_padded
from n2d2py.contracts.cpp.parts import Array, Call, substituted
from n2d2py.memory.scratch import ScratchNeed

_MATRICES = {
    2: np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]], np.int64),
    4: np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int64),
}
"""Winograd's G by the outputs of a tile in each direction, its rows times such numbers that all are integers."""
_SUM_FACTORS = {2: 4, 4: 64}
"""Number of times that a sum has to fit into 32 bits."""
_CHANNEL_MULTIPLE = 16
_GROUP_TILES = 6
_PRODUCT_BYTES = 1024
"""Tiles of a group, at most, and bytes of the products of one with a panel."""
_PANEL_TILES = 16
_STACK_BYTES = 81920
"""Bytes of their scratch that tiles of four may take of the stack, where the plan has less."""
_CACHE_BYTES = 524288
"""Bytes of weights that the second-level cache of a core holds next to the rest."""
_POSITION_GAP = 128
"""Bytes between two positions of a panel that is transformed."""
_STACK_INPUTS, _STACK_REST = 131072, 32768
"""Bytes of the stack that transformed inputs take, next to a panel of weights transformed there, where the plan has less; and the rest of the
scratch."""
UNLIMITED = 1 << 62
"""Scratch without a limit."""
_STACK_BLOCK = 262144
"""Bytes of transformed inputs that a block may take of the stack, where the plan of the memory has no place for it."""


@dataclass(frozen=True)
class WinogradFacts:
    """Facts of a choice besides the weights; `size` is (lines, pixels of a line) of the output, `scratch` the bytes that the
    plan leaves for it, 0 where the stack has room; `line` the bytes of a line of inputs that the output may cover."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    bits: int
    size: tuple[int, int]
    streamed: bool
    serial: bool
    scratch: int = 0
    line: int = 0


@dataclass(frozen=True, eq=False)
class Winograd:
    """A Winograd form of a layer next to its direct one.

    Attributes:
        name: that of its weights; `direct` is the array of the direct form in whose place they are.
        weights: (O, 3, 3, C), not transformed.
        facts: the enumerators of a config that has it.
        sets: the instruction sets that call it; `possible` those that could. Those with a dot product of bytes are faster
            without, but for AVX-VNNI with tiles of four. None for packed weights, whose direct kernel does.
        streamed: whether it runs row by row.
        kept: bytes of static memory that its transformed weights take, of packed ones that are transformed once.
        derivation, apart, borrowed: as in `parts.Array`; a build that cannot derive its weights uses the direct form.
    """

    name: str
    direct: str
    weights: np.ndarray
    facts: Mapping[str, int] = field(default_factory=dict)
    sets: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    streamed: bool = False
    kept: int = 0
    derivation: str = ""
    apart: bool = False
    borrowed: bool = False

    @property
    def tile(self) -> int:
        """The outputs of a tile in each direction, 2 or 4."""
        return self.facts.get("WinogradTile", 2)

    @property
    def on_stack(self) -> bool:
        """True if the weights are those of the direct form, transformed when they are needed (`panels/winograd_stack_panel.hpp`)."""
        return "WinogradOnStack" in self.facts

    @property
    def headers(self) -> tuple[str, ...]:
        return ("n2d2/winograd.hpp",) if self.possible else ()

    @property
    def where(self) -> str:
        """The condition of the preprocessor under which it is used."""
        return f"({condition(self.sets)}) && N2D2_DERIVED" if self.derivation else condition(self.sets)

    def call(self, direct: Call) -> Call:
        """Return the call that runs it, of that of the direct form."""
        weights = {} if self.on_stack else {self.direct: self.name}
        return replace(substituted(direct, weights), function="n2d2::winograd")

    @property
    def bytes(self) -> int:
        outputs, channels = len(self.weights), self.weights.shape[-1]
        return (self.tile + 2) ** 2 * 2 * round_up(outputs, 8) * round_up(channels, 2)

    def products(self, size: tuple[int, int]) -> int:
        """Return the multiplications for an output of `size` lines and pixels: 16 for four pixels instead of 36, of single
        lines 12 for two; 36 for 16 instead of 144 in tiles of four.
        """
        rows = 12 * size[0] if self.streamed else (self.tile + 2) ** 2 * -(-size[0] // self.tile)
        return rows * -(-size[1] // self.tile) * len(self.weights) * self.weights.shape[-1]

    def array(self) -> Array:
        values, where = transformed(self.weights, self.tile), self.where
        array = Array(self.name, "std::int8_t", values, where=where, derivation=self.derivation, apart=self.apart)
        return replace(array, borrowed=self.borrowed)


def impossible(weights: np.ndarray, geometry: WinogradFacts) -> str:
    """Reason against it for 8-bit weights (O, 3, 3, C), as a clause for the report; "" where it is exact."""
    if tuple(geometry.stride) != (1, 1) or tuple(geometry.dilation) != (1, 1):
        return "it takes windows that lie side by side: stride 1, dilation 1"
    if geometry.groups != 1:
        return f"it has {geometry.groups} groups; it takes one"
    if geometry.bits != 8:
        return f"its inputs have {geometry.bits} bits; it takes 8"
    if weights.min(initial=0) < -128 or weights.max(initial=0) > 127:
        return "its weights have 16 bits; it takes 8"
    if not _fits(weights, 2):
        return "four times its sums may exceed 32 bits"
    if tile_of(weights, geometry) == 4:
        return ""
    ordered, pair = geometry.serial and not geometry.streamed, 32 * round_up(weights.shape[-1], _CHANNEL_MULTIPLE)
    if ordered and not geometry.scratch and (geometry.size[1] + 1) // 2 * pair > _STACK_BLOCK:
        return f"a pair of its lines needs more than {_STACK_BLOCK // 1024} KB of stack"
    least = winograd_scratch(weights.shape[-1], geometry).least
    if 0 < geometry.scratch < least:
        return f"the plan of the memory leaves {geometry.scratch} bytes for its transformed inputs; it needs {least}"
    return ""


def _fits(weights: np.ndarray, tile: int) -> bool:
    """True if 4 (or 64) times each sum fits into 32 bits; all before is modulo 2^32."""
    # Inputs are bytes from 0 to 255 (signed ones + 128), on ARM from -128 to 127.
    rows = weights.reshape(len(weights), -1).astype(np.int64)
    sides = np.maximum(rows, 0).sum(axis=1), np.maximum(-rows, 0).sum(axis=1)
    return _SUM_FACTORS[tile] * max(255 * int(np.maximum(*sides).max()), 128 * int(np.add(*sides).max())) < 2**31


def tile_of(weights: np.ndarray, geometry: WinogradFacts) -> int:
    """4 where tiles of four by four outputs are exact, have room and are faster than those of two by two, else 2; for layers that have the form."""
    lines, pixels = geometry.size
    # Reading many weights takes longer than few products.
    if 72 * len(weights) * weights.shape[-1] > _CACHE_BYTES and lines * pixels < 512:
        return 2
    if 5 * 36 * _tiles(geometry, 4) > 4 * 16 * _tiles(geometry, 2):
        return 2
    return 4 if _has_fours(weights, geometry) else 2


def _has_fours(weights: np.ndarray, geometry: WinogradFacts) -> bool:
    """True if tiles of four are exact and have room, of a layer that is large enough."""
    outputs, channels = len(weights), weights.shape[-1]
    if geometry.streamed or outputs < 16 or channels < 8:
        return False
    room = max(geometry.scratch, _STACK_BYTES) if geometry.scratch else _STACK_BLOCK
    return _fours_scratch(channels, geometry) <= room and _fits(weights, 4)


def _fours_scratch(channels: int, geometry: WinogradFacts) -> int:
    """Return the bytes of `WinogradStack` of `kernels/n2d2/panels/winograd_fours.hpp`, the most over the instruction sets."""
    tile, columns = 72 * round_up(channels, _CHANNEL_MULTIPLE), -(-geometry.size[1] // 4)
    tiles = columns * tile if geometry.serial else max(_GROUP_TILES * tile, 65536)
    return round_up(channels, 64) + 2304 * _GROUP_TILES + tiles


def winograd_scratch(channels: int, geometry: WinogradFacts) -> ScratchNeed:
    """Return the bytes of `kernels/n2d2/panels/panel_winograd.hpp`: a pixel, the products of a group of up to six tiles,
    transformed inputs of that many, or of a pair of lines where lines have an order; for fewer tiles a copy of a line of
    inputs. Two tiles of a group are as fast as six.
    """
    tile, pixel = 32 * round_up(channels, _CHANNEL_MULTIPLE), round_up(channels, 64)
    columns = (geometry.size[1] + 1) // 2
    tiles = columns if geometry.streamed else columns * ((geometry.size[0] + 1) // 2)
    ordered, group = geometry.serial and not geometry.streamed, min(_GROUP_TILES, tiles)
    unit = columns if ordered else group
    whole = min(tiles * tile, max(65536, unit * tile))
    copy = round_up(geometry.line, 64) if ordered else 0
    least = pixel + copy + _PRODUCT_BYTES + tile
    enough = max(least, pixel + copy + min(2, group) * (_PRODUCT_BYTES + tile))
    return ScratchNeed(least, least, enough, max(enough, pixel + _GROUP_TILES * _PRODUCT_BYTES + max(whole, unit * tile)))


def unprofitable(weights: np.ndarray, geometry: WinogradFacts) -> str:
    """Why the direct kernel is faster, as a clause for the report; "" where Winograd is."""
    outputs, channels = len(weights), weights.shape[-1]
    if channels < 4 or outputs < 8:
        return f"{channels} inputs and {outputs} outputs are too few to pay for the transforms"
    pixels = geometry.size[0] * geometry.size[1]
    if pixels < 12:
        return f"{pixels} pixels are too few"
    if pixels < 100 and outputs * channels > 65536:
        return f"{pixels} pixels are too few for {32 * outputs * channels / 2**20:.1f} MB of transformed weights"
    return ""


def _panels(outputs: int) -> list[int]:
    """Return the outputs of each panel."""
    return [min(16, outputs - first) for first in range(0, outputs, 16)]


def packed_fours(weights: np.ndarray, geometry: WinogradFacts, storage: Storage) -> bool:
    """True if tiles of four by four outputs are exact and faster for packed weights (O, 3, 3, C) of at most 4 bits, which are
    unpacked and transformed on the stack."""
    return storage.bits <= 4 and _fours_on_stack(weights, geometry)


def kept_fours(weights: np.ndarray, geometry: WinogradFacts, storage: Storage) -> int:
    """Return the bytes of static memory (`WinogradKeptPanels` of `kernels/n2d2/panels/winograd_stack_panel.hpp`) of packed
    weights (O, 3, 3, C) of at most 4 bits that are transformed once, for tiles of four by four outputs, where these are exact
    and have to be few for that; 0 if not.
    """
    room = replace(geometry, scratch=0)
    if storage.bits > 4 or not _takes_stack_panels(weights, geometry) or unprofitable(weights, room):
        return 0
    if _tiles(geometry, 4) > _PANEL_TILES or tile_of(weights, room) != 4 or 72 * weights.size // 9 > _CACHE_BYTES:
        return 0
    outputs, channels = len(weights), weights.shape[-1]
    parts = _parts(channels)
    return sum(parts * 36 * (2 * channels // parts * each + _POSITION_GAP) for each in _panels(outputs))


def fours_on_stack(weights: np.ndarray, geometry: WinogradFacts, stored: bool = True) -> bool:
    """True if tiles of four by four outputs are exact for weights (O, 3, 3, C) of a byte, and faster with weights that are
    transformed on the stack than with stored ones: so many take longer to be read than to be multiplied. Without `stored` ones,
    than the direct form."""
    large = 72 * len(weights) * weights.shape[-1] > _CACHE_BYTES
    return (large or not stored) and _fours_on_stack(weights, geometry)


def _fours_on_stack(weights: np.ndarray, geometry: WinogradFacts) -> bool:
    """True if tiles of four are exact where a panel of weights is transformed on the stack, as much work as two or three tiles
    (`kernels/n2d2/panels/winograd_stack_panel.hpp`), and faster than the direct form."""
    lines, pixels = geometry.size
    least = 12 + 7 * _tiles(geometry, 4)  # seven pixels of the direct form take as long as a tile
    return lines * pixels >= least and _takes_stack_panels(weights, geometry)


def _takes_stack_panels(weights: np.ndarray, geometry: WinogradFacts) -> bool:
    """True if tiles of four are exact and have room where panels of weights are transformed from those of the direct form."""
    outputs, channels = len(weights), weights.shape[-1]
    apart = replace(geometry, scratch=0)
    if channels % 4 or outputs % 8 or channels // _parts(channels) < min(channels, 32) or impossible(weights, apart):
        return False
    if not _has_fours(weights, apart):
        return False
    room = max(geometry.scratch, _STACK_INPUTS + _STACK_REST)
    return not geometry.scratch or stack_scratch(channels, geometry, _STACK_INPUTS) <= room


def _parts(channels: int) -> int:
    """`winogradParts`: the parts of whole words of four channels, at most 128 each, in which weights are transformed."""
    return next(parts for parts in range(1, channels) if channels % (4 * parts) == 0 and channels <= 128 * parts)


def _tiles(geometry: WinogradFacts, edge: int) -> int:
    return -(-geometry.size[0] // edge) * -(-geometry.size[1] // edge)


def stack_scratch(channels: int, geometry: WinogradFacts, most: int = UNLIMITED) -> int:
    """Return the bytes with which weights are transformed for _PANEL_TILES tiles of four at a time, or for all, or for as many as
    `most` holds.
    """
    tile = 72 * round_up(channels, _CHANNEL_MULTIPLE) + (2304 if _parts(channels) > 1 else 0)
    unit = -(-geometry.size[1] // 4) if geometry.serial else _GROUP_TILES
    units = max(1, min(-(-min(_PANEL_TILES, _tiles(geometry, 4)) // unit), most // (unit * tile)))
    wanted = round_up(channels, 64) + _GROUP_TILES * 2304 + units * unit * tile
    return max(wanted, _fours_scratch(channels, geometry))


def positions(weights: np.ndarray, tile: int = 2) -> np.ndarray:
    """(S G) w (S G)' of weights (O, 3, 3, C), by row and column of the positions: (4, 4, O, C), or (6, 6, O, C) for tiles of four."""
    matrix = _MATRICES[tile]
    return np.einsum("iu,ouvc,jv->ijoc", matrix, weights.astype(np.int64), matrix, optimize=True)


def transformed(weights: np.ndarray, tile: int = 2) -> np.ndarray:
    """(O, 3, 3, C) -> (S G) w (S G)' as bytes, low byte first, in the order of `kernels/n2d2/winograd.hpp`: [panel][16 or 36
    positions] [pair of channels][output][channel of the pair], the outputs of the last panel filled up to a multiple of 8."""
    outputs, channels = len(weights), weights.shape[-1]
    padded = zero_padded(weights.astype(np.int64), round_up(outputs, 8), 3, 3, round_up(channels, 2))
    by_pair = positions(padded, tile).astype("<i2").reshape((tile + 2) ** 2, len(padded), -1, 2)
    pairs = by_pair.transpose(0, 2, 1, 3)  # position, pair, output, channel of the pair
    panels = (np.ascontiguousarray(pairs[:, :, first : first + 16]) for first in range(0, len(padded), 16))
    return np.concatenate([panel.reshape(-1).view(np.int8) for panel in panels])
