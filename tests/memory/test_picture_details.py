"""How a picture of a plan looks: colours, lines, hatches, sizes of letters, the legend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from support.memory_networks import Net

from n2d2py.memory.picture import _edges, plan_figure
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem


def drawn() -> tuple[MemoryProblem, MemoryPlan]:
    """x wraps, conv0 has lines that go round, conv1 needs scratch."""
    net = Net(4, 4, 2)
    net.conv(net.conv(net.input, 4, 1), 2, 1)
    problem = net.done()
    planes = {
        "input": Plane(100, 2, 2, 4, 4, -1, 0, limit=24, wrap_offset=0),
        "conv0.y": Plane(20, 4, 4, 4, 4, 0, 1, ring_rows=2),
        "conv1.y": Plane(60, 2, 2, 4, 4, 1, 2),
    }
    steps = (ScheduleStep("conv0", 0), ScheduleStep("conv1", 1))
    return problem, MemoryPlan("Drawn", 140, planes, steps, {"conv1": OpPlan(scratch=Scratch(92, 8))})


def test_a_plan_without_operators_has_one_clock():
    """Between the one before and the one behind."""
    assert _edges(MemoryPlan("Empty", 0, {}, (), {})) == [0, 1, 2, 3]


def test_colours_lines_and_hatches_of_boxes():
    (axes,) = plan_figure(*drawn()).axes
    *buffers, scratch = axes.patches
    assert [to_hex(box.get_facecolor()) for box in buffers] == ["#4e79a7", "#4e79a7", "#f28e2b", "#59a14f"]
    assert [box.get_hatch() for box in buffers] == [None, "///", "...", None]
    assert {(box.get_linewidth(), box.get_alpha(), to_hex(box.get_edgecolor())) for box in buffers} == {(0.6, 0.75, "#000000")}
    assert (scratch.get_linewidth(), scratch.get_linestyle(), scratch.get_hatch()) == (0.8, ":", None)
    assert [box.get_bbox().bounds for box in axes.patches] == [
        (0, 100, 2, 24),
        (0, 0, 2, 8),
        (1, 20, 2, 32),
        (2, 60, 2, 32),
        (2, 92, 1, 8),
    ]


def test_the_legend():
    (axes,) = plan_figure(*drawn()).axes
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["wrapped part", "line buffer", "scratch"]
    wrapped, ring, scratch = legend.get_patches()
    assert (wrapped.get_hatch(), ring.get_hatch(), scratch.get_hatch()) == ("///", "...", None)
    assert [to_hex(each.get_facecolor(), keep_alpha=True) for each in (wrapped, ring, scratch)] == [
        "#ffffffff",
        "#ffffffff",
        "#00000000",
    ]
    assert [to_hex(each.get_edgecolor()) for each in (wrapped, ring, scratch)] == ["#000000", "#000000", "#ff0000"]
    assert legend._get_loc() == 1 and {text.get_fontsize() for text in legend.get_texts()} == {8}


@pytest.mark.parametrize(
    ("name", "changes", "labels"),
    [
        ("input", {"limit": None}, ["line buffer", "scratch"]),
        ("conv0.y", {"ring_rows": None}, ["wrapped part", "scratch"]),
        ("input", {"external": True}, ["line buffer", "scratch"]),
        ("conv0.y", {"external": True}, ["wrapped part", "scratch"]),
    ],
)
def test_the_legend_has_what_is_drawn(name, changes, labels):
    problem, plan = drawn()
    plan = replace(plan, planes={**plan.planes, name: replace(plan.planes[name], **changes)})
    (axes,) = plan_figure(problem, plan).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == labels


def test_names_letters_and_sizes():
    figure = plan_figure(*drawn())
    (axes,) = figure.axes
    assert {text.get_text(): text.get_position() for text in axes.texts} == {
        "input\n32": (1, 112),
        "conv0\n32: 2 of 4 lines": (2, 36),
        "conv1\n32": (3, 76),
    }
    for text in axes.texts:
        box = text.get_bbox_patch()
        assert text.get_fontsize() == 6 and text.get_clip_on()
        assert (to_hex(box.get_facecolor()), box.get_alpha(), box.get_boxstyle().pad) == (
            "#ffffff",
            0.7,
            pytest.approx(1 / 6, abs=0.01),
        )
        assert box.get_edgecolor()[3] == 0
    assert axes.title.get_fontsize() == 10 and figure.get_figheight() == 7.0
    assert figure.get_figwidth() == pytest.approx(6 + 0.22 * 4) and figure.get_layout_engine() is not None


def test_a_name_that_covers_another_is_lifted_or_left_out():
    """Three buffers at one place, one clock apart: names at the middle, at 0.85 and at 0.15 of the height."""
    net = Net(4, 4, 2)
    net.conv(net.conv(net.input, 2, 1), 2, 1)
    problem = net.done()
    planes = {name: Plane(0, 2, 2, 4, 4, at - 1, at) for at, name in enumerate(problem.tensors)}
    steps = tuple(ScheduleStep(op.name, at) for at, op in enumerate(problem.ops))
    (axes,) = plan_figure(problem, MemoryPlan("Drawn", 32, planes, steps)).axes
    assert [(text.get_text().split("\n")[0], text.get_position()) for text in axes.texts] == [
        ("input", (1, pytest.approx(16))),
        ("conv0", (2, pytest.approx(32 * 0.85))),
        ("conv1", (3, pytest.approx(32 * 0.15))),
    ]
