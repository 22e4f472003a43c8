"""The state that all units share: configuration, memories, addresses."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.firmware import has_field
from n2d2py_nvdla.model.cbuf import ConvolutionBuffer
from n2d2py_nvdla.model.formats import read_feature, write_feature
from n2d2py_nvdla.program import DlaTask, Operation


@dataclass
class Machine:
    """One accelerator with its memory.

    Attributes:
        name: of the loadable, for messages.
        config: the hardware configuration.
        memories: bytes by memory id.
        exact: whether fp16 convolutions follow the multipliers bit by bit (slow), or sum in float64.
        trace: results by (task, operation) when it is a dict.
        weights: unpacked weights, kept where their memory is one of `constant`, which nothing has written so far.
        buffer: the convolution buffer.
    """

    name: str
    config: HardwareConfig
    memories: dict[int, np.ndarray]
    exact: bool = False
    trace: dict[tuple[int, int], np.ndarray] | None = None
    weights: dict[tuple, np.ndarray] = field(default_factory=dict)
    constant: set[int] = field(default_factory=set)
    buffer: ConvolutionBuffer = field(init=False)

    def __post_init__(self) -> None:
        self.buffer = ConvolutionBuffer(self.config)

    def at(
        self, addresses: tuple[tuple[int, int, int], ...], index: int, offset: int, what: str, write: bool = False
    ) -> tuple[np.ndarray, int]:
        """Memory and byte of an address index; with `write` a memory of constants becomes one of this run alone.

        Raises:
            N2D2Error: E906 for an index outside of the address list.
        """
        if not 0 <= index < len(addresses):
            raise N2D2Error(
                "E906",
                f"{what} has address index {index}, outside of the address list of {len(addresses)}",
                where=self.name,
                remedy="compile it again",
            )
        memory, start, _ = addresses[index]
        if write and memory in self.constant:
            self.memories[memory] = self.memories[memory].copy()
            self.constant.discard(memory)
            for key in [key for key in self.weights if key[0] == memory]:
                del self.weights[key]
        return self.memories[memory], start + offset

    def place(self, task: DlaTask, cube: np.void, what: str, write: bool = False) -> tuple[np.ndarray, int]:
        """Memory and first byte of a data cube."""
        offset = int(cube["offset"]) if has_field(cube, "offset") else 0
        return self.at(task.addresses, int(cube["address"]), offset, what, write)

    def read_cube(self, task: DlaTask, operation: Operation, name: str, precision: int) -> np.ndarray:
        """Return the feature cube `name` of an operation, (C rounded up to an atom, H, W)."""
        cube = operation.surface[name]
        what = f"{operation.name} {name}"
        memory, base = self.place(task, cube, what)
        shape = (int(cube["channel"]), int(cube["height"]), int(cube["width"]))
        return read_feature(
            memory, base, shape, int(cube["line_stride"]), int(cube["surf_stride"]), precision, self.config.atom, what
        )

    def write_cube(self, task: DlaTask, operation: Operation, name: str, values: np.ndarray) -> None:
        """Store the result of an operation, (C, H, W); C is filled up with zeros to an atom."""
        cube = operation.surface[name]
        what = f"{operation.name} {name}"
        memory, base = self.place(task, cube, what, True)
        lanes = self.config.atom // values.dtype.itemsize
        wanted = -(-int(cube["channel"]) // lanes) * lanes
        h, w = int(cube["height"]), int(cube["width"])
        if values.shape[1:] != (h, w):
            raise N2D2Error(
                "E906",
                f"{what} is {w}x{h}, its result {values.shape[2]}x{values.shape[1]}",
                where=self.name,
                remedy="compile it again",
            )
        if values.shape[0] < wanted:
            values = np.concatenate([values, np.zeros((wanted - values.shape[0], h, w), values.dtype)])
        write_feature(memory, base, values[:wanted], int(cube["line_stride"]), int(cube["surf_stride"]), self.config.atom, what)
        if self.trace is not None:
            self.trace[task.number, operation.number] = values[: int(cube["channel"])].copy()
