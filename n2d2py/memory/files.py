"""Record of a plan in `statistics/memory/`: graph and map as JSON, the mapping as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from n2d2py.files import write_text
from n2d2py.memory.format import graph_json, in_known_terms, map_json
from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.memory.problem import MemoryProblem


def write_memory_files(folder: Path, problem: MemoryProblem, plan: MemoryPlan) -> None:
    """Write memory_graph.json, memory_map.json and memory_mapping.log into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "memory_graph.json": json_text(graph_json(in_known_terms(problem, plan))),
        "memory_map.json": json_text(map_json(plan)),
        "memory_mapping.log": mapping_text(problem, plan),
    }
    for name, text in texts.items():
        write_text(folder / name, text)


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
    """Return the log: one block per tensor in execution order, one line per plane, then the arena.

    `start (hex) -> end (hex) [+ start (hex) -> end (hex)] [size] @ alloc to release`: bytes, ends exclusive; the second range
    is the wrapped part. Inputs are written at clock -1.
    """
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
