"""Decoded tasks: operations of the accelerator with their descriptors, operations of the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from n2d2py_nvdla import firmware
from n2d2py_nvdla.extension import Extension


@dataclass(frozen=True)
class Operation:
    """One hardware operation: its place in the lists, engine, dependencies, operation and surface descriptors."""

    number: int
    engine: int
    common: np.void
    op: np.void
    surface: np.void

    @property
    def name(self) -> str:
        """Such as "op 3 (SDP)", for messages."""
        return f"op {self.number} ({firmware.ENGINES[self.engine]})"

    def consumers(self) -> Iterator[tuple[int, int, int]]:
        """Engine, operation and event of every consumer."""
        for engine, consumer in enumerate(self.common["consumers"]):
            if consumer["index"] >= 0:
                yield engine, int(consumer["index"]), int(consumer["event"])


@dataclass(frozen=True)
class DlaTask:
    """A task of the accelerator. `addresses[i]` are the (memory id, offset, size) that index i of its cubes means."""

    number: int
    addresses: tuple[tuple[int, int, int], ...]
    network: np.void
    operations: tuple[Operation, ...]
    luts: tuple[np.void, ...]


@dataclass(frozen=True)
class EmuOperation:
    """One operation of the emulator: record of the operation, source and destination buffers.

    Attributes:
        extension: what an extension operation computes; None for NVIDIA's operations.
    """

    number: int
    kind: int
    op: np.void
    sources: tuple[np.void, ...]
    destinations: tuple[np.void, ...]
    extension: Extension | None = None

    @property
    def source(self) -> np.void:
        """The first source."""
        return self.sources[0]

    @property
    def destination(self) -> np.void:
        """The first destination."""
        return self.destinations[0]


@dataclass(frozen=True)
class EmuTask:
    """A task of the emulator on the CPU."""

    number: int
    addresses: tuple[tuple[int, int, int], ...]
    operations: tuple[EmuOperation, ...]
