"""Executes a whole loadable: inputs bound, tasks in the order of submission, outputs read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla import firmware
from n2d2py_nvdla.config import HardwareConfig, config_of
from n2d2py_nvdla.model.cdp import cdp
from n2d2py_nvdla.model.conv import convolve
from n2d2py_nvdla.model.emu import emulate
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.model.moves import bdma, rubik
from n2d2py_nvdla.model.pdp import pdp
from n2d2py_nvdla.model.scheduler import Scheduler
from n2d2py_nvdla.model.sdp import sdp
from n2d2py_nvdla.program import DlaTask, EmuTask, Operation, Program
from n2d2py_nvdla.tables import FLAG_SET


@dataclass
class Run:
    """Results of a run: the bytes of each output by bind id, and results by (task, operation) when traced."""

    outputs: list[np.ndarray]
    trace: dict[tuple[int, int], np.ndarray] = field(default_factory=dict)


def run_program(
    program: Program,
    inputs: list[np.ndarray],
    config: HardwareConfig | None = None,
    exact: bool = False,
    trace: bool = False,
    cache: dict | None = None,
) -> Run:
    """Run a loadable on `inputs`: the bytes (uint8) of each bindable input, in the hardware's layout.

    Inputs that are left out are zero, as in NVIDIA's runtime. `exact` follows the fp16 multipliers bit by bit. `cache`,
    a dictionary kept between runs of one program, saves weights in the order of the computation.

    Raises:
        N2D2Error: E903 for what the model cannot run, E904 for a deadlock, E905 for inputs of another size, E906
            for an access outside of a memory.
    """
    constant = {m.id for m in program.loadable.memory_list if m.flags == 3}
    filled = {m.id for m in program.loadable.memory_list if m.flags & FLAG_SET}
    memories = {
        number: data if number in constant else data.copy() if number in filled else np.zeros(len(data), np.uint8)
        for number, data in program.memories.items()
    }
    bindable = program.inputs
    if len(inputs) > len(bindable):
        raise N2D2Error(
            "E905",
            f"{len(inputs)} inputs are given, the loadable has {len(bindable)}",
            where=program.name,
            remedy="leave out the others",
        )
    for (memory, tensor), data in zip(bindable, inputs, strict=False):  # inputs that are left out are zero
        if len(data) > len(memories[memory]):
            raise N2D2Error(
                "E905",
                f"the input {tensor.name if tensor else memory} holds {len(memories[memory])} bytes, {len(data)} are given",
                where=program.name,
                remedy="give the tensor's bytes",
            )
        memories[memory][: len(data)] = data
    machine = Machine(
        program.name,
        config or config_of(program),
        memories,
        exact,
        {} if trace else None,
        {} if cache is None else cache,
        constant,
    )
    for task in program.tasks:
        try:
            _task(machine, program, task)
        except N2D2Error as problem:
            if problem.where:
                raise
            raise N2D2Error(problem.code, problem.what, where=program.name, remedy=problem.remedy) from None
    return Run([memories[memory] for memory, _ in program.outputs], machine.trace or {})


def _task(machine: Machine, program: Program, task: DlaTask | EmuTask) -> None:
    if isinstance(task, EmuTask):
        emulate(machine, task, program.abi.name == "v12")
        return

    def execute(chain: list[Operation]) -> None:
        result = None
        for operation in chain:
            result = _run(machine, task, operation, result)

    Scheduler(task, program.name, execute).run()


def _run(machine: Machine, task: DlaTask, operation: Operation, source: np.ndarray | None) -> np.ndarray | None:
    engine = operation.engine
    if engine == firmware.CONV:
        sums = convolve(machine, task, operation)
        empty = -len(sums) % machine.config.atom
        return np.concatenate([sums, np.zeros((empty, *sums.shape[1:]), sums.dtype)]) if empty else sums
    if engine == firmware.BDMA:
        return bdma(machine, task, operation)
    if engine == firmware.RUBIK:
        return rubik(machine, task, operation)
    result = (
        {firmware.SDP: sdp, firmware.PDP: pdp}[engine](machine, task, operation, source)
        if engine != firmware.CDP
        else cdp(machine, task, operation)
    )
    if int(operation.surface["dst_data"]["type"]) != 2:
        machine.write_cube(task, operation, "dst_data", result)
    return result


def half_products(program: Program) -> int:
    """Return the number of products of the fp16 convolutions, which decides how long an exact run takes."""
    total = 0
    for _, operation in program.dla_operations():
        if operation.engine == firmware.CONV and int(operation.op["out_precision"]) == firmware.FP16:
            dst = operation.surface["dst_data"]
            total += int(operation.op["bytes_per_kernel"]) // 2 * int(dst["width"]) * int(dst["height"]) * int(dst["channel"])
    return total
