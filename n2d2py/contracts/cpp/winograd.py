"""Winograd's F(4 x 4, 3 x 3) in integers (`kernels/n2d2/winograd.hpp`): the form of a layer, and its weights."""

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp.arrays import zero_padded
from n2d2py.contracts.cpp.isa import condition
from n2d2py.contracts.cpp.parts import Array, Call, substituted

_MATRIX = np.array([[6, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 6]], np.int64)
"""Winograd's G, its rows times such numbers that all are integers."""
_POSITIONS = 36
"""Products of a tile of four by four outputs with the weights of one input of an output."""


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
        return _POSITIONS * tiles(size) * len(self.weights) * self.weights.shape[-1]

    def array(self) -> Array:
        values, where = transformed(self.weights), self.where
        array = Array(self.name, "std::int8_t", values, where=where, derivation=self.derivation, apart=self.apart)
        return replace(array, borrowed=self.borrowed)


def tiles(size: tuple[int, ...]) -> int:
    """Return the tiles of four by four outputs of an output of `size` lines and pixels."""
    return -(-size[0] // 4) * -(-size[1] // 4)


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
