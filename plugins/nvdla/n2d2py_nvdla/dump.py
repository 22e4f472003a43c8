"""A loadable as plain values for JSON, and as text."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from n2d2py_nvdla import firmware
from n2d2py_nvdla.firmware import ENGINES, EVENTS, to_plain
from n2d2py_nvdla.program import DlaTask, EmuOperation, EmuTask, Operation, Program
from n2d2py_nvdla.tables import NAMES

_EMU_KINDS = {0: "POWER", 1: "SOFTMAX", 2: "LOG"}


def dump(program: Program) -> dict[str, Any]:
    """Everything in the file as plain values; the bytes of blobs are left out, only their number stands."""
    tables = {one.name: _plain(getattr(program.loadable, one.name)) for one in dataclasses.fields(program.loadable)}
    return {"abi": program.abi.name, **tables, "tasks": [_task(task) for task in program.tasks]}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {
            one.name: len(getattr(value, one.name)) if one.metadata["kind"] == "bytes" else _plain(getattr(value, one.name))
            for one in dataclasses.fields(value)
        }
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _task(task: DlaTask | EmuTask) -> dict[str, Any]:
    addresses = [{"memory": m, "offset": o, "size": s} for m, o, s in task.addresses]
    if isinstance(task, EmuTask):
        return {
            "task": task.number,
            "interface": "EMU1",
            "addresses": addresses,
            "operations": [_emulated(one) for one in task.operations],
        }
    return {
        "task": task.number,
        "interface": "DLA1",
        "addresses": addresses,
        "network": to_plain(task.network),
        "operations": [_operation(one) for one in task.operations],
        "luts": [to_plain(lut) for lut in task.luts],
    }


def _emulated(one: EmuOperation) -> dict[str, Any]:
    if one.extension is None:
        return {
            "operation": one.number,
            "type": _EMU_KINDS.get(one.kind, str(one.kind)),
            "op": to_plain(one.op),
            "source": to_plain(one.source),
            "destination": to_plain(one.destination),
        }
    extension = dataclasses.asdict(one.extension)
    extension["constants"] = {
        role: f"{array.dtype.name} {'x'.join(map(str, array.shape))}" for role, array in one.extension.constants.items()
    }
    return {
        "operation": one.number,
        "type": f"EXTENSION {one.extension.operator}",
        "op": to_plain(one.op),
        "extension": extension,
        **{f"source{i}": to_plain(buffer) for i, buffer in enumerate(one.sources)},
        **{f"destination{i}": to_plain(buffer) for i, buffer in enumerate(one.destinations)},
    }


def _operation(one: Operation) -> dict[str, Any]:
    surface = to_plain(one.surface)
    if one.engine == firmware.BDMA:
        surface["transfers"] = surface["transfers"][: surface["num_transfers"]]
    return {
        "operation": one.number,
        "engine": ENGINES[one.engine],
        "common": to_plain(one.common),
        "op": to_plain(one.op),
        "surface": surface,
    }


def dump_text(program: Program) -> str:
    """Return the same for reading: tables as rows, descriptors as indented fields, then the dependency graph."""
    loadable = program.loadable
    lines = [f"loadable {'.'.join(map(str, loadable.version))}, firmware ABI {program.abi.name}"]
    for one in dataclasses.fields(loadable)[1:]:
        rows = getattr(loadable, one.name)
        lines += ["", f"{one.name} ({len(rows)})"]
        lines += ["  " + "  ".join(_cells(row)) for row in rows]
    for task in program.tasks:
        lines += ["", f"task {task.number} ({'EMU1' if isinstance(task, EmuTask) else 'DLA1'})", "  address list"]
        lines += [f"    {i}: memory {m} + {o}, {s} bytes" for i, (m, o, s) in enumerate(task.addresses)]
        plain = _task(task)
        if isinstance(task, DlaTask):
            lines += ["  network", *_indented(plain["network"], 4)]
        for one in plain["operations"]:
            lines += [f"  operation {one['operation']} ({one.get('engine') or one['type']})"]
            for part in [part for part in one if part not in ("operation", "engine", "type")]:
                lines += [f"    {part}", *_indented(one[part], 6)]
        for number, lut in enumerate(plain.get("luts", [])):
            lines += [f"  lut {number}", *_indented(lut, 4)]
        if isinstance(task, DlaTask):
            lines += ["  dependency graph", *_graph(task)]
    return "\n".join(lines) + "\n"


def _cells(row: Any) -> list[str]:
    cells = []
    for one in dataclasses.fields(row):
        value = getattr(row, one.name)
        if one.metadata["kind"] == "bytes":
            value = f"{len(value)} bytes"
        elif one.metadata["kind"] == "version":
            value = ".".join(map(str, value))
        elif one.name in NAMES and value in NAMES[one.name]:
            value = NAMES[one.name][value]
        if one.name.startswith("stride_") and not value:
            continue
        cells.append(f"{one.name}={value}")
    return cells


def _indented(value: dict[str, Any], depth: int) -> list[str]:
    lines = []
    for name, one in value.items():
        if isinstance(one, dict):
            lines += [" " * depth + name, *_indented(one, depth + 2)]
        elif isinstance(one, list) and one and isinstance(one[0], dict):
            for number, element in enumerate(one):
                flat = " ".join(f"{key}={element[key]}" for key in element if not isinstance(element[key], dict))
                lines.append(" " * depth + f"{name}[{number}] {flat}")
        elif isinstance(one, list):
            lines.append(
                " " * depth + f"{name} = {np.array2string(np.array(one), separator=' ', threshold=10**6, max_line_width=10**6)}"
            )
        else:
            lines.append(" " * depth + f"{name} = {one}")
    return lines


def _graph(task: DlaTask) -> list[str]:
    heads = [f"{ENGINES[i]} {int(head)}" for i, head in enumerate(task.network["op_head"]) if head >= 0]
    lines = [f"    heads: {', '.join(heads) or 'none'}"]
    for one in task.operations:
        links = [f"{EVENTS.get(event, event)} -> {ENGINES[engine]} {number}" for engine, number, event in one.consumers()]
        parent = one.common["fused_parent"]
        if int(parent["index"]) >= 0:
            links.append(f"fused to {int(parent['index'])} ({EVENTS.get(int(parent['event']))})")
        lines.append(
            f"    {one.name}: waits for {int(one.common['dependency_count'])}; {'; '.join(links) or 'nothing follows'}"
        )
    return lines
