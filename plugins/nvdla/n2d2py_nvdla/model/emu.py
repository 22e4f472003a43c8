"""The emulator: operations that NVIDIA's runtime computes on the CPU."""

from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import BYTES, FP16, INT8, has_field
from n2d2py_nvdla.model.extended import run_extension, stored
from n2d2py_nvdla.model.formats import DTYPES, as_array, as_bytes, strided, write_feature
from n2d2py_nvdla.model.machine import Machine
from n2d2py_nvdla.program import EmuOperation, EmuTask

POWER, SOFTMAX = 0, 1
FORMATS = {0: (INT8, 32), 1: (INT8, 8), 3: (FP16, 32)}
"""Precision and atom by format number; older files use other numbers, all for fp16."""


def emulate(machine: Machine, task: EmuTask, new: bool) -> None:
    """Run the operations of a task; `new` says that the structures are those of firmware 0.12."""
    for operation in task.operations:
        what = f"EMU task {task.number} op {operation.number}"
        if operation.extension is not None:
            _extended(machine, task, operation, new, what)
            continue
        if operation.kind not in (POWER, SOFTMAX):
            raise N2D2Error(
                "E903",
                f"{what}: operation {operation.kind} is unknown to NVIDIA's emulator",
                where=machine.name,
                remedy="use POWER and SOFTMAX",
            )
        code = int(operation.source["format"])
        if new and (code not in FORMATS or int(operation.destination["format"]) != code):
            raise N2D2Error(
                "E903",
                f"{what}: formats {code} to {int(operation.destination['format'])} are not supported",
                where=machine.name,
                remedy="compile it again",
            )
        precision, atom = FORMATS[code] if new else (FP16, 32)
        if operation.kind == POWER:
            y = _power(_array(machine, task, operation.source, precision, atom, what), operation, precision)
            _store(machine, task, operation.destination, y, atom, what)
        else:
            channels = int(operation.source["channel"])
            x = _vector(machine, task, operation.source, channels, precision, what).copy()
            y = _softmax(x, operation, precision)
            _vector(machine, task, operation.destination, channels, precision, what, True)[:] = y
            y = y.reshape(channels, 1, 1)
        if machine.trace is not None:
            machine.trace[task.number, operation.number] = y


def _extended(machine: Machine, task: EmuTask, operation: EmuOperation, new: bool, what: str) -> None:
    """Run an extension operation: stored values in, stored values out."""
    extension = operation.extension
    assert extension is not None
    arrays = []
    for buffer, port in zip(operation.sources, extension.inputs, strict=True):
        precision, atom = _format(machine, buffer, new, what)
        x = _array(machine, task, buffer, precision, atom, what)
        if x.size != np.prod(port.shape, dtype=object):
            raise N2D2Error(
                "E906",
                f"{what}: a buffer of {x.size} elements for a tensor of shape {list(port.shape)}",
                where=machine.name,
                remedy="compile it again",
            )
        arrays.append(x)
    results = run_extension(extension, arrays, machine.name)
    for buffer, result in zip(operation.destinations, results, strict=True):
        precision, atom = _format(machine, buffer, new, what)
        shape = (int(buffer["channel"]), int(buffer["height"]), int(buffer["width"]))
        if result.size != np.prod(shape, dtype=object):
            raise N2D2Error(
                "E906",
                f"{what}: a result of {result.size} elements for a buffer of {shape}",
                where=machine.name,
                remedy="compile it again",
            )
        values = stored(result.reshape(shape), precision)
        _store_atoms(machine, task, buffer, values, atom, what)
        if machine.trace is not None and buffer is operation.destinations[0]:
            machine.trace[task.number, operation.number] = values


def _format(machine: Machine, buffer: np.void, new: bool, what: str) -> tuple[int, int]:
    """Precision and bytes of an atom of an extension's buffer; with the older structures 0 and 1 are int8 too, 2 is fp16."""
    code = int(buffer["format"])
    formats = FORMATS if new else {0: (INT8, 32), 1: (INT8, 8), 2: (FP16, 32)}
    if code not in formats:
        raise N2D2Error("E903", f"{what}: format {code} is not supported", where=machine.name, remedy="compile it again")
    precision, atom = formats[code]
    return precision, machine.config.atom if precision == INT8 else atom


def _store_atoms(machine: Machine, task: EmuTask, buffer: np.void, values: np.ndarray, atom: int, what: str) -> None:
    """Store whole atoms: what fills the last one is 0, as convolutions leave it."""
    lanes = atom // values.dtype.itemsize
    padded = np.zeros((-(-len(values) // lanes) * lanes, *values.shape[1:]), values.dtype)
    padded[: len(values)] = values
    write_feature(
        _place(machine, task, buffer, what, True), 0, padded, int(buffer["line_stride"]), int(buffer["surf_stride"]), atom, what
    )


def _place(machine: Machine, task: EmuTask, buffer: np.void, what: str, write: bool = False) -> np.ndarray:
    offset = int(buffer["offset"]) if has_field(buffer, "offset") else 0
    memory, base = machine.at(task.addresses, int(buffer["address"]), offset, what, write)
    return memory[base:]


def _vector(
    machine: Machine, task: EmuTask, buffer: np.void, count: int, precision: int, what: str, write: bool = False
) -> np.ndarray:
    """Return the first `count` elements of a buffer, side by side whatever its strides: what the softmax reads and writes."""
    data = _place(machine, task, buffer, what, write)
    return strided(data, 0, (1, count * BYTES[precision]), (0, 1), what)[0].view(DTYPES[precision])


def _array(machine: Machine, task: EmuTask, buffer: np.void, precision: int, atom: int, what: str) -> np.ndarray:
    shape = (int(buffer["channel"]), int(buffer["height"]), int(buffer["width"]))
    return as_array(
        _place(machine, task, buffer, what),
        shape,
        int(buffer["line_stride"]),
        int(buffer["surf_stride"]),
        precision,
        atom,
        what,
    )


def _store(machine: Machine, task: EmuTask, buffer: np.void, values: np.ndarray, atom: int, what: str) -> None:
    data = _place(machine, task, buffer, what, True)
    line, surface = int(buffer["line_stride"]), int(buffer["surf_stride"])
    c, h, w = values.shape
    lanes = atom // values.dtype.itemsize
    size = (-(-c // lanes) - 1) * surface + (h - 1) * line + w * atom
    whole = as_bytes(values, size, line, surface, atom, what)
    written = (
        as_bytes(np.full(values.shape, -1, np.int8 if values.itemsize == 1 else np.int16), size, line, surface, atom, what) != 0
    )
    data[:size][written[: len(data)]] = whole[: len(data)][written[: len(data)]]


def _power(x: np.ndarray, operation: EmuOperation, precision: int) -> np.ndarray:
    op = operation.op
    scale = np.float32(op["input_scale_factor"]) if precision == INT8 else np.float32(1)
    value = np.float32(op["shift"]) + np.float32(op["scale"]) * (x.astype(np.float32) * scale)
    with np.errstate(all="ignore"):
        y = np.power(value, np.float32(op["power"])).astype(np.float32)
        if precision == INT8:
            return np.clip(np.trunc(y / np.float32(op["output_scale_factor"])), -128, 127).astype(np.int8)
        return y.astype(np.float16)


def _softmax(x: np.ndarray, operation: EmuOperation, precision: int) -> np.ndarray:
    """Of a vector; sums run from left to right in float32."""
    op = operation.op
    values = x.astype(np.float32)
    if precision == INT8:
        values = (values * np.float32(op["input_scale_factor"])).astype(np.float16).astype(np.float32)
    exponentials = np.exp(values - values.max()).astype(np.float32)
    total = np.add.accumulate(exponentials, dtype=np.float32)[-1]
    y = (exponentials / total).astype(np.float16)
    if precision == INT8:
        real = y.astype(np.float32) / np.float32(op["output_scale_factor"])
        y = np.clip(np.trunc(real), -128, 127).astype(np.int8)
    return y
