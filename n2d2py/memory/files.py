"""Record of a plan in `statistics/memory/`: graph and map as JSON, the mapping as text; and its plot.

The plot shows address against time, one rectangle for each contiguous part of a buffer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from n2d2py.figures import new_figure
from n2d2py.files import plain_text, write_text
from n2d2py.memory.format import graph_json, in_known_terms, map_json
from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.memory.problem import MemoryProblem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#bab0ac")
_WRAPPED, _RING = "///", "..."
_NAMED = 16
"""Number of the largest buffers, which are named."""


@plain_text()
def plan_figure(problem: MemoryProblem, plan: MemoryPlan) -> Figure:
    """Return a figure with time to the right and addresses upwards; the largest buffers are named.

    Wrapped parts have stripes, line buffers dots, scratch a red outline. Views are not drawn, since their bytes belong to the
    tensors that were written.

    Raises:
        N2D2Error: E605 without matplotlib.
    """
    clocks = {step.op: step.clock for step in plan.schedule}
    last = max(clocks.values(), default=0)
    figure = new_figure(min(24.0, 6.0 + 0.22 * last), 7.0, code="E605", what="the memory plot", layout="constrained")
    from matplotlib.patches import Rectangle

    axes = figure.add_subplot()
    views, writers = {problem.op(name).output for name in plan.views}, {op.output: op.name for op in problem.ops}
    tensors = [name for name, plane in plan.planes.items() if name not in views and not plane.external]
    largest = sorted(tensors, key=lambda name: -plan.planes[name].bytes)[:_NAMED]
    labels: list[tuple[float, float]] = []
    for index, name in enumerate(tensors):
        plane = plan.planes[name]
        width, parts = min(plane.release, last) + 1 - plane.alloc, plane.intervals()
        for part, (begin, end) in enumerate(parts):
            hatch = _WRAPPED if part else None if plane.ring_rows is None else _RING
            style = {"facecolor": _COLOURS[index % len(_COLOURS)], "edgecolor": "black", "alpha": 0.75, "linewidth": 0.6}
            axes.add_patch(Rectangle((plane.alloc, begin), width, end - begin, hatch=hatch, **style))
        begin, end = max(parts, key=lambda part: part[1] - part[0])
        x, y = plane.alloc + width / 2, (begin + end) / 2
        if name in largest and all(abs(x - left) > 2 or abs(y - low) > plan.arena_bytes / 25 for left, low in labels):
            labels.append((x, y))
            text = f"{writers.get(name, name)}\n{plane.bytes:,}"
            axes.text(x, y, text, ha="center", va="center", fontsize=6, clip_on=True)
    for name, scratch in plan.scratch.items():
        axes.add_patch(Rectangle((clocks[name], scratch.offset), 1, scratch.size, fill=False, edgecolor="red", linestyle=":"))
    axes.set_xlim(-1, last + 1)
    axes.set_ylim(0, max(1, plan.arena_bytes))
    axes.set_xlabel("clock (inputs are written at -1)")
    axes.set_ylabel("address (bytes)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{int(value):,}")
    axes.set_title(f"arena {plan.arena_bytes:,} bytes, {plan.strategy}", fontsize=10)
    return figure
