"""A lowered network as a loadable: memories, tensors, addresses, and a task for each piece of work.

Work for the accelerator and work for the CPU alternate; the tasks run one after the other. Memories are numbered before
descriptors are written, as the older firmware has one address for every place, after those of the memories.
"""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import Loadable
from n2d2py_nvdla.export.emit_tasks import DlaWork, EmuWork, Pools
from n2d2py_nvdla.export.hardware import HardwareBuffer, Lowered
from n2d2py_nvdla.export.pixels import R8
from n2d2py_nvdla.export.place import PoolPlacement, place
from n2d2py_nvdla.firmware import ABIS, INT8
from n2d2py_nvdla.tables import Address, Blob, Event, Memory, Submit, Task, TensorDesc

PAGE = 4096
MOST_ADDRESSES = 6144
"""Addresses that NVIDIA's runtime takes for a task."""
MOST_OPERATIONS = 32767

_ALLOC, _SET, _INPUT, _OUTPUT = 1, 2, 4, 8
_PLANES, _ATOMS = 1, 3
"""Data formats of tensors: channel by channel, atoms of channels."""
_IMAGE, _FEATURE = 0, 2
"""Categories of tensors."""


@dataclass
class Compiled:
    """The loadable, its placement, the bytes of its weights, and the operations of the accelerator."""

    loadable: Loadable
    placement: PoolPlacement
    weights: int
    operations: int


class _Memories:
    """The memory list, and the blobs that fill it."""

    def __init__(self) -> None:
        self.entries: list[Memory] = []
        self.blobs: list[Blob] = []

    def add(self, flags: int, size: int, contents: list[str] | None = None, **fields: int) -> int:
        """Return a new memory; its number."""
        number = len(self.entries)
        self.entries.append(Memory(number, 0, flags, size, PAGE, contents or [], [0] * len(contents or []), **fields))
        return number


def emit(lowered: Lowered, firmware_abi: str) -> Compiled:
    """Return the loadable for firmware "v10" or "v12".

    Raises:
        N2D2Error: E716 when there are more operations or addresses than firmware can name.
    """
    abi, memories = ABIS[firmware_abi], _Memories()
    placement = place(lowered)
    memories.add(_ALLOC, PAGE)
    weights = memories.add(_ALLOC | _SET, 0, ["tb-0"])
    pools = Pools(abi, lowered, weights, memories.add(_ALLOC, max(placement.size, PAGE)))
    tensors = _bind(lowered, memories, pools)
    works = [
        DlaWork(pools, number, work) if kind == "DLA" else EmuWork(pools, number, work)
        for number, (kind, work) in enumerate(lowered.segments())
    ]
    for work in works:
        if work.operations > MOST_OPERATIONS:
            raise N2D2Error(
                "E716",
                f"the network takes {work.operations} hardware operations in a row; a task has at most {MOST_OPERATIONS}",
                where=lowered.name,
                remedy="use a larger configuration, or split the network",
            )
    tasks = _tasks(works, memories)
    size = pools.close()
    memories.entries[weights].size = size
    memories.blobs.append(Blob("tb-0", size, 0, 0, (0, 0, 0), bytes(pools.constants)))
    addresses = [Address(one.id, one.id, 0, one.size) for one in memories.entries]
    extra = [
        Address(len(addresses) + i, memory, offset, memories.entries[memory].size - offset)
        for (memory, offset), i in pools.places.items()
    ]
    for task in tasks:
        task.address_list = [task.address_list[0], *(one.id for one in addresses[1:]), *(one.id for one in extra)]
        if len(task.address_list) > MOST_ADDRESSES:
            raise N2D2Error(
                "E716",
                f"the network needs {len(task.address_list)} addresses; NVIDIA's runtime takes {MOST_ADDRESSES}",
                where=lowered.name,
                remedy="use NVDLAFirmware=0.12",
            )
    events = [Event(i, 0, task.id, 1, 1) for i, task in enumerate(tasks)]
    loadable = Loadable(
        (0, 7, 0),
        tasks,
        memories.entries,
        addresses + extra,
        events,
        memories.blobs,
        tensors,
        [],
        [Submit(i, [task.id]) for i, task in enumerate(tasks)],
    )
    return Compiled(loadable, placement, size, sum(work.operations for work in works if work.interface == 1))


def _bind(lowered: Lowered, memories: _Memories, pools: Pools) -> list[TensorDesc]:
    """Return the memories and descriptors of the inputs and outputs."""
    tensors: list[TensorDesc] = []
    for flag, bindings in ((_INPUT, lowered.inputs), (_OUTPUT, lowered.outputs)):
        for number, (name, (buffer, _)) in enumerate(bindings.items()):
            memory = memories.add(_ALLOC | flag, buffer.size, bind_id=number, tensor_desc_id=len(tensors))
            pools.bound[buffer] = memory
            tensors.append(_tensor(name, len(tensors), memory, buffer))
    return tensors


def _tensor(name: str, number: int, memory: int, buffer: HardwareBuffer) -> TensorDesc:
    bytes_per = 1 if buffer.precision == INT8 else 2
    return TensorDesc(
        name,
        number,
        memory,
        buffer.size,
        0,
        _PLANES if buffer.image else _ATOMS,
        {0: 4, 1: 3, 2: 2}[buffer.precision],
        _IMAGE if buffer.image else _FEATURE,
        R8 if buffer.image else 37 if buffer.atom == 8 else 36,
        0,
        1,
        buffer.channels,
        buffer.height,
        buffer.width,
        bytes_per,
        buffer.line,
        buffer.surface,
    )


def _tasks(works: list[DlaWork | EmuWork], memories: _Memories) -> list[Task]:
    """Number the memories of all descriptors, then writes them."""
    first, at = [], len(memories.entries)
    for work in works:
        first.append(at)
        at += len(work.names) + 1
    tasks = []
    for number, (work, start) in enumerate(zip(works, first, strict=True)):
        for name, data in zip(work.names, work.written(start, at), strict=True):
            blob = f"task-{number}-{name}"
            memories.blobs.append(Blob(blob, len(data), work.interface, 0, work.version, data))
            memories.add(_ALLOC | _SET, len(data), [blob])
        memories.add(_ALLOC, PAGE)
        tasks.append(Task(number, work.interface, -1, [start], [number - 1] if number else [], [number]))
    return tasks
