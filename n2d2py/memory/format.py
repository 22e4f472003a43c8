"""The files of `statistics/memory/`: `memory_graph.json` (the GRAPH), `memory_map.json` (the MAP), and the mapping as text.

    GRAPH  {"tensors": {t: {"h", "w", "c"[, "bytes"]}}, "inputs": [t..], "outputs": [t..],
            "ops": [{"name", "type", "inputs", "output", attributes...[, "scratch_bytes"]}]}

`bytes` is the size of one element, 1 when absent. Attributes by type: conv and pool: kh, kw, sh, sw, pads (top, left, bottom,
right), dil (a number, or [vertical, horizontal]), groups; conv: residual, a tensor that is added to what the operator stores,
over which the output lies exactly; pool: kind, sum_bytes of a channel's partial result (4); upsample: scale (a number, or
[vertical, horizontal]); concat: rescale, true where the values change, axis, "columns" where the inputs lie next to each other;
window, for any other layer that goes row by row: lines and columns, for each input and each line (column) of the output the
range [first, stop) of the input's that it reads, packs: whether it packs elements "into" bytes or unpacks them "from" bytes;
fc, for any layer that reads its inputs whole: layer, its name; all: by_lines, false where the kernel does not make single
lines; straight, true where it is faster when its output stays with the caller; dense, true where it takes planes without gaps
and wraps.

The MAP: linear byte l of a plane is at `offset + l` where l < limit, else at `wrap_offset + (l - limit)`. `pitch`: bytes
from line to line, where the lines are a part of longer ones.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from n2d2py.errors import InternalError
from n2d2py.files import write_text
from n2d2py.memory.access import (
    Concatenated,
    Joined,
    LineTable,
    Pointwise,
    PoolWindow,
    Repacked,
    TensorSpec,
    Upsample,
    View,
    Whole,
    Window,
)
from n2d2py.memory.plan import Memory, MemoryPlan, Plane
from n2d2py.memory.problem import MemoryProblem, OpSpec


def graph_json(problem: MemoryProblem) -> dict[str, Any]:
    """Return the GRAPH of a problem."""
    tensors = {}
    for t in problem.tensors.values():
        tensors[t.name] = {"h": t.height, "w": t.width, "c": t.channels}
        if t.element_bytes != 1:
            tensors[t.name]["bytes"] = t.element_bytes
    ops = []
    for op in problem.ops:
        entry = {"name": op.name, "type": _type(op), "inputs": list(op.operands), "output": op.output, **_attributes(op)}
        entry |= {"straight": True} if op.access.prefers_caller else {}
        entry |= {"dense": True} if op.access.dense else {}
        entry |= {} if op.access.by_lines else {"by_lines": False}
        entry |= {} if op.aliased is None else {"residual": op.aliased}
        entry |= {"scratch_bytes": op.scratch_bytes} if op.scratch_bytes else {}
        ops.append(entry)
    states = {"states": problem.states} if problem.states else {}
    return {"tensors": tensors, "inputs": list(problem.inputs), "outputs": list(problem.outputs), "ops": ops, **states}


def _type(op: OpSpec) -> str:
    if isinstance(op.access, Pointwise):
        return "add" if op.layer == "ElemWise" or (op.layer and len(op.inputs) > 1) else "ew"
    if isinstance(op.access, Whole):
        return "softmax" if op.layer == "Softmax" else "fc"
    words = {PoolWindow: "pool", Window: "conv", Upsample: "upsample", LineTable: "window", Repacked: "window"}
    return (words | {Concatenated: "concat", Joined: "concat", View: "reshape"})[type(op.access)]


def _attributes(op: OpSpec) -> dict[str, Any]:
    access = op.access
    if isinstance(access, Window):
        used = {d for d, k in zip(access.dilation, access.kernel, strict=True) if k > 1} or {1}
        attributes = {
            **dict(zip(("kh", "kw", "sh", "sw"), (*access.kernel, *access.stride), strict=True)),
            "pads": list(access.pads),
            "dil": used.pop() if len(used) == 1 else list(access.dilation),
            "groups": access.groups,
        }
        if isinstance(access, PoolWindow):
            attributes.update({"kind": access.mode} if access.mode else {})
            attributes.update({"sum_bytes": access.partial_bytes} if access.partial_bytes else {})
        return attributes
    if isinstance(access, Upsample):
        lines, columns = access.factors
        return {"scale": lines if lines == columns else [lines, columns]}
    if isinstance(access, Concatenated):
        return {"rescale": True} if access.rescales else {}
    if isinstance(access, Joined):
        return {"axis": "columns"}
    layer = {"layer": op.layer} if op.layer else {}
    if isinstance(access, LineTable):
        packs = {"packs": "from" if access.unpacks else "into"} if isinstance(access, Repacked) else {}
        return {**layer, **{key: _lists(getattr(access, key)) for key in ("lines", "columns")}, **packs}
    return layer if isinstance(access, Whole) and op.layer not in ("Fc", "Softmax") else {}


def _lists(value: Any) -> Any:
    return [_lists(each) for each in value] if isinstance(value, (list, tuple)) else value


def in_known_terms(problem: MemoryProblem, plan: MemoryPlan) -> MemoryProblem:
    """Return the problem with "fc", which reads its inputs whole, for each operator that not every reader of maps knows and
    that the plan does not run by lines or over an input: a "window", two factors or dilations, operands of another shape than
    the output."""
    streamed = set(plan.streamed)
    ops = []
    for op in problem.ops:
        is_read = _is_known(op, problem.tensors) or op.name in streamed or plan.overlaps(problem, op.name)
        ops.append(op if is_read else replace(op, access=Whole(), layer=_attributes(op).get("layer", _type(op))))
    return replace(problem, ops=tuple(ops))


def _is_known(op: OpSpec, tensors: dict[str, TensorSpec]) -> bool:
    if isinstance(op.access, Pointwise):
        return all(tensors[name].shape == tensors[op.output].shape for name in op.inputs)
    attributes = _attributes(op)
    return not isinstance(op.access, LineTable) and all(isinstance(attributes.get(key, 1), int) for key in ("scale", "dil"))


def map_json(plan: MemoryPlan) -> dict[str, Any]:
    """Return the MAP of a plan."""
    schedule = []
    for step in plan.schedule:
        if step.arrives:
            if step.rows is None:
                raise InternalError(f"the input {step.op} arrives without lines")
            schedule.append({"input": step.op, "rows": list(step.rows), "clock": step.clock})
            continue
        entry: dict[str, Any] = {"op": step.op}
        if step.rows is not None:
            entry["rows"] = list(step.rows)
        if step.in_rows is not None:
            entry.update(in_rows=list(step.in_rows), commit=step.commit)
        run = plan.op(step.op)
        if run.scratch is not None:
            entry["scratch"] = [{"offset": run.scratch.offset, "size": run.scratch.size}]
        if run.view:
            entry["view"] = True
        else:
            entry.update(loop="-h-w-c" if run.backwards else "hwc", unit="elem")
        entry["clock"] = step.clock
        schedule.append(entry)
    planes = {name: _plane(plane) for name, plane in plan.planes.items()}
    last = max((step.clock for step in plan.schedule), default=-1)
    end = max(len(schedule), last + 1)
    for plane in planes.values():
        if plane["release"] > last:
            plane["release"] = end  # whether a reader's last clock counts steps or stamps
    return {
        "arena_size": plan.arena_bytes,
        "strategy": plan.strategy,
        "options": dict(plan.options),
        **({"memories": [_memory(each) for each in plan.memories]} if plan.memories else {}),
        **({"roms": {each.name: each.bytes for each in plan.roms}, "constants": _constants(plan)} if plan.roms else {}),
        "tensors": planes,
        "schedule": schedule,
    }


def _memory(memory: Memory) -> dict[str, Any]:
    entry = {"name": memory.name, "start": memory.start, "bytes": memory.bytes}
    return {**entry, "reserved": memory.reserved} if memory.reserved else entry


def _constants(plan: MemoryPlan) -> list[dict[str, Any]]:
    entries = []
    for one in plan.constants:
        copy = {} if one.copy is None else {"copy": one.copy, "life": list(one.life)}
        entries.append({key: getattr(one, key) for key in ("name", "op", "bytes", "home", "memory")} | copy)
    return entries


def _plane(plane: Plane) -> dict[str, Any]:
    wrap = () if plane.limit is None else ("limit", "wrap_offset")
    optional = [key for key in ("ring_rows", "pitch") if getattr(plane, key) is not None]
    keys = ("offset", "size", "stride", "length", "count", *wrap, *optional, "alloc", "release", *["external"] * plane.external)
    return {key: getattr(plane, key) for key in keys}


def write_memory_files(folder: Path, problem: MemoryProblem, plan: MemoryPlan) -> None:
    """Write memory_graph.json, memory_map.json and memory_mapping.log into `folder`."""
    write_text(folder / "memory_graph.json", json_text(graph_json(in_known_terms(problem, plan))))
    write_text(folder / "memory_map.json", json_text(map_json(plan)))
    write_text(folder / "memory_mapping.log", mapping_text(problem, plan))


def json_text(data: dict[str, Any]) -> str:
    """Return JSON with one line per tensor and per operator."""
    parts = []
    for key, value in data.items():
        if key == "tensors":
            lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in value.items()]
            text = "{\n  " + ",\n  ".join(lines) + "\n }" if lines else "{}"
        elif key in ("ops", "schedule"):
            text = "[\n  " + ",\n  ".join(json.dumps(entry) for entry in value) + "\n ]" if value else "[]"
        else:
            text = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def mapping_text(problem: MemoryProblem, plan: MemoryPlan) -> str:
    """Return the log: one block per tensor in execution order, one line per plane, then the arena. `start (hex) -> end (hex) [+
    start (hex) -> end (hex)] [size] @ alloc to release`: bytes, ends exclusive; the second range is the wrapped part. Inputs
    are written at clock -1."""
    specs = {op.name: op for op in problem.ops}
    lines = [f"# arena {plan.arena_bytes} bytes, {plan.strategy}", "# start -> end [bytes] @ first clock to last clock"]
    for name in problem.inputs:
        lines += ["", name, "  " + _plane_line(plan.planes[name])]
    first = {step.op: step for step in reversed(plan.schedule) if not step.arrives}
    for step in (first[name] for name in plan.order):
        note = "  (view, no code)" if step.op in plan.views else "  (by lines)" if step.lines else ""
        lines += ["", step.op, "  " + _plane_line(plan.planes[specs[step.op].output]) + note]
        if step.op in plan.scratch:
            scratch = plan.scratch[step.op]
            place = _range(scratch.offset, scratch.offset + scratch.size)
            lines.append(f"  {place} [{scratch.size}] @ {step.clock} to {step.clock}  (scratch)")
    return "\n".join(lines) + "\n"


def _range(begin: int, end: int) -> str:
    return f"{begin} (0x{begin:08X}) -> {end} (0x{end:08X})"


def _plane_line(plane: Plane) -> str:
    life = f"[{plane.bytes}] @ {plane.alloc} to {plane.release}"
    if plane.external:
        return f"outside the arena {life}"
    ranges = plane.intervals()
    text = _range(*ranges[0])
    if len(ranges) > 1:
        text += f" + {_range(*ranges[1])}"
    stride = f" stride {plane.stride} of {plane.size}" if plane.stride != plane.size else ""
    return f"{text} {life}{stride}"
