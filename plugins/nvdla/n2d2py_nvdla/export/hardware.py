"""Objects that the compiler builds: buffers, regions of them, hardware operations, layers of operations.

A layer is the work of one network layer: its chains may follow each other closely, the next layer waits for all of it.
A chain is what runs on the fly together: a convolution with its SDP, or one operation alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from n2d2py.errors import InternalError
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.extension import Extension
from n2d2py_nvdla.firmware import BYTES

PIXEL_LINE = 32
"""Bytes that the lines of an image are a multiple of."""


@dataclass(eq=False)
class HardwareBuffer:
    """Memory of a feature cube: packed lines and surfaces of atoms.

    Attributes:
        kind: "input", "output" or "activation".
        offset: byte in the activation pool, set by the placement.
        image: whether an input holds one byte per pixel in lines of whole 32 bytes (format R8), not atoms.
    """

    name: str
    channels: int
    height: int
    width: int
    precision: int
    atom: int
    kind: str = "activation"
    offset: int = 0
    image: bool = False

    @property
    def lanes(self) -> int:
        """Channels of an atom."""
        return self.atom // BYTES[self.precision]

    @property
    def line(self) -> int:
        """Bytes of a line."""
        return -(-self.width // PIXEL_LINE) * PIXEL_LINE if self.image else self.width * self.atom

    @property
    def surface(self) -> int:
        """Bytes of a surface."""
        return self.height * self.line

    @property
    def size(self) -> int:
        """Bytes of the cube."""
        return -(-self.channels // self.lanes) * self.surface


@dataclass(frozen=True, eq=False)
class Region:
    """Channels, lines and, where `columns` is not 0, columns of a buffer; the first channel begins an atom."""

    buffer: HardwareBuffer
    channel: int
    channels: int
    row: int
    rows: int
    columns: int = 0
    column: int = 0

    @staticmethod
    def whole(buffer: HardwareBuffer) -> Region:
        """All of a buffer."""
        return Region(buffer, 0, buffer.channels, 0, buffer.height)

    @property
    def width(self) -> int:
        """Pixels of a line."""
        return self.columns or self.buffer.width

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        return self.channels, self.rows, self.width

    @property
    def line(self) -> int:
        """Bytes from a line to the next."""
        return self.buffer.line

    @property
    def surface(self) -> int:
        """Bytes from a surface to the next."""
        return self.buffer.surface

    @property
    def begin(self) -> int:
        """Its first byte in the buffer."""
        return (
            self.channel // self.buffer.lanes * self.buffer.surface
            + self.row * self.buffer.line
            + self.column * self.buffer.atom
        )

    @property
    def size(self) -> int:
        """Bytes from its first to its last."""
        surfaces = -(-self.channels // self.buffer.lanes)
        pixel = 1 if self.buffer.image else self.buffer.atom
        return (surfaces - 1) * self.buffer.surface + (self.rows - 1) * self.buffer.line + self.width * pixel

    def part(self, channel: int = 0, channels: int | None = None, row: int = 0, rows: int | None = None) -> Region:
        """Return a part of it, relative to its beginning."""
        return replace(
            self,
            channel=self.channel + channel,
            channels=self.channels - channel if channels is None else channels,
            row=self.row + row,
            rows=self.rows - row if rows is None else rows,
        )


@dataclass(frozen=True, eq=False)
class SubRegion(Region):
    """The atoms of a region as a cube of other extents.

    Attributes:
        cube: (C, H, W) that the engine sees.
        strides: bytes from a line to the next, from a surface to the next.
        start: its first byte, after that of the region.
        place: where its elements lie in the region: first line and column, steps of lines and columns, and for lines that
            are surfaces and columns that are lines of the cube the channels of an atom, else 0. None for another order.
    """

    cube: tuple[int, int, int] = (0, 0, 0)
    strides: tuple[int, int] = (0, 0)
    start: int = 0
    place: tuple[int, int, int, int, int] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) that the engine sees."""
        return self.cube

    @property
    def line(self) -> int:
        """Bytes from a line to the next."""
        return self.strides[0]

    @property
    def surface(self) -> int:
        """Bytes from a surface to the next."""
        return self.strides[1]

    @property
    def begin(self) -> int:
        """Its first byte in the buffer."""
        return super().begin + self.start

    def part(self, channel: int = 0, channels: int | None = None, row: int = 0, rows: int | None = None) -> SubRegion:
        """All of it: a view is read whole."""
        if channel or row or channels not in (None, self.cube[0]) or rows not in (None, self.cube[1]):
            raise InternalError("a part of a view")
        return self

    @property
    def size(self) -> int:
        """Bytes from its first to its last."""
        c, h, w = self.cube
        surfaces = -(-c // self.buffer.lanes)
        return (surfaces - 1) * self.surface + (h - 1) * self.line + w * self.buffer.atom


@dataclass(frozen=True, eq=False)
class ConstantBlob:
    """Bytes of weights, biases or scales; `cube` holds (width, height, channel, line, surface) of the descriptor."""

    data: bytes
    cube: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)


@dataclass(eq=False)
class HwOp:
    """One hardware operation: engine, operation descriptor, and what each data cube is.

    A cube is a Region, ConstantBlob, ("fly", (C, H, W)) for data that stays inside of the hardware, or absent.
    """

    engine: int
    op: np.void
    cubes: dict[str, Any]
    lut: np.void | None = None


@dataclass(eq=False)
class HwLayer:
    """The operations of a network layer.

    Attributes:
        name: of the layer.
        tensor: of the network that its result is.
        result: where the result lies.
        scale: real value of 1 in the result; 1 for fp16.
        chains: operations in order, those on the fly together.
    """

    name: str
    tensor: str
    result: Region
    scale: float
    chains: list[list[HwOp]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class EmuLayer:
    """A layer that the CPU computes: NVIDIA's softmax, or an extension operation.

    Attributes:
        name, tensors: of the layer, and of the network that its results are.
        sources, results: where its tensors lie.
        source_scale, scale: real value of 1 of the softmax's input, and of the first result.
        after: layers of the accelerator that come before it.
        extension: the operator, None for the softmax.
    """

    name: str
    tensors: tuple[str, ...]
    sources: tuple[Region, ...]
    results: tuple[Region, ...]
    source_scale: float
    scale: float
    after: int
    extension: Extension | None = None


@dataclass(eq=False)
class Lowered:
    """A network for one configuration.

    Attributes:
        inputs, outputs: buffer and scale by tensor, in the order of the network.
        layers: those of the accelerator, in order.
        emulated: those of the CPU, in order; each says how many of the accelerator come before it.
    """

    name: str
    config: HardwareConfig
    precision: int
    inputs: dict[str, tuple[HardwareBuffer, float]] = field(default_factory=dict)
    outputs: dict[str, tuple[HardwareBuffer, float]] = field(default_factory=dict)
    layers: list[HwLayer] = field(default_factory=list)
    emulated: list[EmuLayer] = field(default_factory=list)

    def segments(self) -> list[tuple[str, list[Any]]]:
        """("DLA", layers) and ("EMU", layers) in the order of execution: one task each."""
        found: list[tuple[str, list[Any]]] = []
        at = 0
        for emulated in [*self.emulated, None]:
            until = len(self.layers) if emulated is None else emulated.after
            if until > at:
                found.append(("DLA", self.layers[at:until]))
            if emulated is not None:
                if not found or found[-1][0] == "DLA":
                    found.append(("EMU", []))
                found[-1][1].append(emulated)
            at = until
        return found
