"""Memory graphs that cannot be planned: each fault by itself, told as E602; what operators announce."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.memory_networks import Net
from support.tables import every

from n2d2py.errors import N2D2Error
from n2d2py.memory.access import Window
from n2d2py.memory.format import graph_json, read_graph
from n2d2py.memory.plan import Plane
from n2d2py.memory.problem import MemoryProblem, OpSpec


def told(attempt: Callable[[], object]) -> list[str]:
    with pytest.raises(N2D2Error) as caught:
        attempt()
    errors = caught.value.errors
    assert {error.code for error in errors} == {"E602"}
    return [f"{error.where}: {error.what}" for error in errors]


def graph(op: dict, *shapes: tuple[int, int, int], **sizes: int) -> dict:
    """The GRAPH of an operator that reads x0, x1, ... and writes y; the last shape is that of y."""
    names = [*(f"x{index}" for index in range(len(shapes) - 1)), "y"]
    tensors = {
        name: {"h": h, "w": w, "c": c, "bytes": sizes.get(name, 1)} for name, (h, w, c) in zip(names, shapes, strict=True)
    }
    return {"tensors": tensors, "inputs": names[:-1], "outputs": ["y"], "ops": [op]}


def op(type: str, count: int = 1, scratch: int = 0, **attributes) -> dict:
    inputs = [f"x{index}" for index in range(count)]
    return {"name": "op", "type": type, "inputs": inputs, "output": "y", **attributes, "scratch_bytes": scratch}


WINDOW = {"kh": 2, "kw": 3, "sh": 1, "sw": 1, "pads": [0, 0, 0, 0]}
LINES = {"lines": [[[0, 1], [1, 2]]], "columns": [[[0, 2], [1, 3], [2, 3]]]}
RIGHT = [
    graph(op("conv", **WINDOW), (4, 5, 3), (3, 3, 7)),
    graph(op("conv", **{**WINDOW, "kh": 1, "kw": 1, "pads": [-1, 0, 0, -2]}), (4, 5, 3), (3, 3, 7)),
    graph(op("pool", **WINDOW), (4, 5, 3), (3, 3, 3)),
    graph(op("reshape"), (4, 5, 3), (1, 1, 60)),
    graph(op("concat", 2), (4, 5, 3), (4, 5, 1), (4, 5, 4)),
    graph(op("add", 2), (4, 5, 3), (1, 1, 3), (4, 5, 3)),
    graph(op("upsample", scale=2), (4, 5, 3), (8, 10, 3)),
    graph(op("upsample", scale=[2, 3]), (4, 5, 3), (8, 15, 3)),
    graph(op("window", **LINES), (2, 3, 4), (2, 3, 9)),
    graph(op("fc", 2, 16), (4, 5, 3), (1, 1, 2), (1, 1, 9)),
]
WRONG = [
    (graph(op("mystery"), (4, 5, 3), (4, 5, 3)), "the operator type mystery is unknown; known: add, "),
    (graph(op("fc", 0), (4, 5, 3), (1, 1, 9)), "the operator reads nothing"),
    (graph(op("fc", 1, -1), (4, 5, 3), (1, 1, 9)), "scratch of -1 bytes"),
    (graph(op("conv", 2, **WINDOW), (4, 5, 3), (4, 5, 3), (3, 3, 7)), "a convolution reads one tensor, not 2"),
    (graph(op("reshape", 2), (4, 5, 3), (4, 5, 3), (3, 3, 7)), "a view reads one tensor, not 2"),
    *(
        (
            graph(op("conv", **{k: v for k, v in WINDOW.items() if k != key}), (4, 5, 3), (3, 3, 7)),
            f"conv needs the attribute {key}",
        )
        for key in WINDOW
    ),
    (graph(op("upsample"), (4, 5, 3), (8, 10, 3)), "upsample needs the attribute scale"),
    *(
        (graph(op("pool", **{**WINDOW, key: 0}), (4, 5, 3), (3, 3, 3)), "kernel and stride must be at least 1")
        for key in ("kh", "kw", "sh", "sw")
    ),
    *(
        (graph(op("conv", **{**WINDOW, "pads": [-(side == at) for at in range(4)]}), (4, 5, 3), (3, 3, 3)), "pads at least 0")
        for side in (0, 2)
    ),
    (graph(op("conv", **{**WINDOW, "kw": 1, "pads": [-1, 0, 0, 0]}), (4, 5, 3), (3, 3, 3)), "pads at least 0"),
    (graph(op("pool", **WINDOW), (4, 5, 3), (3, 3, 4)), "a pool keeps the channels; 3 in, 4 out"),
    (
        graph(op("conv", residual="x0", **WINDOW), (3, 3, 7), (3, 3, 7)),
        "its residual x0 has not the form of its output, or is its input",
    ),
    (graph(op("reshape"), (4, 5, 3), (1, 1, 61)), "(4, 5, 3) cannot be seen as (1, 1, 61)"),
    (graph(op("reshape"), (4, 5, 3), (1, 1, 60), y=2), "(4, 5, 3) cannot be seen as (1, 1, 60)"),
    (graph(op("concat", 2), (4, 5, 3), (4, 5, 1), (4, 5, 5)), "do not concatenate to (4, 5, 5)"),
    (graph(op("concat", 2), (4, 5, 3), (4, 6, 1), (4, 5, 4)), "do not concatenate to (4, 5, 4)"),
    (graph(op("add", 2), (4, 1, 3), (1, 5, 3), (4, 5, 3)), "no operand has the shape (4, 5, 3) of the output"),
    (graph(op("upsample", scale=2), (4, 5, 3), (8, 5, 3)), "(4, 5, 3) upsampled by (2, 2) is not (8, 5, 3)"),
    (graph(op("upsample", scale=[1, 2]), (4, 5, 3), (4, 10, 4)), "(4, 5, 3) upsampled by (1, 2) is not (4, 10, 4)"),
    (graph(op("window", **{**LINES, "lines": [[[0, 1]]]}), (2, 3, 4), (2, 3, 9)), "the table of lines is not one of ranges"),
    (
        graph(op("window", **{**LINES, "lines": [[[0, 1], [1, 3]]]}), (2, 3, 4), (2, 3, 9)),
        "the table of lines is not one of ranges",
    ),
    (
        graph(op("window", **{**LINES, "lines": [[[0, 1], [2, 1]]]}), (2, 3, 4), (2, 3, 9)),
        "the table of lines is not one of ranges",
    ),
    (
        graph(op("window", **{**LINES, "columns": [[[-1, 2], [1, 3], [2, 3]]]}), (2, 3, 4), (2, 3, 9)),
        "the table of columns is not one",
    ),
    (graph(op("window", **{**LINES, "columns": []}), (2, 3, 4), (2, 3, 9)), "the table of columns is not one of ranges"),
]


@every("data", RIGHT, ids=lambda data: data["ops"][0]["type"])
def test_what_can_be_planned(data):
    assert graph_json(read_graph(data))["ops"][0]["type"] == data["ops"][0]["type"]


@every("data, text", WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_operators_that_are_wrong(data, text):
    (line,) = told(lambda: read_graph(data))
    assert line.startswith("op: ") and text in line


def net() -> MemoryProblem:
    made = Net(4, 4, 2)
    made.conv(made.conv(made.input, 3, 3), 5, 1)
    return made.done()


def test_graphs_that_are_wrong():
    problem = net()
    first, second = problem.ops
    tensors = problem.tensors
    for wrong, lines in (
        (replace(problem, inputs=("input", "input")), ["input: the network input is unknown or listed twice"]),
        (replace(problem, inputs=("input", "nothing")), ["nothing: the network input is unknown or listed twice"]),
        (replace(problem, outputs=("conv1.y", "nothing")), ["nothing: the network output is never written"]),
        (replace(problem, ops=(second,)), ["conv1: reads conv0.y before it is written"]),
        (
            replace(problem, ops=(first, second, replace(second, name="c"))),
            ["c: its output conv1.y is unknown or written twice"],
        ),
        (
            replace(problem, ops=(first, replace(second, output="z"))),
            ["conv1: its output z is unknown or written twice", "conv1.y: the network output is never written"],
        ),
        (replace(problem, ops=(first, replace(second, name="conv0"))), ["conv0: two operators have this name"]),
        (replace(problem, tensors={**tensors, "z": tensors["input"]}), ["z: the tensor is listed under another name"]),
    ):
        assert told(wrong.validate) == lines
    for field in ("height", "width", "channels", "element_bytes"):
        empty = replace(problem, tensors={**tensors, "z": replace(tensors["input"], name="z", **{field: 0})})
        (line,) = told(empty.validate)
        assert line.startswith("z: the tensor has ") and "each must be at least 1" in line


@every(
    "kernel, dilation, dil",
    [
        ((3, 3), (2, 2), 2),
        ((3, 1), (2, 5), 2),
        ((1, 3), (2, 5), 5),
        ((1, 1), (2, 5), 1),
        ((3, 3), (2, 5), [2, 5]),
        ((3, 3), (1, 1), 1),
    ],
)
def test_the_dilation_is_one_number_where_it_can_be(kernel, dilation, dil):
    made = OpSpec("c", Window(kernel, dilation=dilation), ("x",), "y")
    (entry,) = graph_json(MemoryProblem({}, (), (), (made,)))["ops"]
    assert entry["dil"] == dil and (entry["kh"], entry["kw"]) == kernel


def test_lines_of_planes_in_two_pieces_and_of_rings():
    plane = Plane(offset=40, size=2, stride=5, length=4, count=7, alloc=0, release=1)
    assert (plane.line_bytes, plane.bytes, plane.lines_before_wrap, plane.contiguous) == (20, 140, 7, True)
    assert [plane.line_offset(y) for y in (0, 3, 6)] == [40, 100, 160]
    wrapped = replace(plane, limit=60, wrap_offset=8)
    assert (wrapped.lines_before_wrap, wrapped.contiguous) == (3, False)
    assert [wrapped.line_offset(y) for y in (0, 2, 3, 6)] == [40, 80, 8, 68]
    ring = replace(plane, ring_rows=3)
    assert ring.bytes == 60 and [ring.line_offset(y) for y in range(5)] == [40, 60, 80, 40, 60]
