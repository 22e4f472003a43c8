"""Violations that hardware, firmware or NVIDIA's runtime would refuse, recomputed from the file alone.

A functional model cannot see wrong buffer sizes or missing dependencies; this can. Every violation is one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py_nvdla import firmware
from n2d2py_nvdla.config import HardwareConfig
from n2d2py_nvdla.firmware import BDMA, CDP, CONV, CUBES, FP16, RUBIK, SDP
from n2d2py_nvdla.hazards import hazards
from n2d2py_nvdla.model.cbuf import ConvolutionBuffer
from n2d2py_nvdla.model.cbuf_use import buffer_use
from n2d2py_nvdla.model.scheduler import Scheduler
from n2d2py_nvdla.operation_checks import operation_violations
from n2d2py_nvdla.program import DlaTask, EmuTask, Operation, Program

MOST_ADDRESSES = 6144
SRAM = 1
_LARGEST = 8192


def violations(program: Program, config: HardwareConfig) -> list[str]:
    """Everything that is wrong, in the order of the file; empty for a valid loadable."""
    found = list(_runtime(program))
    order: list[Operation] = []
    for task in program.tasks:
        if isinstance(task, EmuTask):
            found += _emulated(program, task)
            continue
        found += _task(task)
        for operation in task.operations:
            found += [f"{operation.name}: {text}" for text in _engine(operation, config)]
            found += [f"{operation.name}: {text}" for text in _cubes(program, task, operation, config)]
            found += [f"{operation.name}: {text}" for text in operation_violations(task, operation, config)]
        graph = list(_graph(task))
        found += graph
        if not graph:
            found += _schedule(program, task, order) or hazards(program, task)
    return found if found else _buffer(order, config)[0]


def notes(program: Program, config: HardwareConfig) -> list[str]:
    """Return the parts that are right once and wrong in the next inference, of a loadable without violations."""
    order: list[Operation] = []
    for task in program.tasks:
        if isinstance(task, DlaTask):
            _schedule(program, task, order)
    return _buffer(order, config)[1]


def check_program(program: Program, config: HardwareConfig) -> None:
    """Raise E908 with every violation, one line each."""
    ErrorList.raise_if(
        [
            N2D2Error("E908", text, where=program.name, remedy="compile it again; hardware would fail")
            for text in violations(program, config)
        ]
    )


def _runtime(program: Program) -> Iterator[str]:
    """Yield the violations of the tables that NVIDIA's runtime needs."""
    loadable = program.loadable
    if not loadable.submit_list:
        yield "the submit list is empty, so that the runtime refuses the file"
    for what, flag in (("input", 4), ("output", 8)):
        binds = sorted(memory.bind_id for memory in loadable.memory_list if memory.flags & flag)
        if binds != list(range(len(binds))):
            yield f"the bind ids of the {what}s are {binds}, not 0 to {len(binds) - 1}"
    known = {memory.id: memory for memory in loadable.memory_list}
    for memory in loadable.memory_list:
        if memory.domain == SRAM:
            yield f"memory {memory.id} is in SRAM, which NVIDIA's runtime does not allocate"
        if memory.alignment and memory.alignment % 32:
            yield f"memory {memory.id} is aligned to {memory.alignment} bytes, not to a multiple of 32"
    for tensor in loadable.tensor_desc_list:
        if tensor.mem_id not in known or tensor.offset + tensor.size > known[tensor.mem_id].size:
            yield f"the tensor {tensor.name} does not fit into memory {tensor.mem_id}"
    for task in loadable.task_list:
        if len(task.address_list) > MOST_ADDRESSES:
            yield f"task {task.id} has {len(task.address_list)} addresses; the runtime takes {MOST_ADDRESSES}"
    if any(task.interface == 1 for task in loadable.task_list) and program.tasks:
        names = [blob.name for blob in loadable.blobs]
        compiled = any(name.startswith("task-") for name in names)
        if compiled and not any("dep_graph" in name for name in names):
            yield "no blob is called dep_graph: a second inference would find used up counters"


def _emulated(program: Program, task: EmuTask) -> Iterator[str]:
    """Yield the buffers of the emulator's operations against their memories."""
    for operation in task.operations:
        what = f"EMU task {task.number} op {operation.number}"
        if operation.extension is None and operation.kind > 1:
            yield f"{what}: NVIDIA's runtime has no operation {operation.kind}"
        for side, buffers in (("source", operation.sources), ("destination", operation.destinations)):
            for buffer in buffers:
                index = int(buffer["address"])
                if not 0 <= index < len(task.addresses):
                    yield f"{what}: its {side} has address index {index} of {len(task.addresses)}"
                    continue
                memory, start, _ = task.addresses[index]
                start += int(buffer["offset"]) if firmware.has_field(buffer, "offset") else 0
                end, size = start + int(buffer["size"]), len(program.memories[memory])
                if end > size:
                    yield f"{what}: its {side} ends at byte {end} of a memory of {size}"
        if operation.extension is None and int(operation.source["format"]) != int(operation.destination["format"]):
            yield f"{what}: its formats {int(operation.source['format'])} and {int(operation.destination['format'])} differ"


def _task(task: DlaTask) -> Iterator[str]:
    network = task.network
    names = ("operation_desc_index", "surface_desc_index", "dependency_graph_index")
    memories = [task.addresses[int(network[name])][0] for name in names if 0 <= int(network[name]) < len(task.addresses)]
    if len(set(memories)) < len(memories):
        yield "two lists of descriptors share a memory; firmware reads both from its beginning"
    if int(network["num_addresses"]) > len(task.addresses):
        yield f"the network has {int(network['num_addresses'])} addresses, its task lists {len(task.addresses)}"
    if int(network["num_rois"]) != 1 or network["dynamic_roi"]:
        yield f"it has {int(network['num_rois'])} regions of interest"


def _engine(operation: Operation, config: HardwareConfig) -> Iterator[str]:
    if (operation.engine == BDMA and not config.has_bdma) or (operation.engine == RUBIK and not config.has_rubik):
        yield f"{config.name} has no such engine"
    for name in ("dst_precision", "in_precision", "out_precision", "precision", "src_precision"):
        if not firmware.has_field(operation.op, name):
            continue
        if int(operation.op[name]) not in config.precisions:
            yield f"{name} is {int(operation.op[name])}, which {config.name} does not compute in"


def _cubes(program: Program, task: DlaTask, operation: Operation, config: HardwareConfig) -> Iterator[str]:
    """Yield the bounds, alignment and sizes of the data cubes in memory."""
    if operation.engine == BDMA:
        return
    for name in CUBES[operation.engine]:
        cube = operation.surface[name]
        kind, address = int(cube["type"]), int(cube["address"])
        if not _used(operation, name) or kind == 2:
            continue
        if kind == SRAM:
            yield f"{name} is in SRAM, which NVIDIA's runtime does not allocate"
            continue
        if not 0 <= address < len(task.addresses):
            yield f"{name} has address index {address} of {len(task.addresses)}"
            continue
        memory, start, _ = task.addresses[address]
        base = start + (int(cube["offset"]) if "offset" in cube.dtype.names else 0)
        size = len(program.memories[memory])
        step = 32 if name == "weight_data" else config.alignment
        if base % step:
            yield f"{name} begins at byte {base} of its memory, which is not a multiple of {step}"
        if name in ("src_data", "dst_data") and not _image(operation, name):
            yield from _feature(operation, name, cube, base, size, config)
        elif base + int(cube["size"]) > size:
            yield f"{name} ends at byte {base + int(cube['size'])} of a memory of {size}"


def _feature(operation: Operation, name: str, cube: np.void, base: int, size: int, config: HardwareConfig) -> Iterator[str]:
    w, h, c = (int(cube[axis]) for axis in ("width", "height", "channel"))
    line, surface = int(cube["line_stride"]), int(cube["surf_stride"])
    if not (0 < w <= _LARGEST and 0 < h <= _LARGEST and 0 < c <= _LARGEST):
        yield f"{name} is {w}x{h}x{c}; each must be from 1 to {_LARGEST}"
        return
    atom = config.atom
    planar = operation.engine == RUBIK and int(operation.op["mode"]) == (1 if name == "dst_data" else 2)
    if planar:
        return
    for what, stride in (("line", line), ("surface", surface)):
        if stride % config.alignment:
            yield f"the {what} stride of {name} is {stride}, not a multiple of {config.alignment}"
    surfaces = -(-c // config.lanes(_precision(operation, name)))
    if line < w * atom and h > 1:
        yield f"the line stride of {name} is {line}; a line of {w} pixels takes {w * atom} bytes"
    if surfaces > 1 and surface < (h - 1) * line + w * atom:
        yield f"the surface stride of {name} is {surface}; {h} lines take {(h - 1) * line + w * atom} bytes"
    if w == h == 1 and line != atom and not (operation.engine == CONV and name == "src_data"):
        yield f"{name} is 1x1 with a line stride of {line}; firmware wants {atom}"
    last = base + (surfaces - 1) * surface + (h - 1) * line + w * atom
    if last > size:
        yield f"{name} ends at byte {last} of a memory of {size}"


def _precision(operation: Operation, name: str) -> int:
    fields = {
        CONV: ("in_precision", "out_precision"),
        SDP: ("src_precision", "dst_precision"),
        CDP: ("in_precision", "out_precision"),
    }.get(operation.engine, ("precision", "precision"))
    return min(int(operation.op[fields[name == "dst_data"]]), FP16)


def _image(operation: Operation, name: str) -> bool:
    return operation.engine == CONV and name == "src_data" and int(operation.op["data_format"]) < 36


def _used(operation: Operation, name: str) -> bool:
    """True if the engine looks at a cube at all."""
    if operation.engine == CONV:
        return (
            name in ("src_data", "weight_data")
            or (name == "dst_data" and int(operation.surface[name]["type"]) == 2)
            or (name != "dst_data" and int(operation.op["weight_format"]) == 1)
        )
    if operation.engine == SDP and name in ("x1_data", "x2_data", "y_data"):
        op = operation.op[name.replace("_data", "_op")]
        return bool(op["enable"] and op["type"] and op["mode"])
    return True


def _graph(task: DlaTask) -> Iterator[str]:
    """Yield the heads, chains, counters and fused pairs."""
    count = len(task.operations)
    counters = [0] * count
    for engine, head in enumerate(task.network["op_head"]):
        mine = [one.number for one in task.operations if one.engine == engine]
        chain, at = [], int(head)
        while 0 <= at < count and at not in chain and task.operations[at].engine == engine:
            chain.append(at)
            at = int(task.operations[at].common["consumers"][engine]["index"])
        if sorted(chain) != mine:
            missing = [number for number in mine if number not in chain]
            yield (
                f"the chain of {firmware.ENGINES[engine]} from its head leaves out operation "
                f"{missing[0] if missing else int(head)}"
            )
    for operation in task.operations:
        for engine, index, event in operation.consumers():
            if index >= count or task.operations[index].engine != engine:
                yield f"{operation.name}: its consumer on {firmware.ENGINES[engine]} is operation {index}, which is none"
            else:
                counters[index] += 1
            if event not in (1, 2, 3):
                yield f"{operation.name}: event {event} does not happen"
        parent = int(operation.common["fused_parent"]["index"])
        if parent >= 0:
            if parent >= count or task.operations[parent].engine != operation.engine - 1:
                yield f"{operation.name}: its fused parent is operation {parent}, not one of the engine before"
            else:
                counters[parent] += 1
    for operation, counted in zip(task.operations, counters, strict=True):
        if int(operation.common["dependency_count"]) != counted:
            yield (
                f"{operation.name}: its dependency count is {int(operation.common['dependency_count'])}, but {counted} "
                "links release it"
            )


def _schedule(program: Program, task: DlaTask, order: list[Operation]) -> list[str]:
    """Return a deadlock, found by re-enacting the firmware; appends the operations in the order of their completion."""
    try:
        Scheduler(task, program.name, order.extend).run()
    except N2D2Error as problem:
        return [problem.what]
    return []


def _buffer(order: list[Operation], config: HardwareConfig) -> tuple[list[str], list[str]]:
    """Return the conflicts in the convolution buffer between consecutive convolutions, and the rest at the end."""
    buffer = ConvolutionBuffer(config)
    found, held, culprit = [], 0, ""
    for operation in order:
        if operation.engine != CONV or _unmodelled(operation):
            continue
        use = buffer_use(config, operation)
        if culprit:
            found.append(f"{culprit}, and {use.name} takes them for its own")
        try:
            reading = buffer.run(use)
        except N2D2Error as problem:
            return [*found, problem.what], []
        if reading.data_shift:
            found.append(f"{use.name} reads its data {reading.data_shift} entries before where they are loaded")
        if reading.weight_shift and not held:
            found.append(f"{use.name} reads its weights {reading.weight_shift} entries before where they are loaded")
        more, held = buffer.held - held, buffer.held
        culprit = (
            f"{use.name} loads {use.weight_bytes} bytes of weights and reads {use.kernels * use.kernel_bytes}; "
            f"{more} entries stay in the convolution buffer"
            if more
            else ""
        )
    return found, [f"{culprit}, so that a second inference begins with them"] if culprit else []


def _unmodelled(operation: Operation) -> bool:
    op = operation.op
    return bool(op["conv_mode"] or op["weight_format"] or op["batch"] != 1)
