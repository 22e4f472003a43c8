"""The picture of a plan: address against time, one rectangle per contiguous part of a buffer."""

from __future__ import annotations

from pathlib import Path

from n2d2py.errors import N2D2Error
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem

__all__ = ["draw_plan"]

_NAMED = 12
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#76b7b2", "#edc948", "#b07aa1", "#9c755f", "#bab0ac")


def draw_plan(problem: MemoryProblem, plan: MemoryPlan, path: Path) -> None:
    """Writes a PNG: clock to the right, address upwards, wrapped parts hatched, the largest buffers
    named.

    Views are left out: their bytes are drawn with the tensors that were written. Raises E605
    without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle
    except ImportError as error:
        raise N2D2Error(
            "E605", "the memory picture needs matplotlib", remedy="pip install matplotlib"
        ) from error

    outputs = {problem.op(name).output for name in plan.views}
    drawn = [
        name for name, plane in plan.planes.items() if name not in outputs and not plane.external
    ]
    last = max([step.clock for step in plan.schedule], default=0)
    largest = set(sorted(drawn, key=lambda name: -plan.planes[name].bytes)[:_NAMED])
    writers = {op.output: op.name for op in problem.ops}

    figure = Figure(
        figsize=(min(24.0, 6.0 + 0.22 * (last + 2)), 7.0), dpi=100, layout="constrained"
    )
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for index, name in enumerate(drawn):
        plane = plan.planes[name]
        width = min(plane.release, last + 1) - plane.alloc + 1
        for part, (begin, end) in enumerate(plane.intervals()):
            axes.add_patch(
                Rectangle(
                    (plane.alloc, begin),
                    width,
                    end - begin,
                    alpha=0.75,
                    linewidth=0.6,
                    facecolor=_COLOURS[index % len(_COLOURS)],
                    edgecolor="black",
                    hatch="///" if part else None,
                )
            )
        if name in largest:
            begin, end = max(plane.intervals(), key=lambda part: part[1] - part[0])
            axes.text(
                plane.alloc + width / 2,
                (begin + end) / 2,
                f"{writers.get(name, name)}\n{plane.bytes:,}",
                ha="center",
                va="center",
                fontsize=6,
                clip_on=True,
            )
    clocks = {step.op: step.clock for step in plan.schedule}
    for name, scratch in plan.scratch.items():
        axes.add_patch(
            Rectangle(
                (clocks[name], scratch.offset),
                1,
                scratch.size,
                facecolor="none",
                edgecolor="red",
                linewidth=0.8,
                linestyle=":",
            )
        )
    axes.set_xlim(-1, last + 2)
    axes.set_ylim(0, max(1, plan.arena_bytes))
    axes.set_xlabel("clock (inputs are written at -1)")
    axes.set_ylabel("address (bytes)")
    axes.yaxis.set_major_formatter(lambda value, _: f"{int(value):,}")
    axes.set_title(
        f"arena {plan.arena_bytes:,} bytes, {plan.strategy}; hatched: wrapped part", fontsize=10
    )
    figure.savefig(path, metadata={"Software": None})
