"""The memory plan as SVG: time to the right, address upwards, a buffer's facts on hovering."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from n2d2py.figures import Drawing, Svg
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.naming import shorten
from n2d2py.report.text import grouped, short_bytes

_WIDTH, _HEIGHT = 1400.0, 430.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 10.0, 10.0, 34.0
_HUES = 8
_LETTER = 5.6
_LINE = 13.0
"""Width of a letter and height of a line of a label, in pixels."""


def _tick_step(span: int, most: int) -> int:
    """Return the smallest power of two that divides `span` into at most `most` parts."""
    step = 1
    while span / step > most:
        step *= 2
    return step


def draw_memory(problem: MemoryProblem, plan: MemoryPlan, layers: Sequence[str] = (), *, standalone: bool = False) -> Drawing:
    """Return the SVG text; `standalone` brings its own colours, else the page's style sheet gives them. Wrapped parts have a
    dashed outline.

    The buffer that layer k of `layers` writes is the element `buffer-k` of the page and leads to the element `layer-k`.

    Buffers that are views are drawn with the bytes of the tensors that were written.
    """
    writers = {op.output: op.name for op in problem.ops}
    views = {problem.op(name).output for name in plan.views}
    last = max([step.clock for step in plan.schedule], default=0)
    peak = max(1, plan.arena_bytes)
    column = (_WIDTH - _LEFT - _RIGHT) / (last + 2)
    foot = _HEIGHT - _BOTTOM

    def x(clock: float) -> float:
        return _LEFT + (clock + 1) * column

    def y(address: float) -> float:
        return foot - address / peak * (foot - _TOP)

    svg = Svg(_WIDTH, _HEIGHT, "memory", standalone=standalone, title="memory map" if layers else "")
    rows, marked = {name: row for row, name in enumerate(layers)}, set()
    step = _tick_step(peak, 8)
    for address in range(0, peak + 1, step):
        svg.line(_LEFT, y(address), _WIDTH - _RIGHT, y(address), "grid")
        svg.text(_LEFT - 6, y(address) + 3.5, short_bytes(address), "tick", anchor="end")
    labels = []
    names = [name for name, plane in plan.planes.items() if name not in views and not plane.external]
    for index, name in enumerate(names):
        plane = plan.planes[name]
        until = min(plane.release, last) + 1
        layer = writers.get(name, name)
        facts = f"{layer}: {grouped(plane.bytes)} bytes, clock {plane.alloc} to {plane.release}"
        for part, (begin, end) in enumerate(plane.intervals()):
            where = f"{facts}, {grouped(begin)} to {grouped(end)}" + (", wrapped part" if part else "")
            width, height = x(until) - x(plane.alloc), y(begin) - y(end)
            style, row = f"buffer h{index % _HUES}{' wrapped' if part else ''}", rows.get(layer)
            mark = "" if row is None or row in marked else f"buffer-{row}"
            marked.add(row)
            with (
                nullcontext() if row is None else svg.link(f"layer-{row}", mark, row, f"{where}: go to its layer in the table")
            ):
                svg.rect(x(plane.alloc), y(end), width, height, style, title=where)
            if max(width, height) >= 9 * _LETTER and min(width, height) >= _LINE:
                labels.append((x(plane.alloc) + width / 2, (y(begin) + y(end)) / 2, width, height, layer))
    _label(svg, labels)
    clocks = {step.op: step.clock for step in plan.schedule}
    for name, scratch in plan.scratch.items():
        high, low = y(scratch.offset + scratch.size), y(scratch.offset)
        svg.rect(
            x(clocks[name]), high, column, low - high, "scratch", title=f"{name}: scratch of {grouped(scratch.size)} bytes"
        )
    svg.line(_LEFT, y(plan.arena_bytes), _WIDTH - _RIGHT, y(plan.arena_bytes), "threshold")
    every = _tick_step(last + 1, 24)
    for clock in range(0, last + 1, every):
        svg.text(x(clock + 0.5), foot + 13, str(clock), "tick")
    svg.text((_LEFT + _WIDTH - _RIGHT) / 2, foot + 28, "clock (inputs are written at -1)", "tick")
    svg.line(_LEFT, foot, _WIDTH - _RIGHT, foot, "axis")
    return svg.finish()


def _label(svg: Svg, labels: list[tuple[float, float, float, float, str]]) -> None:
    """Write the labels (centre, width and height of the buffer, text) along the longer side, none over another."""
    occupied: list[tuple[float, float, float, float]] = []
    for x, y, width, height, name in labels:
        flat = width >= min(height, len(name) * _LETTER)
        text = shorten(name, int((width if flat else height) / _LETTER))
        room = (len(text) * _LETTER, _LINE) if flat else (_LINE, len(text) * _LETTER)
        if any(2 * abs(x - tx) < room[0] + tw and 2 * abs(y - ty) < room[1] + th for tx, ty, tw, th in occupied):
            continue
        occupied.append((x, y, *room))
        if flat:
            svg.text(x, y + 3.5, text, "tag")
        else:
            svg.upright(x + 3.5, y, text, "tag", anchor="middle")
