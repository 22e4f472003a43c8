"""Content of a loadable for the firmware: memories as bytes, and for each task its network and operations.

The initial bytes of every memory are those of the blobs named by it, as the runtime copies them. Descriptors are read
at byte 0 of their memory, whatever offset the address list gives (the firmware does the same).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from n2d2py_nvdla.decode import LARGEST_MEMORY, Decoder, detect_abi, memories_of, submitted
from n2d2py_nvdla.firmware import ABIS, Abi
from n2d2py_nvdla.tables import FLAG_INPUT, FLAG_OUTPUT, Loadable, TensorDesc
from n2d2py_nvdla.tasks import DlaTask, EmuOperation, EmuTask, Operation

__all__ = ["LARGEST_MEMORY", "DlaTask", "EmuOperation", "EmuTask", "Operation", "Program"]


@dataclass
class Program:
    """A loadable, decoded.

    Attributes:
        loadable, name: the file, and how messages call it.
        abi: the firmware ABI of its descriptors.
        memories: initial bytes by memory id.
        tasks: in the order of submission.
    """

    loadable: Loadable
    name: str
    abi: Abi
    memories: dict[int, np.ndarray]
    tasks: list[DlaTask | EmuTask] = field(default_factory=list)

    @staticmethod
    def of(loadable: Loadable, name: str = "loadable", abi: str | None = None) -> Program:
        """Return the decodes a loadable; the ABI is detected when `abi` is None.

        Raises:
            N2D2Error: E901 for descriptors that lie outside of their memory, or name what does not exist.
        """
        memories = memories_of(loadable, name)
        if abi is None:
            abi = detect_abi(loadable, memories, name)
        program = Program(loadable, name, ABIS[abi], memories)
        program.tasks = [Decoder(loadable, name, program.abi, memories, number).task() for number in submitted(loadable, name)]
        return program

    def bindable(self, flag: int) -> list[tuple[int, TensorDesc | None]]:
        """(memory id, tensor descriptor) of the inputs (FLAG_INPUT) or outputs (FLAG_OUTPUT), by bind id."""
        found = []
        descriptors = {tensor.id: tensor for tensor in self.loadable.tensor_desc_list}
        for memory in sorted((m for m in self.loadable.memory_list if m.flags & flag), key=lambda m: m.bind_id):
            found.append((memory.id, descriptors.get(memory.tensor_desc_id)))
        return found

    @property
    def inputs(self) -> list[tuple[int, TensorDesc | None]]:
        """The bindable inputs."""
        return self.bindable(FLAG_INPUT)

    @property
    def outputs(self) -> list[tuple[int, TensorDesc | None]]:
        """The bindable outputs."""
        return self.bindable(FLAG_OUTPUT)

    def dla_operations(self) -> Iterator[tuple[DlaTask, Operation]]:
        """All operations of the accelerator."""
        for task in self.tasks:
            if isinstance(task, DlaTask):
                for operation in task.operations:
                    yield task, operation
