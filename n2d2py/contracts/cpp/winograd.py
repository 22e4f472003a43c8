"""Winograd's F(4 x 4, 3 x 3) in integers (`kernels/n2d2/winograd.hpp`): where it is exact, where it pays, its weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp.arrays import Storage, zero_padded
from n2d2py.contracts.cpp.isa import condition
from n2d2py.contracts.cpp.parts import Array, Call, substituted

_MATRIX = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int64)
"""Winograd's G, its rows times such numbers that all are integers."""
_POSITIONS = 36
"""Products of a tile of four by four outputs with the weights of one input of an output."""
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


@dataclass(frozen=True)
class WinogradFacts:
    """Facts of a choice besides the weights; `size` is (lines, pixels of a line) of the output, `scratch` the bytes that the
    plan leaves for it, 0 where the stack has room."""

    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int
    bits: int
    size: tuple[int, int]
    streamed: bool
    serial: bool
    scratch: int = 0


@dataclass(eq=False)
class Winograd:
    """A Winograd form of a layer next to its direct one.

    Attributes:
        name: that of its weights; `direct` is the array of the direct form in whose place they are.
        weights: (O, 3, 3, C), not transformed.
        sets: the instruction sets that call it; `possible` those that could.
        on_stack: whether its weights are those of the direct form, transformed when they are needed
            (`panels/winograd_stack_panel.hpp`).
        kept: bytes of static memory that its transformed weights take, of packed ones that are transformed once.
        where: the condition of the preprocessor under which it is used; `facts`: the enumerators of a config that has it.
        derivation, apart, borrowed: as in `parts.Array`; a build that cannot derive its weights uses the direct form.
    """

    name: str
    direct: str
    weights: np.ndarray
    sets: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    on_stack: bool = False
    kept: int = 0
    derivation: str = ""
    apart: bool = False
    borrowed: bool = False

    def __post_init__(self) -> None:
        self.facts = {"WinogradOnStack": 1} if self.on_stack else {}
        self.headers = ("n2d2/winograd.hpp",) if self.possible else ()
        outputs, channels = len(self.weights), self.weights.shape[-1]
        self.bytes = _POSITIONS * 2 * round_up(outputs, 8) * round_up(channels, 2)

    @property
    def where(self) -> str:
        return f"({condition(self.sets)}) && N2D2_DERIVED" if self.derivation else condition(self.sets)

    def call(self, direct: Call) -> Call:
        """Return the call that runs it, of that of the direct form."""
        weights = {} if self.on_stack else {self.direct: self.name}
        return replace(substituted(direct, weights), function="n2d2::winograd")

    def products(self, size: tuple[int, int]) -> int:
        """Return the multiplications for an output of `size` lines and pixels: 36 for 16 pixels instead of 144."""
        return _POSITIONS * _tiles(size) * len(self.weights) * self.weights.shape[-1]

    def array(self) -> Array:
        values, where = transformed(self.weights), self.where
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
    if geometry.streamed:
        return "it runs by lines"
    if not _fits(weights):
        return "64 times its sums may exceed 32 bits"
    room = max(geometry.scratch, _STACK_INPUTS + _STACK_REST) if geometry.scratch else _STACK_BLOCK
    needed = winograd_scratch(weights.shape[-1], geometry)
    return (
        "" if needed <= room else f"its transformed inputs take {needed} bytes, of which the plan of the memory leaves {room}"
    )


def _fits(weights: np.ndarray) -> bool:
    """True if 64 times each sum fits into 32 bits; all before is modulo 2^32."""
    # Inputs are bytes from 0 to 255 (signed ones + 128), on ARM from -128 to 127.
    rows = weights.reshape(len(weights), -1).astype(np.int64)
    sides = np.maximum(rows, 0).sum(axis=1), np.maximum(-rows, 0).sum(axis=1)
    return _SUM_FACTOR * max(255 * int(np.maximum(*sides).max()), 128 * int(np.add(*sides).max())) < 2**31


def winograd_scratch(channels: int, geometry: WinogradFacts) -> int:
    """Return the bytes of `WinogradStack` of `kernels/n2d2/panels/winograd_transforms.hpp`, the most over the instruction sets."""
    tile, columns = 72 * round_up(channels, _CHANNEL_MULTIPLE), -(-geometry.size[1] // 4)
    tiles = columns * tile if geometry.serial else max(_GROUP_TILES * tile, 65536)
    return round_up(channels, 64) + 2304 * _GROUP_TILES + tiles


def unprofitable(weights: np.ndarray, geometry: WinogradFacts) -> str:
    """Why the direct kernel is faster, as a clause for the report; "" where Winograd is."""
    outputs, channels = len(weights), weights.shape[-1]
    if channels < 4 or outputs < 8:
        return f"{channels} inputs and {outputs} outputs are too few to pay for the transforms"
    pixels = geometry.size[0] * geometry.size[1]
    if pixels < max(12, _TILE_PIXELS * _tiles(geometry.size)):
        return f"{pixels} pixels are too few"
    if 72 * outputs * channels > _CACHE_BYTES and pixels < 512:
        return f"{pixels} pixels are too few for {72 * outputs * channels / 2**20:.1f} MB of transformed weights"
    return ""


def kept_bytes(weights: np.ndarray, geometry: WinogradFacts, storage: Storage) -> int:
    """Return the bytes of static memory (`WinogradKeptPanels` of `kernels/n2d2/panels/winograd_stack_panel.hpp`) of packed
    weights (O, 3, 3, C) of at most 4 bits that are transformed once, for tiles of four, where these are exact
    and have to be few for that; 0 if not."""
    if storage.bits > 4 or not _takes_stack_panels(weights, geometry) or unprofitable(weights, geometry):
        return 0
    if _tiles(geometry.size) > _PANEL_TILES or 72 * weights.size // 9 > _CACHE_BYTES:
        return 0
    outputs, channels = len(weights), weights.shape[-1]
    parts = _parts(channels)
    return sum(
        parts * 36 * (2 * channels // parts * min(16, outputs - first) + _POSITION_GAP) for first in range(0, outputs, 16)
    )


def pays_on_stack(weights: np.ndarray, geometry: WinogradFacts, stored: bool = True) -> bool:
    """True if tiles of four are exact for weights (O, 3, 3, C) of a byte, and faster with weights that are transformed on the
    stack, as much work as two or three tiles (`kernels/n2d2/panels/winograd_stack_panel.hpp`), than with stored ones: so many
    take longer to be read than to be multiplied. Without `stored` ones, than the direct form."""
    large = 72 * len(weights) * weights.shape[-1] > _CACHE_BYTES
    lines, pixels = geometry.size
    least = _TILE_PIXELS * (_tiles(geometry.size) + 3)
    return (large or not stored) and lines * pixels >= least and _takes_stack_panels(weights, geometry)


def _takes_stack_panels(weights: np.ndarray, geometry: WinogradFacts) -> bool:
    """True if tiles of four are exact and have room where panels of weights are transformed from those of the direct form."""
    outputs, channels = len(weights), weights.shape[-1]
    apart = replace(geometry, scratch=0)
    if channels % 4 or outputs % 8 or channels // _parts(channels) < min(channels, 32) or impossible(weights, apart):
        return False
    room = max(geometry.scratch, _STACK_INPUTS + _STACK_REST)
    return not geometry.scratch or stack_scratch(channels, geometry, _STACK_INPUTS) <= room


def _parts(channels: int) -> int:
    """`winogradParts`: the parts of whole words of four channels, at most 128 each, in which weights are transformed."""
    return next(parts for parts in range(1, channels) if channels % (4 * parts) == 0 and channels <= 128 * parts)


def _tiles(size: tuple[int, int]) -> int:
    return -(-size[0] // 4) * -(-size[1] // 4)


def stack_scratch(channels: int, geometry: WinogradFacts, most: int = UNLIMITED) -> int:
    """Return the bytes with which weights are transformed for _PANEL_TILES tiles of four at a time, or for all, or for as many as
    `most` holds."""
    tile = 72 * round_up(channels, _CHANNEL_MULTIPLE) + (2304 if _parts(channels) > 1 else 0)
    unit = -(-geometry.size[1] // 4) if geometry.serial else _GROUP_TILES
    units = max(1, min(-(-min(_PANEL_TILES, _tiles(geometry.size)) // unit), most // (unit * tile)))
    wanted = round_up(channels, 64) + _GROUP_TILES * 2304 + units * unit * tile
    return max(wanted, winograd_scratch(channels, geometry))


def positions(weights: np.ndarray, matrix: np.ndarray = _MATRIX) -> np.ndarray:
    """(S G) w (S G)' of weights (O, 3, 3, C) with S G = `matrix`, by row and column of the positions: (6, 6, O, C)."""
    return np.einsum("iu,ouvc,jv->ijoc", matrix, weights.astype(np.int64), matrix, optimize=True)


def transformed(weights: np.ndarray) -> np.ndarray:
    """(O, 3, 3, C) -> (S G) w (S G)' as bytes, low byte first, in the order of `kernels/n2d2/winograd.hpp`: [panel][36
    positions] [pair of channels][output][channel of the pair], the outputs of the last panel filled up to a multiple of 8."""
    outputs, channels = len(weights), weights.shape[-1]
    padded = zero_padded(weights.astype(np.int64), round_up(outputs, 8), 3, 3, round_up(channels, 2))
    by_pair = positions(padded).astype("<i2").reshape(_POSITIONS, len(padded), -1, 2)
    pairs = by_pair.transpose(0, 2, 1, 3)  # position, pair, output, channel of the pair
    panels = (np.ascontiguousarray(pairs[:, :, first : first + 16]) for first in range(0, len(padded), 16))
    return np.concatenate([panel.reshape(-1).view(np.int8) for panel in panels])
