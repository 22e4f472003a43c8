"""From the tables of a loadable to memories and tasks; which ABI its descriptors have."""

from __future__ import annotations

from typing import Any

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import firmware
from n2d2py_nvdla.extension import unpack_extension
from n2d2py_nvdla.firmware import ABIS, BDMA, EXTENSION, Abi
from n2d2py_nvdla.tables import DLA, EMU, FLAG_ALLOC, FLAG_INPUT, FLAG_OUTPUT, FLAG_SET, Loadable
from n2d2py_nvdla.tasks import DlaTask, EmuOperation, EmuTask, Operation

LARGEST_MEMORY = 1 << 31
"""Bytes; a memory beyond it is taken for a damaged file."""


def damaged(name: str, what: str) -> N2D2Error:
    return N2D2Error("E901", f"a damaged loadable: {what}", where=name, remedy="compile or copy it again")


def memories_of(loadable: Loadable, name: str) -> dict[int, np.ndarray]:
    blobs = {blob.name: blob for blob in loadable.blobs}
    made: dict[int, np.ndarray] = {}
    total = 0
    for memory in loadable.memory_list:
        total += memory.size
        if total > LARGEST_MEMORY:
            raise damaged(name, f"its memories take {total} bytes")
        if memory.id in made:
            raise damaged(name, f"memory {memory.id} is there twice")
        if memory.flags and not memory.flags & (FLAG_ALLOC | FLAG_INPUT | FLAG_OUTPUT):
            continue
        data = np.zeros(memory.size, np.uint8)
        if memory.flags & FLAG_SET:
            if len(memory.offsets) != len(memory.contents):
                raise damaged(name, f"memory {memory.id} has {len(memory.contents)} contents and {len(memory.offsets)} offsets")
            for content, offset in zip(memory.contents, memory.offsets, strict=True):
                if content not in blobs:
                    raise damaged(name, f"memory {memory.id} is filled with '{content}', which is not a blob")
                bytes_ = np.frombuffer(blobs[content].data, np.uint8)
                if offset + len(bytes_) > len(data):
                    raise damaged(name, f"blob '{content}' does not fit into memory {memory.id} at {offset}")
                data[offset : offset + len(bytes_)] = bytes_
        made[memory.id] = data
    return made


def submitted(loadable: Loadable, name: str) -> list[int]:
    """Return the positions in the task list in the order of submission."""
    position = {task.id: number for number, task in enumerate(loadable.task_list)}
    order = []
    for submit in sorted(loadable.submit_list, key=lambda one: one.id):
        for task in submit.task_id:
            if task not in position:
                raise damaged(name, f"submit {submit.id} names task {task}, which does not exist")
            if position[task] not in order:
                order.append(position[task])
    return order if loadable.submit_list else list(range(len(loadable.task_list)))


class Decoder:
    """Decodes one task of the task list."""

    def __init__(self, loadable: Loadable, name: str, abi: Abi, memories: dict[int, np.ndarray], number: int):
        self._loadable, self._name, self._abi, self._memories = loadable, name, abi, memories
        self._number = number
        self._task = loadable.task_list[number]
        self._what = f"task {self._task.id}"
        self._addresses = tuple(self._address(one) for one in self._task.address_list)

    def _fail(self, what: str) -> N2D2Error:
        return damaged(self._name, f"{self._what}: {what}")

    def _address(self, number: int) -> tuple[int, int, int]:
        entries = {entry.id: entry for entry in self._loadable.address_list}
        if number not in entries:
            raise self._fail(f"its address list names address {number}, which does not exist")
        entry = entries[number]
        if entry.mem_id not in self._memories:
            raise self._fail(f"address {number} names memory {entry.mem_id}, which does not exist")
        if entry.offset > len(self._memories[entry.mem_id]):
            raise self._fail(f"address {number} lies outside of memory {entry.mem_id}")
        return entry.mem_id, entry.offset, entry.size

    def _records(self, index: int, stride: int, count: int, what: str) -> np.ndarray:
        """`count` rows of `stride` bytes from the memory that address index `index` names."""
        if not 0 <= index < len(self._addresses):
            raise self._fail(f"the {what} has address index {index}, outside of the address list")
        data = self._memories[self._addresses[index][0]]
        if count * stride > len(data):
            raise self._fail(f"the {what} needs {count * stride} bytes, its memory has {len(data)}")
        return data[: count * stride].reshape(count, stride).copy()

    def _one(self, row: np.ndarray, dtype: np.dtype) -> np.void:
        return row[: dtype.itemsize].view(dtype)[0]

    def task(self) -> DlaTask | EmuTask:
        """Return the task with everything that it names.

        Raises:
            N2D2Error: E901 for descriptors that lie outside of their memory, or name what does not exist.
        """
        if not self._addresses:
            raise self._fail("its address list is empty")
        if self._task.interface == EMU:
            return self._emulator()
        if self._task.interface != DLA:
            raise self._fail(f"its interface is {self._task.interface}, neither the accelerator (1) nor the CPU (2)")
        network = self._one(self._records(0, firmware.NETWORK.itemsize, 1, "network descriptor")[0], firmware.NETWORK)
        count = int(network["num_operations"])
        if int(network["num_rois"]) > 1:
            raise self._fail(f"it has {int(network['num_rois'])} regions of interest; one is supported")
        commons = self._records(int(network["dependency_graph_index"]), firmware.COMMON.itemsize, count, "dependency graph")
        ops = self._records(int(network["operation_desc_index"]), firmware.OPERATION_SIZE, count, "operation list")
        surfaces = self._records(int(network["surface_desc_index"]), firmware.SURFACE_SIZE, count, "surface list")
        operations = []
        for i in range(count):
            common = self._one(commons[i], firmware.COMMON)
            engine = int(common["op_type"])
            if engine >= len(firmware.ENGINES):
                raise self._fail(f"operation {i} is of type {engine}, which no engine runs")
            operations.append(
                Operation(
                    i,
                    engine,
                    common,
                    self._one(ops[i], firmware.OPERATIONS[engine]),
                    self._one(surfaces[i], self._abi.surfaces[engine]),
                )
            )
        return DlaTask(self._number, self._addresses, network, tuple(operations), self._luts(network))

    def _luts(self, network: np.void) -> tuple[np.void, ...]:
        if not network["num_luts"]:
            return ()
        rows = self._records(int(network["lut_data_index"]), firmware.LUT.itemsize, int(network["num_luts"]), "LUT list")
        return tuple(self._one(row, firmware.LUT) for row in rows)

    def _emulator(self) -> EmuTask:
        abi = self._abi
        head = self._records(0, 6, 1, "network descriptor")[0].view("<i2")
        op_list, buffer_list, count = int(head[0]), int(head[1]), int(head[2])
        if count < 0:
            raise self._fail(f"it has {count} operations")
        ops = self._records(op_list, abi.emu_stride, count, "operation list")
        return EmuTask(self._number, self._addresses, tuple(self._emulated(i, row, buffer_list) for i, row in enumerate(ops)))

    def _emulated(self, number: int, row: np.ndarray, buffer_list: int) -> EmuOperation:
        """Return an operation of the emulator; the two buffers of NVIDIA's lie by its number, those of an extension where it
        says.
        """
        abi, kind = self._abi, int(row[0])
        if kind != EXTENSION:
            op = self._one(row, abi.emu_power if kind == 0 else abi.emu_softmax)
            source, destination = self._buffers(buffer_list, 2 * number, 2)
            return EmuOperation(number, kind, op, (source,), (destination,))
        op = self._one(row, abi.emu_extension)
        inputs, outputs = int(op["inputs"]), int(op["outputs"])
        buffers = self._buffers(buffer_list, int(op["first_buffer"]), inputs + outputs)
        index = int(op["description"])
        if not 0 <= index < len(self._addresses):
            raise self._fail(f"operation {number} has its description at address index {index}, outside of the address list")
        try:
            extension = unpack_extension(self._memories[self._addresses[index][0]].tobytes())
        except ValueError as problem:
            raise self._fail(f"the description of operation {number} is damaged: {problem}") from None
        if (len(extension.inputs), len(extension.outputs)) != (inputs, outputs) or not outputs:
            raise self._fail(
                f"operation {number} has {inputs} inputs and {outputs} outputs, its description "
                f"{len(extension.inputs)} and {len(extension.outputs)}"
            )
        return EmuOperation(number, kind, op, buffers[:inputs], buffers[inputs:], extension)

    def _buffers(self, index: int, first: int, count: int) -> tuple[np.void, ...]:
        rows = self._records(index, firmware.EMU_SLOT, first + count, "operation buffer list")
        return tuple(self._one(row, self._abi.emu_buffer) for row in rows[first:])


def detect_abi(loadable: Loadable, memories: dict[int, np.ndarray], name: str) -> str:
    """Return the ABI under which the fewest data cubes are nonsense; the version of the descriptor blobs breaks ties."""
    wrong: dict[str, int] = {}
    failed: list[N2D2Error] = []
    for abi in ("v12", "v10"):

        def decoded(interface: int, abi: str = abi) -> list[DlaTask | EmuTask]:
            return [
                Decoder(loadable, name, ABIS[abi], memories, number).task()
                for number in submitted(loadable, name)
                if loadable.task_list[number].interface == interface
            ]

        try:
            tasks = decoded(DLA)
            wrong[abi] = (
                sum(_nonsense(task, operation) for task in tasks if isinstance(task, DlaTask) for operation in task.operations)
                if tasks
                else sum(_emu_nonsense(task) for task in decoded(EMU) if isinstance(task, EmuTask))
            )
        except N2D2Error as problem:
            failed.append(problem)
    if not wrong:
        raise failed[0]
    if len(wrong) == 1 or wrong["v10"] != wrong["v12"]:
        return min(wrong, key=lambda abi: wrong[abi])
    versions = [blob.version for blob in loadable.blobs if blob.interface == DLA]
    return "v12" if any((0, 12, 0) <= version < (1, 0, 0) for version in versions) else "v10"


def _emu_nonsense(task: EmuTask) -> int:
    return sum(
        not (0 <= int(buffer["address"]) < len(task.addresses) and int(buffer["channel"]) > 0 and int(buffer["format"]) < 64)
        for operation in task.operations
        for buffer in (*operation.sources, *operation.destinations)
    )


def _nonsense(task: DlaTask, operation: Operation) -> int:
    """Return the number of cubes of an operation that cannot be meant."""
    if operation.engine == BDMA:
        return 0
    count = 0
    for cube_name in firmware.CUBES[operation.engine]:
        cube: Any = operation.surface[cube_name]
        used = int(cube["address"]) >= 0 and int(cube["type"]) <= 1 and cube_name in ("src_data", "dst_data", "weight_data")
        count += int(cube["type"]) > 2 or int(cube["address"]) >= len(task.addresses)
        count += used and cube_name != "weight_data" and not (cube["width"] and cube["height"] and cube["channel"])
        count += used and int(cube["line_stride"]) % 8 != 0
        count += used and not 0 < int(cube["size"]) <= 1 << 30
    return count
