"""What the checker says of maps whose steps by lines, arrivals and partial results are wrong: one fault of one kind first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.memory_networks import Net

from n2d2py.memory.checker import check_map
from n2d2py.memory.format import graph_json, map_json
from n2d2py.memory.plan import MemoryPlan, Plane, ScheduleStep
from n2d2py.memory.settings import Settings
from n2d2py.memory.stream import StreamPlanner

Steps = list[dict[str, Any]]


def data() -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph and the map of a network whose input arrives, whose first layers run by lines and whose pool accumulates."""
    net = Net(32, 32, 3)
    net.fc(net.global_pool(net.conv(net.conv(net.input, 8, 3), 16, 3)), 4)
    problem = net.done()
    return graph_json(problem), map_json(StreamPlanner(True).plan(problem, Settings(include_output=False)))


def of(steps: Steps, key: str, name: str | None = None) -> Steps:
    return [step for step in steps if key in step and name in (None, step.get("op"))]


def input_twice(steps: Steps) -> None:
    steps.insert(0, dict(of(steps, "input")[0]))


def unknown_input(steps: Steps) -> None:
    of(steps, "input")[0]["input"] = "conv0.y"


def arrival_with_more(steps: Steps) -> None:
    of(steps, "input")[1]["speed"] = 3


def arrival_without_rows(steps: Steps) -> None:
    del of(steps, "input")[1]["rows"]


def step_with_more(steps: Steps) -> None:
    of(steps, "rows", "conv0")[0]["speed"] = 3


def rows_beyond(steps: Steps) -> None:
    of(steps, "rows", "conv0")[-1]["rows"] = [31, 33]


def rows_back(steps: Steps) -> None:
    of(steps, "rows", "conv0")[-1]["rows"] = [0, 1]


def no_rows(steps: Steps) -> None:
    of(steps, "rows", "conv0")[2]["rows"] = [2, 2]


def in_rows_skipped(steps: Steps) -> None:
    steps.remove(of(steps, "in_rows")[3])


def in_rows_beyond(steps: Steps) -> None:
    of(steps, "in_rows")[-1]["in_rows"][1] += 1


def in_rows_with_rows(steps: Steps) -> None:
    of(steps, "in_rows")[0]["rows"] = [0, 1]


def early_commit(steps: Steps) -> None:
    of(steps, "in_rows")[2]["commit"] = True


def no_commit(steps: Steps) -> None:
    del of(steps, "in_rows")[-1]["commit"]


def other_partial_results(steps: Steps) -> None:
    of(steps, "in_rows")[4]["scratch"][0]["offset"] = of(steps, "in_rows")[4]["scratch"][0]["offset"] - 16


def less_scratch(steps: Steps) -> None:
    of(steps, "in_rows")[4]["scratch"][0]["size"] -= 1


def loop(steps: Steps) -> None:
    of(steps, "rows", "conv0")[0]["loop"] = "whc"


def loop_of_whole_steps(steps: Steps) -> None:
    of(steps, "rows", "conv0")[0]["loop"] = "-hwc"


def loop_of_partial_results(steps: Steps) -> None:
    of(steps, "in_rows")[1]["loop"] = "-h-w-c"


def unit(steps: Steps) -> None:
    of(steps, "rows", "conv0")[0]["unit"] = "line"


def back_in_time(steps: Steps) -> None:
    steps[5]["clock"] = steps[0]["clock"] - 1


def nothing_runs(steps: Steps) -> None:
    del steps[-1]


FAULTS: dict[Callable[[Steps], None], tuple[str, str]] = {
    input_twice: ("schedule", "makes lines [0, 2] of input, line 2 is next"),
    unknown_input: ("schedule", "step 0: conv0.y does not arrive by rows"),
    arrival_with_more: ("schedule", "input does not arrive by rows"),
    arrival_without_rows: ("schedule", "makes lines None of input, line 2 is next"),
    step_with_more: ("unsupported", "speed is not checked"),
    rows_beyond: ("schedule", "makes lines [31, 33] of conv0.y, line 31 is next"),
    rows_back: ("schedule", "makes lines [0, 1] of conv0.y, line 31 is next"),
    no_rows: ("schedule", "makes lines [2, 2] of conv0.y, line 2 is next"),
    in_rows_skipped: ("schedule", "line 3 is next"),
    in_rows_beyond: ("schedule", "of conv1.y, line 31 is next"),
    in_rows_with_rows: ("schedule", "takes lines [0, 1] of conv1.y, line 0 is next"),
    early_commit: ("schedule", "commits with lines [2, 3] of the 32 of conv1.y"),
    no_commit: ("schedule", "commits with lines [31, 32] of the 32 of conv1.y"),
    other_partial_results: ("overwritten", "partial results are lost before line 4 of conv1.y is added"),
    less_scratch: ("scratch", "needs 64 bytes of scratch, has 63"),
    loop: ("unsupported", "the loop order whc is not checked; known: hwc, hcw"),
    loop_of_whole_steps: ("unsupported", "the loop order -hwc is not checked; known: hwc, hcw"),
    loop_of_partial_results: ("unsupported", "the loop order -h-w-c is not checked; known: hwc, hcw"),
    unit: ("unsupported", "the store unit line is not checked"),
    back_in_time: ("clock", "after clock"),
    nothing_runs: ("schedule", "fc3: never runs"),
}


def test_the_map_is_right_before_it_is_changed():
    graph, memory = data()
    assert check_map(graph, memory) == []
    assert len(of(memory["schedule"], "in_rows")) == 32 and len(of(memory["schedule"], "input")) == 31


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change.__name__)
def test_a_wrong_step_has_its_fault(change):
    graph, memory = data()
    change(memory["schedule"])
    faults = check_map(graph, memory)
    kind, words = FAULTS[change]
    assert any(fault.kind == kind and words in str(fault) for fault in faults), [str(fault) for fault in faults][:3]


PLANES = {
    "without a place": (lambda planes: planes.pop("conv0.y"), "missing", "conv0.y has no place"),
    "lacks a part": (lambda planes: planes["conv0.y"].pop("stride"), "missing", "conv0.y lacks stride"),
    "more than is known": (lambda planes: planes["conv0.y"].update(colour=1), "unsupported", "conv0.y: colour is not checked"),
    "outside": (lambda planes: planes["conv0.y"].update(external=True), "external", "neither input nor output"),
    "overlapping pixels": (lambda planes: planes["conv0.y"].update(stride=4), "form", "stride 4, size 8"),
    "more lines than there are": (lambda planes: planes["conv0.y"].update(ring_rows=33), "form", "keeps 33 of 32 lines"),
    "no lines": (lambda planes: planes["conv0.y"].update(ring_rows=0), "form", "keeps 0 of 32 lines"),
    "released early": (lambda planes: planes["conv0.y"].update(release=-1), "lifetime", "after its release -1"),
    "written early": (lambda planes: planes["pool2.y"].update(alloc=10**6), "lifetime", "before its alloc 1000000"),
}


@pytest.mark.parametrize(("change", "kind", "words"), PLANES.values(), ids=PLANES)
def test_a_wrong_plane_has_its_fault(change, kind, words):
    graph, memory = data()
    change(memory["tensors"])
    faults = check_map(graph, memory)
    assert any(fault.kind == kind and words in str(fault) for fault in faults), [str(fault) for fault in faults][:3]


def one_operator(kind: str) -> Net:
    """x -> one operator of a kind, with x dying at it."""
    net = Net(8, 8, 4)
    {
        "conv": lambda: net.conv(net.input, 4, 3),
        "strided": lambda: net.conv(net.input, 8, 2, 2, 0),
        "pool": lambda: net.pool(net.input, (2, 2), (1, 1)),
        "upsample": lambda: net.upsample(net.input, 2),
        "window": lambda: net._add(
            "window",
            (net.input,),
            (8, 8, 4),
            lines=[[[max(0, y - 1), y + 1] for y in range(8)]],
            columns=[[[x, x + 1] for x in range(8)]],
        ),
        "fc": lambda: net.fc(net.input, 64),
        "softmax": lambda: net.softmax(net.input),
        "add": lambda: net.add(net.input, net.input),
    }[kind]()
    return net


# kind; by how many bytes its output may begin before its input, at least; whether it may begin where that does
OVER = {
    "conv": (64, False),
    "strided": (32, False),
    "pool": (28, False),
    "upsample": (800, False),  # its last line ends after 1,024 bytes, and reads what begins after 224
    "window": (64, False),
    "fc": (64, False),
    "softmax": (256, False),
    "add": (0, True),
}


@pytest.mark.parametrize(("kind", "before", "at_once"), [(kind, *rule) for kind, rule in OVER.items()])
def test_how_far_an_output_lies_over_its_input(kind, before, at_once):
    """Line by line, element by element, or not at all; one byte closer is a fault."""
    problem = one_operator(kind).done()
    graph, output = graph_json(problem), problem.outputs[0]
    y = problem.tensors[output]

    def faults(distance: int) -> set[str]:
        start = 1024
        planes = {
            "input": Plane(start, 4, 4, 8, 8, -1, 0),
            output: Plane(start - distance, y.pixel_bytes, y.pixel_bytes, y.width, y.height, 0, 1),
        }
        plan = MemoryPlan("test", 4096, planes, (ScheduleStep(problem.ops[0].name, 0),))
        return {fault.kind for fault in check_map(graph, map_json(plan))}

    assert faults(before) == set()
    assert (faults(0) == set()) is at_once
    if before:
        assert faults(before - 1) == {"overwritten"}
    assert faults(-256) == set()  # behind the input
    if kind != "add":
        assert faults(-4) == {"overwritten"}
