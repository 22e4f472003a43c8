"""The picture of a plan shows what the plan says: a rectangle for each part of each buffer, names, marks and axes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from support import memory_networks as networks
from support.memory_graphs import random_problem

from n2d2py.memory.picture import draw_plan
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.planning import plan_memory
from n2d2py.memory.problem import MemoryProblem

STRATEGIES = (networks.N2D2, "OptimizeOverlap", "OptimizeStream")


@dataclass
class Drawing:
    """What was drawn: the figure at the moment it was saved."""

    axes: Axes
    width: float

    def boxes(self) -> list[Any]:
        """The rectangles of buffers and scratch, in the order in which they were drawn."""
        return list(self.axes.patches)

    def legend(self) -> list[str]:
        legend = self.axes.get_legend()
        return [] if legend is None else [text.get_text() for text in legend.get_texts()]


@pytest.fixture
def drawing(tmp_path, monkeypatch):
    """Draws a plan and keeps the figure, which is not rendered: that takes longer than all the rest."""
    kept: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *arguments, **options: kept.append(figure))

    def draw(problem: MemoryProblem, plan: MemoryPlan) -> Drawing:
        draw_plan(problem, plan, tmp_path / "plan.png")
        (axes,) = kept[-1].axes
        return Drawing(axes, kept[-1].get_figwidth())

    return draw


def columns(plan: MemoryPlan) -> list[int]:
    """Where clock -1, 0, 1 ... begin: each as wide as its operators with code, at least 1."""
    views = set(plan.views)
    last = max((step.clock for step in plan.schedule), default=0)
    begins = [0, 1]
    for clock in range(last + 1):
        running = {step.op for step in plan.schedule if step.clock == clock} - views
        begins.append(begins[-1] + max(1, len(running)))
    return [*begins, begins[-1] + 1]


def shown(problem: MemoryProblem, plan: MemoryPlan) -> list[str]:
    """The tensors whose bytes are drawn."""
    views = {problem.op(name).output for name in plan.views}
    return [name for name, plane in plan.planes.items() if name not in views and not plane.external]


def wanted_boxes(problem: MemoryProblem, plan: MemoryPlan) -> list[tuple]:
    """(left, bottom, width, height, hatch) of each buffer, then of each scratch."""
    at, last = columns(plan), len(columns(plan)) - 1
    boxes = []
    for name in shown(problem, plan):
        plane = plan.planes[name]
        left, right = at[plane.alloc + 1], at[min(plane.release + 2, last)]
        for part, (begin, end) in enumerate(plane.intervals()):
            hatch = "///" if part else "..." if plane.ring_rows is not None else None
            boxes.append((left, begin, right - left, end - begin, hatch))
    clock = {step.op: step.clock for step in plan.schedule}
    for name, scratch in plan.scratch.items():
        left, right = at[clock[name] + 1], at[clock[name] + 2]
        boxes.append((left, scratch.offset, right - left, scratch.size, None))
    return boxes


def compare(problem: MemoryProblem, plan: MemoryPlan, found: Drawing) -> None:
    boxes = found.boxes()
    assert [(*box.get_xy(), box.get_width(), box.get_height(), box.get_hatch()) for box in boxes] == wanted_boxes(problem, plan)
    names = shown(problem, plan)
    parts = sum(len(plan.planes[name].intervals()) for name in names)
    assert all(same_color(box.get_edgecolor()[:3], "black") and box.get_facecolor()[3] == 0.75 for box in boxes[:parts])
    for scratch in boxes[parts:]:
        assert same_color(scratch.get_edgecolor(), "red") and scratch.get_facecolor()[3] == 0 and scratch.get_linestyle() == ":"
    assert len({box.get_facecolor() for box in boxes[:parts]}) >= min(8, len(names))
    kinds = [
        ("wrapped part", any(len(plan.planes[name].intervals()) > 1 for name in names)),
        ("line buffer", any(plan.planes[name].ring_rows is not None for name in names)),
        ("scratch", bool(plan.scratch)),
    ]
    assert found.legend() == [label for label, used in kinds if used]
    at = columns(plan)
    assert found.axes.get_xlim() == (0, at[-1]) and found.axes.get_ylim() == (0, max(1, plan.arena_bytes))
    assert found.width == min(24.0, 6.0 + 0.22 * at[-1])
    ticks = [int(label.get_text()) for label in found.axes.get_xticklabels()]
    assert ticks == list(range(0, len(at) - 2, max(1, len(at) // 16)))
    assert list(found.axes.get_xticks()) == [at[tick + 1] for tick in ticks]
    assert found.axes.get_title() == f"arena {plan.arena_bytes:,} bytes, {plan.strategy}"
    assert found.axes.get_ylabel() == "address (bytes)"
    assert found.axes.yaxis.get_major_formatter()(12345.6) == "12,345"
    compare_names(problem, plan, found)


def compare_names(problem: MemoryProblem, plan: MemoryPlan, found: Drawing) -> None:
    """The largest buffers and the line buffers that are high enough are named, each at the first of five heights inside its larger
    part where it covers no name before it; one that has none is left out.
    """
    writers = {op.output: op.name for op in problem.ops}
    at, last, line = columns(plan), len(columns(plan)) - 1, plan.arena_bytes / 45
    planes = sorted(((plan.planes[name], name) for name in shown(problem, plan)), key=lambda each: -each[0].bytes)
    texts: list[tuple[str, float, float]] = []
    for index, (plane, name) in enumerate(planes):
        if index >= 16 and (plane.ring_rows is None or plane.bytes <= 3 * line):
            continue
        lines = "" if plane.ring_rows is None else f": {plane.ring_rows} of {plane.count} lines"
        text = f"{writers.get(name, name)}\n{plane.bytes:,}{lines}"
        begin, end = max(plane.intervals(), key=lambda part: part[1] - part[0])
        x = (at[plane.alloc + 1] + at[min(plane.release + 2, last)]) / 2
        for share in (0.5, 0.85, 0.15, 0.7, 0.3):
            y = begin + (end - begin) * share
            if not any(abs(y - b) <= 2 * line and abs(x - a) <= 0.22 * (width(text) + width(other)) for other, a, b in texts):
                texts.append((text, x, y))
                break
    assert [(text.get_text(), *text.get_position()) for text in found.axes.texts] == texts
    assert all(text.get_horizontalalignment() == text.get_verticalalignment() == "center" for text in found.axes.texts)


def width(text: str) -> int:
    """The characters of its longest line."""
    return max(map(len, text.split("\n")))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["resnet8", "vww", "unet"])
def test_networks_are_drawn_as_they_are_planned(name, strategy, drawing):
    problem = getattr(networks, name)()
    plan = plan_memory(problem, strategy=strategy)
    compare(problem, plan, drawing(problem, plan))


@pytest.mark.parametrize("seed", range(8))
def test_random_networks_are_drawn_as_they_are_planned(seed, drawing):
    problem = random_problem(seed)
    plan = plan_memory(problem, strategy=STRATEGIES[seed % 3])
    compare(problem, plan, drawing(problem, plan))


def tower(count: int, clock: str = "op", ring: int | None = None) -> tuple[MemoryProblem, MemoryPlan]:
    """`count` layers one after the other in planes of falling sizes, one above the other."""
    net = networks.Net(4, 4, 2 * count + 2)
    x = net.input
    for index in range(count):
        x = net.conv(x, 2 * (count - index), 1)
    problem = net.done(x)
    planes, at = {}, 0
    for index, (name, tensor) in enumerate(problem.tensors.items()):
        pixel, rows = tensor.channels, ring if index else None
        planes[name] = Plane(at, pixel, pixel, 4, 4, index - 1, index, ring_rows=rows)
        at = planes[name].intervals()[-1][1]
    steps = tuple(ScheduleStep(op.name, index) for index, op in enumerate(problem.ops))
    return problem, MemoryPlan("Drawn", at, planes, steps, options={"Clock": clock})


@pytest.mark.parametrize(
    ("clock", "label"), [("op", "layer"), ("level", "level of the graph"), ("segment", "segment"), ("", "clock")]
)
def test_the_axis_of_time_says_what_a_clock_is(clock, label, drawing):
    problem, plan = tower(3, clock)
    assert drawing(problem, plan).axes.get_xlabel() == f"{label} (inputs are written before 0)"


def test_sixteen_buffers_have_names(drawing):
    """Of forty buffers, the smaller ones have none."""
    problem, plan = tower(40)
    found = drawing(problem, plan)
    compare(problem, plan, found)
    assert 8 < len(found.axes.texts) <= 16


def test_so_have_line_buffers_that_are_high_enough(drawing):
    problem, plan = tower(22, ring=2)
    found = drawing(problem, plan)
    compare(problem, plan, found)
    first = 3 * plan.arena_bytes / 45
    heights = sorted((plane.bytes for plane in plan.planes.values()), reverse=True)
    assert heights[0] > first > heights[-1]


def test_a_clock_is_as_wide_as_its_operators_with_code(drawing):
    """Three operators of one clock, one of which is a view: two columns."""
    problem, plan = tower(4)
    names = [op.name for op in problem.ops]
    steps = tuple(ScheduleStep(name, clock) for name, clock in zip(names, (0, 0, 0, 1), strict=True))
    plan = replace(plan, schedule=steps, ops={names[1]: OpPlan(view=True), names[3]: OpPlan(scratch=Scratch(3, 40))})
    found = drawing(problem, plan)
    assert [list(found.axes.get_xticks()), found.axes.get_xlim()[1]] == [[1, 3, 4], 5]
    assert (found.boxes()[-1].get_xy(), found.boxes()[-1].get_height()) == ((3, 3), 40)
    assert found.legend() == ["scratch"]


def test_a_plan_without_operators_is_drawn(drawing):
    net = networks.Net(2, 2, 2)
    problem = net.done(net.input)
    plan = MemoryPlan("Drawn", 0, {"input": Plane(0, 2, 2, 2, 2, -1, 0, external=True)}, ())
    found = drawing(problem, plan)
    assert found.boxes() == [] and found.axes.get_ylim() == (0, 1) and found.legend() == []


def test_the_file_is_a_png_that_is_the_same_again(tmp_path):
    problem = networks.resnet8()
    plan = plan_memory(problem, strategy="OptimizeOverlap")
    written = []
    for name in ("a.png", "b.png"):
        draw_plan(problem, plan, tmp_path / name)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1] and written[0].startswith(b"\x89PNG") and b"Software" not in written[0]
