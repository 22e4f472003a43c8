"""Layers described by tables of lines and columns: the tables hold all that the layers read, and no line more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.memory_execute import run
from support.memory_graphs import random_problem
from support.memory_referee import referee
from support.tables import every

from n2d2py.arithmetic import FLOAT32
from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.graph.forms import Real
from n2d2py.memory.access import LineTable, Pointwise, Whole
from n2d2py.memory.checker import check_plan
from n2d2py.memory.format import graph_json, in_known_terms, map_json
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.problem import MemoryProblem, OpSpec, TensorSpec
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.memory.stream import StreamPlanner
from n2d2py.operators.deconv import Deconv
from n2d2py.operators.resize import Resize
from n2d2py.operators.unpool import Unpool

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


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_with_tables(seed):
    problem = random_problem(seed, ops=10, tables=True)
    expected = run(problem, None)
    for plan in (
        plan_memory(problem, Settings(buffer_alignment=1)),
        plan_memory(problem, strategy="OptimizeAuto"),
        StreamPlanner().plan(problem, Settings()),
        StreamPlanner(True).plan(problem, Settings()),
    ):
        assert check_plan(problem, plan) == [] == check_plan(in_known_terms(problem, plan), plan)
        assert run(problem, plan, seed) == expected


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
    with pytest.raises(N2D2Error, match="E602.*table of lines"):
        plan_memory(window(lines))


def test_files_say_fc_where_nothing_overlaps():
    """A reader that knows only the terms of the format accepts the map of a plan that keeps the layer's input apart."""
    problem = window([[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]])
    for plan in (plan_memory(problem), plan_memory(problem, Settings(optimize_buffer=False))):
        written = in_known_terms(problem, plan)
        apart = not plan.overlaps(problem, "up")
        assert kind(written, "up") == ("fc" if apart else "window")
        assert (referee(graph_json(written), map_json(plan)) == []) == apart


@every("strategy", ["OptimizeOverlap", "None", "OptimizeMaxLifetimeMaxSizeFirst", "OptimizeAuto"])
def test_nothing_overlaps_where_it_saves_nothing(strategy):
    """The peak lies before the layer: its input stays apart, and a reader of the format alone accepts the map."""
    small = window([[0, 1], [0, 2], [1, 3], [2, 4], [3, 4]])
    tensors = {"y": small.tensors["y"], "image": TensorSpec("image", 20, 20, 2), "pooled": TensorSpec("pooled", 4, 3, 2)}
    first = OpSpec("pool", Whole(), ("image",), "pooled")
    problem = MemoryProblem(tensors, ("image",), ("y",), (first, replace(small.op("up"), inputs=("pooled",))))
    plan = plan_memory(problem, Settings(buffer_alignment=1), strategy=strategy)
    written = in_known_terms(problem, plan)
    assert kind(written, "up") == "fc" and referee(graph_json(written), map_json(plan)) == []
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
        assert check_plan(written, plan) == [] == referee(graph_json(written), map_json(plan))
