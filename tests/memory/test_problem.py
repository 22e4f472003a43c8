"""Memory graphs: each fault by itself, told as E602; what operators announce, and the lines and columns that they read."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from support.errors import error_of, refused
from support.memory_execute import run
from support.memory_files import read_graph
from support.memory_networks import Net
from support.memory_plans import line_offset
from support.ops import Deconv, Resize, Unpool
from support.tables import every

from n2d2py.arithmetic import FLOAT32
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor, Real
from n2d2py.memory.access import LineTable, Pointwise, Whole, Window
from n2d2py.memory.checker import check_map, check_plan
from n2d2py.memory.format import graph_json, in_known_terms, map_json
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.plan import Plane
from n2d2py.memory.problem import MemoryProblem, OpSpec, TensorSpec
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory


def is_refused(attempt: Callable[[], object]) -> bool:
    return {error.code for error in error_of(attempt).errors} == {"E602"}


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


@every("data", RIGHT, ids=lambda data: data["ops"][0]["type"])
def test_what_can_be_planned(data):
    assert graph_json(read_graph(data))["ops"][0]["type"] == data["ops"][0]["type"]


def broken(data: dict) -> Iterator[dict]:
    """Copies of a graph of one operator with one fault each."""
    right, height = data["ops"][0], data["tensors"]["y"]["h"]
    changes: list[dict] = [{"inputs": []}, {"scratch_bytes": -1}]
    if right["type"] in ("conv", "reshape"):
        changes.append({"inputs": ["x0", "x0"]})
    if right["type"] in ("conv", "pool"):
        changes += [{key: 0} for key in ("kh", "kw", "sh", "sw")]
        changes += [{**WINDOW, "pads": [-(side == at) for at in range(4)]} for side in (0, 2)]
    if right["type"] == "conv":
        changes.append({"residual": "x0"})
    if right["type"] == "window":
        changes += [{key: table} for key in LINES for table in ([], [[[0, 1]]], [[[-1, 1]] * height], [[[0, 9]] * height])]
    for change in changes:
        yield {**data, "ops": [{**right, **change}]}
    if right["type"] not in ("conv", "fc", "window"):
        yield {**data, "tensors": {**data["tensors"], "y": {**data["tensors"]["y"], "c": data["tensors"]["y"]["c"] + 1}}}


@every("data", RIGHT, ids=lambda data: data["ops"][0]["type"])
def test_operators_that_are_wrong(data):
    for wrong in broken(data):
        assert is_refused(lambda wrong=wrong: read_graph(wrong)), wrong


def net() -> MemoryProblem:
    made = Net(4, 4, 2)
    made.conv(made.conv(made.input, 3, 3), 5, 1)
    return made.done()


def test_graphs_that_are_wrong():
    problem = net()
    first, second = problem.ops
    tensors = problem.tensors
    empty = [replace(tensors["input"], name="z", **{field: 0}) for field in ("height", "width", "channels", "element_bytes")]
    for wrong in (
        replace(problem, inputs=("input", "input")),
        replace(problem, inputs=("input", "nothing")),
        replace(problem, outputs=("conv1.y", "nothing")),
        replace(problem, ops=(second,)),
        replace(problem, ops=(first, second, replace(second, name="c"))),
        replace(problem, ops=(first, replace(second, output="z"))),
        replace(problem, ops=(first, replace(second, name="conv0"))),
        replace(problem, tensors={**tensors, "z": tensors["input"]}),
        *(replace(problem, tensors={**tensors, "z": tensor}) for tensor in empty),
    ):
        assert is_refused(wrong.validate), wrong


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
    assert [line_offset(plane, y) for y in (0, 3, 6)] == [40, 100, 160]
    wrapped = replace(plane, limit=60, wrap_offset=8)
    assert (wrapped.lines_before_wrap, wrapped.contiguous) == (3, False)
    assert [line_offset(wrapped, y) for y in (0, 2, 3, 6)] == [40, 80, 8, 68]
    ring = replace(plane, ring_rows=3)
    assert ring.bytes == 60 and [line_offset(ring, y) for y in range(5)] == [40, 60, 80, 40, 60]


RANDOM = np.random.default_rng(3)
DECONVOLUTIONS = [
    ((kernel, kernel + 1), Deconv(stride, pads, dilation))
    for kernel, stride, pads, dilation in (
        (2, (2, 2), (0, 0, 0, 0), (1, 1)),
        (3, (2, 1), (1, 0, 1, 0), (1, 1)),
        (4, (2, 3), (1, 1, 1, 1), (1, 1)),
        (2, (3, 2), (0, 0, -2, -1), (1, 2)),
        (3, (1, 2), (2, 0, 1, 0), (2, 1)),
    )
]
RESIZES = [
    Resize(size, "Bilinear", how) for size in ((11, 9), (3, 13), (1, 1)) for how in ("HalfPixel", "AlignCorners", "Asymmetric")
] + [Resize((7, 5), "Nearest")]


def one_layer(op, shapes: list[tuple[int, ...]], params: dict) -> tuple[QuantGraph, QuantNode]:
    """A floating-point network of one layer."""
    names = [f"x{i}" for i in range(len(shapes))]
    node = QuantNode("layer", op, names, ["y"], Real(params))
    graph = QuantGraph("one", -32)
    for name, shape in [*zip(names, shapes, strict=True), ("y", op.output_shapes(shapes, node)[0])]:
        graph.tensors[name] = QuantTensor(name, shape, FLOAT32)
    graph.inputs, graph.outputs = names, ["y"]
    graph.nodes.append(node)
    return graph, node


def assert_tables(op, shapes, params=None) -> None:
    """A line or column of an input that changes, changes no output line or column outside of those that read it."""
    graph, node = one_layer(op, shapes, params or {})
    (spec,) = memory_problem(graph).ops
    inputs = [RANDOM.normal(size=shape).astype(np.float32) for shape in shapes]
    base = op.run(inputs, node)[0]
    for number, x in enumerate(inputs):
        for axis, key in ((2, "lines"), (3, "columns")):
            tables = getattr(spec.access, key)[number]
            seen = np.zeros((base.shape[axis], x.shape[axis]), bool)
            for position in range(x.shape[axis]):
                changed = [values.copy() for values in inputs]
                np.moveaxis(changed[number], axis, 0)[position] += 1000 * RANDOM.choice((-1, 1))
                differs = np.moveaxis(op.run(changed, node)[0] != base, axis, 0).reshape(base.shape[axis], -1).any(axis=1)
                seen[:, position] = differs
            for at, (first, stop) in enumerate(tables):
                read = np.flatnonzero(seen[at])
                assert not len(read) or (first <= read[0] and read[-1] < stop), (key, at, read, first, stop)
                if isinstance(op, Deconv):
                    assert len(read) == 0 == stop - first or (first, stop) == (read[0], read[-1] + 1), (key, at)


@every("kernel, op", DECONVOLUTIONS, ids=str)
def test_transposed_convolutions(kernel, op):
    weights = RANDOM.normal(size=(3, 2, *kernel)).astype(np.float32)
    assert_tables(op, [(1, 2, 5, 4)], {"weights": weights, "bias": np.zeros(3, np.float32)})


@every("op", RESIZES, ids=str)
def test_resampling(op):
    assert_tables(op, [(1, 2, 5, 6)])


@pytest.mark.parametrize(
    "op, size",
    [(Unpool((2, 2), (2, 2)), (6, 5)), (Unpool((3, 2), (2, 1), (1, 0, 1, 1)), (7, 5)), (Unpool((2, 3), (3, 3)), (8, 9))],
    ids=str,
)
def test_unpooling(op, size):
    pooled = [
        (n + p + q - k) // s + 1 for n, k, s, p, q in zip(size, op.kernel, op.stride, op.pads[:2], op.pads[2:], strict=True)
    ]
    assert_tables(op, [(1, 2, *pooled), (1, 2, *size)])


def window(lines: list[list[int]]) -> MemoryProblem:
    tensors = {"x": TensorSpec("x", 4, 3, 2), "y": TensorSpec("y", len(lines), 3, 2)}
    access = LineTable((tuple(map(tuple, lines)),), (((0, 1), (1, 2), (2, 3)),))
    return MemoryProblem(tensors, ("x",), ("y",), (OpSpec("up", access, ("x",), "y"),))


def kind(problem: MemoryProblem, name: str) -> str:
    """The type that the file gives an operator."""
    return next(op["type"] for op in graph_json(problem)["ops"] if op["name"] == name)


def test_lines_that_go_back_keep_their_input():
    straight = [[0, 1], [1, 2], [2, 3], [3, 4]]
    for lines, arena in ((straight, 30), (straight[::-1], 48), ([[0, 4]] * 4, 48), ([[0, 0]] * 4, 24)):
        problem = window(lines)
        plan = plan_memory(problem, Settings(buffer_alignment=1))
        assert check_plan(problem, plan) == []
        assert plan.arena_bytes == arena, lines
        assert run(problem, plan, 1) == run(problem, None)


@pytest.mark.parametrize("lines", [[[0, 5]], [[-1, 2]], [[2, 1]]])
def test_tables_beyond_the_input_are_refused(lines):
    assert refused("E602.*table of lines", lambda: plan_memory(window(lines)))


def test_files_say_fc_where_nothing_overlaps():
    """The file gives a plan that keeps the layer's input apart an operator of the known terms."""
    problem = window([[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]])
    for plan in (plan_memory(problem), plan_memory(problem, Settings(optimize_buffer=False))):
        written = in_known_terms(problem, plan)
        apart = not plan.overlaps(problem, "up")
        assert kind(written, "up") == ("fc" if apart else "window")
        assert check_map(graph_json(written), map_json(plan)) == []


@every("strategy", ["OptimizeOverlap", "None", "OptimizeMaxLifetimeMaxSizeFirst", "OptimizeAuto"])
def test_nothing_overlaps_where_it_saves_nothing(strategy):
    """The peak lies before the layer: its input stays apart, in terms of the format."""
    small = window([[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]])
    tensors = {"y": small.tensors["y"], "image": TensorSpec("image", 20, 20, 2), "pooled": TensorSpec("pooled", 4, 3, 2)}
    first = OpSpec("pool", Whole(), ("image",), "pooled")
    problem = MemoryProblem(tensors, ("image",), ("y",), (first, replace(small.op("up"), inputs=("pooled",))))
    plan = plan_memory(problem, Settings(buffer_alignment=1), strategy=strategy)
    written = in_known_terms(problem, plan)
    assert kind(written, "up") == "fc" and check_map(graph_json(written), map_json(plan)) == []
    assert plan.arena_bytes == 20 * 20 * 2 + 4 * 3 * 2
    assert run(problem, plan, 1) == run(problem, None)


def test_files_say_fc_for_operands_that_are_repeated():
    """A sum with one value for each channel is a sum only where it lies over its input."""
    tensors = {"x": TensorSpec("x", 4, 3, 8), "s": TensorSpec("s", 1, 1, 8), "y": TensorSpec("y", 4, 3, 8)}
    op = OpSpec("scaled", Pointwise(), ("x", "s"), "y")
    for outputs, word in ((("y",), "ew"), (("x", "y"), "fc")):
        problem = MemoryProblem(tensors, ("x", "s"), outputs, (op,))
        plan = plan_memory(problem)
        written = in_known_terms(problem, plan)
        assert kind(written, "scaled") == word
        assert check_map(graph_json(written), map_json(plan)) == []
