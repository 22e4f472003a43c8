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


_NAMED = 16
_HEIGHT = 7.0
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#bab0ac")
_WRAPPED, _RING = "///", "..."
_BUFFER: dict[str, Any] = {"alpha": 0.75, "linewidth": 0.6, "edgecolor": "black"}
_SCRATCH: dict[str, Any] = {"facecolor": "none", "edgecolor": "red", "linestyle": ":"}
_LABEL: dict[str, Any] = {"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1}


@plain_text()
def plan_figure(problem: MemoryProblem, plan: MemoryPlan) -> Figure:
    """Return a figure with time to the right and addresses upwards; wrapped parts and line buffers are hatched, the largest
    buffers named.

    The width of a clock is the number of its operators. Views are not drawn, since their bytes belong to the tensors that were
    written.

    Raises:
        N2D2Error: E605 without matplotlib.
    """
    edges = _edges(plan)
    width = min(24.0, 6.0 + 0.22 * edges[-1])
    figure = new_figure(width, _HEIGHT, code="E605", what="the memory plot")
    figure.subplots_adjust(
        1.1 / width, 0.55 / _HEIGHT, 1 - 0.2 / width, 1 - 0.4 / _HEIGHT
    )  # a layout that is solved draws twice
    from matplotlib.patches import Rectangle

    views = {problem.op(name).output for name in plan.views}
    tensors = [name for name, plane in plan.planes.items() if name not in views and not plane.external]
    axes = figure.add_subplot()

    def box(alloc: int, release: int, begin: int, end: int, **style: Any) -> None:
        left = edges[alloc + 1]
        right = edges[min(release + 2, len(edges) - 1)]
        axes.add_patch(Rectangle((left, begin), right - left, end - begin, **style))

    for index, name in enumerate(tensors):
        plane = plan.planes[name]
        for part, (begin, end) in enumerate(plane.intervals()):
            hatch = _WRAPPED if part else _RING if plane.ring_rows is not None else None
            colour = _COLOURS[index % len(_COLOURS)]
            box(plane.alloc, plane.release, begin, end, facecolor=colour, hatch=hatch, **_BUFFER)
    clocks = {step.op: step.clock for step in plan.schedule}
    for name, scratch in plan.scratch.items():
        box(clocks[name], clocks[name], scratch.offset, scratch.offset + scratch.size, linewidth=0.8, **_SCRATCH)
    _name_largest(axes, problem, plan, tensors, edges)
    _dress(axes, plan, edges)
    kinds = (
        ("wrapped part", _WRAPPED, any(not plan.planes[name].contiguous for name in tensors)),
        ("line buffer", _RING, any(plan.planes[name].ring_rows is not None for name in tensors)),
    )
    marks = [
        Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="black", hatch=hatch, label=label)
        for label, hatch, used in kinds
        if used
    ]
    if plan.scratch:
        marks.append(Rectangle((0, 0), 1, 1, label="scratch", **_SCRATCH))
    if marks:
        axes.legend(handles=marks, loc="upper right", fontsize=8)
    return figure


def _edges(plan: MemoryPlan) -> list[int]:
    """Return the start of each clock on the time axis, from clock -1 on, and the end of the last one."""
    last = max([step.clock for step in plan.schedule], default=0)
    running: list[set[str]] = [set() for _ in range(last + 1)]
    for step in plan.schedule:
        if step.op not in plan.views:
            running[step.clock].add(step.op)
    edges = [0]
    for count in (1, *(max(1, len(names)) for names in running), 1):
        edges.append(edges[-1] + count)
    return edges


def _name_largest(axes: Any, problem: MemoryProblem, plan: MemoryPlan, tensors: list[str], edges: list[int]) -> None:
    """Write name and bytes into the largest buffers, at heights where labels do not overlap."""
    writers = {op.output: op.name for op in problem.ops}
    line, label_lines = plan.arena_bytes / 45, []
    by_size = sorted(tensors, key=lambda name: -plan.planes[name].bytes)
    rings = [name for name in by_size[_NAMED:] if plan.planes[name].ring_rows and plan.planes[name].bytes > 3 * line]
    for name in by_size[:_NAMED] + rings:
        plane = plan.planes[name]
        begin, end = max(plane.intervals(), key=lambda part: part[1] - part[0])
        left, right = edges[plane.alloc + 1], edges[min(plane.release + 2, len(edges) - 1)]
        middle = (left + right) / 2
        text = f"{writers.get(name, name)}\n{_size(plane)}"
        half = 0.22 * max(map(len, text.split("\n")))
        spots = [begin + (end - begin) * share for share in (0.5, 0.85, 0.15, 0.7, 0.3)]
        free = [
            y
            for y in spots
            if all(abs(y - other) > 2 * line or abs(middle - x) > half + wide for x, other, wide in label_lines)
        ]
        if not free:
            continue
        label_lines.append((middle, free[0], half))
        axes.text(middle, free[0], text, ha="center", va="center", fontsize=6, clip_on=True, bbox=_LABEL)


def _size(plane: Plane) -> str:
    if plane.ring_rows is None:
        return f"{plane.bytes:,}"
    return f"{plane.bytes:,}: {plane.ring_rows} of {plane.count} lines"


def _dress(axes: Any, plan: MemoryPlan, edges: list[int]) -> None:
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, max(1, plan.arena_bytes))
    step = max(1, len(edges) // 16)
    axes.set_xticks(edges[1:-1:step], [str(clock) for clock in range(0, len(edges) - 2, step)])
    what = {"segment": "segment", "level": "level of the graph", "op": "layer"}.get(plan.options.get("Clock", ""), "clock")
    axes.set_xlabel(f"{what} (inputs are written before 0)")
    axes.set_ylabel("address (bytes)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{int(value):,}")
    axes.set_title(f"arena {plan.arena_bytes:,} bytes, {plan.strategy}", fontsize=10)
