"""A lowered network as a loadable: descriptors in the structures of either firmware, memories, tasks."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.export.nvdla.hardware import Buffer, Constants, EmuLayer, HwOp, Lowered, Region
from n2d2py.export.nvdla.place import Placement, place
from n2d2py.export.nvdla.schedule import dependency_graph
from n2d2py.nvdla import Loadable, firmware
from n2d2py.nvdla.firmware import ABIS, CUBES, INT8, Abi
from n2d2py.nvdla.tables import Address, Blob, Event, Memory, Submit, Task, TensorDesc

__all__ = ["Compiled", "emit"]

PAGE = 4096
POOL_ALIGNMENT = 256
MOST_ADDRESSES = 6144
"""Addresses that NVIDIA's runtime takes for a task."""

_POOL_WEIGHTS, _POOL_ACTIVATIONS = 1, 2
_ALLOC, _SET, _INPUT, _OUTPUT = 1, 2, 4, 8


@dataclass
class Compiled:
    """The loadable, its placement, and the bytes of its weights."""

    loadable: Loadable
    placement: Placement
    weights: int
    operations: int


@dataclass
class _Emitter:
    """Memories, blobs and addresses as they are collected."""

    lowered: Lowered
    abi: Abi
    memories: list[Memory] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    pool: bytearray = field(default_factory=bytearray)
    constants: dict[bytes, int] = field(default_factory=dict)
    bound: dict[Buffer, int] = field(default_factory=dict)
    places: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def new(self) -> bool:
        """Whether data cubes have an offset of their own."""
        return "offset" in self.abi.cube.names

    def memory(self, flags: int, size: int, contents: list[str] | None = None, **fields: int) -> int:
        number = len(self.memories)
        self.memories.append(Memory(number, 0, flags, size, PAGE, contents or [], [0] * len(contents or []), **fields))
        return number

    def described(self, name: str, data: bytes, interface: int) -> int:
        """A memory that holds one blob of descriptors."""
        version = self.abi.firmware if interface == 1 else (0, 0, 1)
        self.blobs.append(Blob(name, len(data), interface, 0, version, data))
        return self.memory(_ALLOC | _SET, len(data), [name])

    def constant(self, data: bytes) -> int:
        """Byte in the weight pool; equal constants are stored once."""
        if data not in self.constants:
            self.pool.extend(bytes(-len(self.pool) % POOL_ALIGNMENT))
            self.constants[data] = len(self.pool)
            self.pool.extend(data)
        return self.constants[data]

    def place_of(self, cube: object) -> tuple[int, int]:
        """(memory, byte) of a cube."""
        if isinstance(cube, Constants):
            return _POOL_WEIGHTS, self.constant(cube.data)
        assert isinstance(cube, Region)
        if cube.buffer in self.bound:
            return self.bound[cube.buffer], cube.begin
        return _POOL_ACTIVATIONS, cube.buffer.offset + cube.begin

    def address(self, place: tuple[int, int]) -> tuple[int, int]:
        """(address index, offset) for a cube; the older firmware has one address for each place."""
        if self.new:
            return place
        return self.places.setdefault(place, len(self.places)), 0


def emit(lowered: Lowered, firmware_abi: str) -> Compiled:
    """The loadable for firmware "v10" or "v12".

    Raises:
        N2D2Error: E716 when there are more operations or addresses than firmware can name.
    """
    out = _Emitter(lowered, ABIS[firmware_abi])
    placement = place(lowered)
    out.memory(_ALLOC, PAGE)
    out.memory(_ALLOC | _SET, 0, ["tb-0"])
    out.memory(_ALLOC, max(placement.size, PAGE))
    tensors = []
    for flag, bindings in ((_INPUT, lowered.inputs), (_OUTPUT, lowered.outputs)):
        for number, (name, (buffer, _)) in enumerate(bindings.items()):
            out.bound[buffer] = out.memory(_ALLOC | flag, buffer.size, bind_id=number, tensor_desc_id=len(tensors))
            tensors.append(_tensor(name, len(tensors), out.bound[buffer], buffer))
    ops = [op for layer in lowered.layers for chain in layer.chains for op in chain]
    if len(ops) > 32767:
        raise N2D2Error("E716", f"the network takes {len(ops)} hardware operations; a task has at most 32767",
                        where=lowered.name, remedy="use a larger configuration, or split the network")
    records = _operations(out, ops)
    _dla_task(out, ops, *records)
    if lowered.emulated:
        _emu_task(out, lowered.emulated)
    out.pool.extend(bytes(-len(out.pool) % POOL_ALIGNMENT or (0 if out.pool else POOL_ALIGNMENT)))
    out.memories[_POOL_WEIGHTS].size = len(out.pool)
    out.blobs.append(Blob("tb-0", len(out.pool), 0, 0, (0, 0, 0), bytes(out.pool)))
    addresses = [Address(one.id, one.id, 0, one.size) for one in out.memories]
    extra = [Address(len(out.memories) + i, memory, offset, out.memories[memory].size - offset)
             for (memory, offset), i in out.places.items()]
    for task in out.tasks:
        task.address_list = [task.address_list[0], *(one.id for one in addresses[1:]), *(one.id for one in extra)]
        if len(task.address_list) > MOST_ADDRESSES:
            raise N2D2Error("E716", f"the network needs {len(task.address_list)} addresses; NVIDIA's runtime takes "
                            f"{MOST_ADDRESSES}", where=lowered.name, remedy="use NVDLAFirmware=0.12")
    events = [Event(i, 0, task.id, 1, 1) for i, task in enumerate(out.tasks)]
    loadable = Loadable((0, 7, 0), out.tasks, out.memories, addresses + extra, events, out.blobs, tensors, [],
                        [Submit(i, [task.id]) for i, task in enumerate(out.tasks)])
    return Compiled(loadable, placement, len(out.pool), len(ops))


def _tensor(name: str, number: int, memory: int, buffer: Buffer) -> TensorDesc:
    bytes_per = 1 if buffer.precision == INT8 else 2
    return TensorDesc(name, number, memory, buffer.size, 0, 3, {0: 4, 1: 3, 2: 2}[buffer.precision], 2,
                      37 if buffer.atom == 8 else 36, 0, 1, buffer.channels, buffer.height, buffer.width, bytes_per,
                      buffer.line, buffer.surface)


def _operations(out: _Emitter, ops: list[HwOp]) -> tuple[bytearray, list[np.ndarray], list[bytes]]:
    """Operation list, surface descriptors (addresses of places still to be shifted), look-up tables."""
    listed = bytearray()
    surfaces, luts = [], []
    for op in ops:
        record = op.op.copy()
        if op.lut is not None:
            data = op.lut.tobytes()
            if data not in luts:
                luts.append(data)
            record["lut_index"] = luts.index(data)
        listed += record.tobytes() + bytes(firmware.OPERATION_SIZE - record.itemsize)
        surface = np.zeros((), out.abi.surfaces[op.engine])
        for name in CUBES[op.engine]:
            _cube(out, surface[name], op.cubes.get(name))
        surfaces.append(surface)
    return listed, surfaces, luts


def _cube(out: _Emitter, record: np.ndarray, cube: object) -> None:
    record["type"], record["address"] = 2, -1
    if isinstance(cube, tuple):
        record["channel"], record["height"], record["width"] = c, h, w = cube[1]
        atom = out.lowered.config.atom  # firmware checks the strides of what a convolution passes on
        record["line_stride"], record["surf_stride"] = w * atom, h * w * atom
        record["size"] = -(-c // out.lowered.config.lanes(out.lowered.precision)) * h * w * atom
        return
    if cube is None:
        return
    index, offset = out.address(out.place_of(cube))
    record["type"], record["address"] = 0, index
    if out.new:
        record["offset"] = offset
    if isinstance(cube, Constants):
        record["size"] = len(cube.data)
        for name, value in zip(("width", "height", "channel", "line_stride", "surf_stride"), cube.cube):
            record[name] = value
        return
    assert isinstance(cube, Region)
    record["size"] = cube.size
    record["channel"], record["height"], record["width"] = cube.shape
    record["line_stride"], record["surf_stride"] = cube.buffer.line, cube.buffer.surface


def _dla_task(out: _Emitter, ops: list[HwOp], listed: bytearray, surfaces: list[np.ndarray], luts: list[bytes]) -> None:
    commons, heads = dependency_graph(out.lowered.layers)
    first = len(out.memories)
    shift = first + 5 + bool(luts) + (4 if out.lowered.emulated else 0)  # where addresses of places begin
    packed = bytearray()
    for op, surface in zip(ops, surfaces):
        if not out.new:
            for name in CUBES[op.engine]:
                if surface[name]["address"] >= 0:
                    surface[name]["address"] += shift
        packed += surface.tobytes() + bytes(firmware.SURFACE_SIZE - surface.itemsize)
    network = np.zeros((), firmware.NETWORK)
    values = {"dependency_graph_index": first + 1, "operation_desc_index": first + 2, "surface_desc_index": first + 3,
              "lut_data_index": first + 4 if luts else -1, "roi_array_index": -1, "surface_index": -1,
              "stat_list_index": -1, "op_head": heads, "num_rois": 1, "num_operations": len(ops),
              "num_luts": len(luts), "num_addresses": shift + len(out.places)}
    for name, value in values.items():
        network[name] = value
    head = out.described("task-0-addr0", network.tobytes(), 1)
    out.described("task-0-dep_graph", commons.tobytes(), 1)
    out.described("task-0-op_list", bytes(listed), 1)
    out.described("task-0-surf_list", bytes(packed), 1)
    if luts:
        out.described("task-0-lut_list", b"".join(luts), 1)
    out.memory(_ALLOC, PAGE)
    out.tasks.append(Task(0, 1, -1, [head], [], [0]))


def _emu_task(out: _Emitter, layers: list[EmuLayer]) -> None:
    abi = out.abi
    first = len(out.memories)
    ops, buffers = bytearray(), bytearray()
    for layer in layers:
        record = np.zeros((), abi.emu_softmax)
        record["op_type"], record["axis"] = 1, 1
        if out.new:
            record["input_scale_factor"], record["output_scale_factor"] = layer.source_scale, layer.scale
        ops += record.tobytes() + bytes(abi.emu_stride - record.itemsize)
        for region in (layer.source, layer.result):
            one = np.zeros((), abi.emu_buffer)
            memory, offset = out.place_of(region)
            if out.new:
                one["address"], one["offset"] = memory, offset
            else:
                one["address"] = first + 4 + out.places.setdefault((memory, offset), len(out.places))
            integer = region.buffer.precision == INT8
            one["format"] = (1 if region.buffer.atom == 8 else 0) if integer else (3 if out.new else 2)
            one["size"], one["line_stride"], one["surf_stride"] = region.size, region.buffer.line, region.buffer.surface
            one["channel"], one["height"], one["width"] = region.shape
            buffers += one.tobytes() + bytes(firmware.EMU_SLOT - one.itemsize)
    network = np.array([first + 1, first + 2, len(layers)], "<i2").tobytes()
    head = out.described("task-1-addr0", network + bytes(firmware.EMU_SLOT - 6), 2)
    out.described("task-1-op_list", bytes(ops), 2)
    out.described("task-1-op_buf_list", bytes(buffers), 2)
    out.memory(_ALLOC, PAGE)
    out.tasks.append(Task(1, 2, -1, [head], [0], [1]))
