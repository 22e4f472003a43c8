"""Columns of strips, segments that pools end, orders and solved placements, counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.memory_networks import Net

from n2d2py.arithmetic import NumType
from n2d2py.errors import InternalError
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.access import (
    Access,
    Joined,
    LineTable,
    Pointwise,
    PoolWindow,
    Repacked,
    TensorSpec,
    Upsample,
    View,
    Whole,
    Window,
)
from n2d2py.memory.buffers import Buffers
from n2d2py.memory.cut import Cutter
from n2d2py.memory.from_graph import memory_problem, with_columns
from n2d2py.memory.optimal import solve
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.plan import MemoryPlan, Plane
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.reorder import best_order
from n2d2py.memory.settings import Settings
from n2d2py.memory.strip_search import strippable
from n2d2py.memory.strips import (
    StripCut,
    beginning_at,
    extra_work,
    multiply_accumulates,
    narrowed,
    ranges_read,
    read_columns,
    reading_columns,
    segment_columns,
    window_columns,
    with_strips,
)
from n2d2py.operators.columns import Columns

SETTINGS = Settings(clock="op", buffer_alignment=1)
WINDOW = Window((5, 3), (4, 2), (9, 1, 8, 2), (1, 3))
"""Columns: 3 taps at distances of 3, every 2, after 1 column of zeros."""


def cutter(problem: MemoryProblem, pooled: bool = False) -> Cutter:
    buffers = Buffers(problem, SETTINGS, ())
    return Cutter(buffers, [op for op in buffers.order() if op.name not in buffers.views], lambda size: size, pooled)


# ---- columns -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("columns", "covered", "read"),
    [
        ((0, 1), (-1, 6), (0, 6)),
        ((0, 3), (-1, 10), (0, 10)),
        ((2, 5), (3, 14), (3, 12)),
        ((5, 6), (9, 16), (9, 12)),
        ((7, 8), (13, 20), (11, 12)),
    ],
)
def test_columns_of_windows(columns, covered, read):
    """Of 12 columns."""
    assert window_columns(WINDOW, columns) == covered and read_columns(WINDOW, columns, 12) == read
    assert read_columns(Pointwise(), columns, 3) == columns


def test_columns_of_many_ranges():
    many = np.array([[0, 1], [2, 5], [7, 8]])
    assert ranges_read(WINDOW, many, 12).tolist() == [[0, 6], [3, 12], [11, 12]] and ranges_read(Pointwise(), many, 1) is many


def test_a_window_over_columns_that_it_holds():
    assert beginning_at(WINDOW, (3, 14), (3, 12)).pads == (9, 0, 8, 2) and beginning_at(WINDOW, (-1, 6), (0, 7)).pads == (
        9,
        1,
        8,
        -1,
    )
    assert narrowed(WINDOW, [(2, 12)], (2, 5), 4) == replace(WINDOW, pads=(9, -1, 8, 2))
    assert narrowed(Pointwise(), [(2, 5), (2, 5)], (2, 5), 4) == Pointwise()
    shifted = narrowed(Pointwise(prefers_caller=True), [(2, 5), (1, 5)], (2, 5), 2)
    lines = ((0, 1), (1, 2))
    assert shifted == LineTable((lines, lines), (((0, 1), (1, 2), (2, 3)), ((1, 2), (2, 3), (3, 4))), prefers_caller=True)


def test_what_reads_columns_of_a_whole():
    source, output = TensorSpec("x", 20, 12, 2), TensorSpec("y", 3, 2, 2)
    assert reading_columns(WINDOW, [source], [4], output).pads == (9, -3, 8, 0)  # columns 3 to 12 of 12
    assert reading_columns(WINDOW, [source], [0], output).pads == (9, 1, 8, -4)
    found = reading_columns(Pointwise(), [source, source], [4, 0], replace(output, height=1))
    assert found == LineTable((((0, 1),),) * 2, (((4, 5), (5, 6)), ((0, 1), (1, 2))))


def strips() -> tuple[MemoryProblem, StripCut]:
    """x -> a -> p -> b -> y, all of 4 lines of 6 pixels of 2 bytes, in two strips of three columns; b reads a column more on each side."""
    tensors = {name: TensorSpec(name, 4, 6, 2) for name in "xpy"}
    ops = (OpSpec("a", Window((1, 1)), ("x",), "p"), OpSpec("b", Window((1, 3), pads=(0, 1, 0, 1)), ("p",), "y", layer="Conv"))
    problem = MemoryProblem(tensors, ("x",), ("y",), ops)
    found = tuple(segment_columns(ops, tensors, each) for each in ((0, 3), (3, 6)))
    return problem, StripCut(("a", "b"), found)


def test_operators_strip_by_strip():
    problem, cut = strips()
    assert cut.strips == ({"y": (0, 3), "p": (0, 4)}, {"y": (3, 6), "p": (2, 6)}) and cut.count == 2
    made = with_strips(problem, [cut])
    assert [(op.name, op.inputs, op.output) for op in made.ops] == [
        ("a.strip0", ("x",), "p.strip0"),
        ("b.strip0", ("p.strip0",), "y.strip0"),
        ("a.strip1", ("x",), "p.strip1"),
        ("b.strip1", ("p.strip1",), "y.strip1"),
        ("b", ("y.strip0", "y.strip1"), "y"),
    ]
    assert [getattr(op.access, "pads", None) for op in made.ops] == [
        (0, 0, 0, -2),
        (0, 1, 0, 0),
        (0, -2, 0, 0),
        (0, 0, 0, 1),
        None,
    ]
    assert isinstance(made.ops[-1].access, Joined) and [op.layer for op in made.ops[1::2]] == ["Conv", "Conv"]
    assert made.ops[-1].layer == "SideBySide"
    widths = {name: tensor.width for name, tensor in made.tensors.items()}
    assert widths == {"x": 6, "y": 6, "p.strip0": 4, "y.strip0": 3, "p.strip1": 4, "y.strip1": 3}
    # two columns of p are made twice: 2 x 4 lines x 2 channels x 2 inputs
    assert extra_work(problem.ops, problem.tensors, iter(cut.strips)) == 2 * 4 * 2 * 2
    assert multiply_accumulates(made) - multiply_accumulates(problem) == 32 and multiply_accumulates(problem) == 96 + 288
    assert with_strips(problem, []) == problem


def test_only_the_first_strip_makes_room_for_the_result():
    problem, cut = strips()
    found = cutter(with_strips(problem, [cut]))
    # x 48, y 48; a strip of p 32
    assert [found.crossing(at) for at in range(5)] == [48, 48 + 32, 48 + 48, 32 + 48, 48]
    assert found.weigh(1, 2).bytes == 48 + 32 + 48 and found.weigh(3, 4).bytes == 32 + 48


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, True),
        ({"access": Window((1, 1), by_lines=False)}, False),
        ({"scratch_bytes": 1}, False),
        ({"access": PoolWindow((1, 1))}, True),
        ({"access": PoolWindow((4, 6))}, True),  # of another output than one pixel
        ({"access": PoolWindow((4, 6)), "output": "one"}, False),
        ({"access": Pointwise()}, True),
        ({"access": Pointwise(), "inputs": ("x", "p")}, True),
        ({"access": Pointwise(), "inputs": ("x", "one")}, False),
        ({"access": Upsample((1, 1))}, False),
        ({"access": Whole()}, False),
        ({"access": View()}, False),
    ],
)
def test_what_can_make_some_columns_alone(changes, wanted):
    tensors = {name: TensorSpec(name, 4, 6, 2) for name in "xpy"} | {"one": TensorSpec("one", 1, 1, 2)}
    op = replace(OpSpec("a", Window((1, 1)), ("x",), "y"), **changes)
    assert strippable(op, MemoryProblem(tensors, ("x",), ("y",), (op,))) is wanted


# ---- segments that pools end ---------------------------------------------------------------------
CONV, POOL, EW = Window((3, 3), pads=(1, 1, 1, 1)), PoolWindow((2, 2), (2, 2)), Pointwise()
PACK, UNPACK = Repacked.of(8, 8, False), Repacked.of(8, 8, True)
CHAINS: dict[str, tuple[list[Access], list[tuple[int, int]]]] = {
    "a convolution and a pool": ([CONV, POOL], [(0, 2)]),
    "a function between": ([CONV, EW, POOL], [(0, 3)]),
    "two convolutions": ([CONV, CONV, POOL], [(0, 1), (1, 3)]),
    "windows that overlap": ([CONV, PoolWindow((2, 2), (1, 2))], [(0, 1), (1, 2)]),
    "padding": ([CONV, PoolWindow((2, 2), (2, 2), (0, 1, 0, 0))], [(0, 1), (1, 2)]),
    "a convolution behind": ([CONV, POOL, CONV], [(0, 2), (2, 3)]),
    "a pool alone": ([POOL], [(0, 1)]),
    "what packs": ([CONV, PACK], [(0, 2)]),
    "a pool, and what packs": ([CONV, POOL, Repacked.of(4, 4, False)], [(0, 3)]),
    "what unpacks": ([UNPACK, CONV], [(0, 2)]),
    "what unpacks alone": ([UNPACK], [(0, 1)]),
}


@pytest.mark.parametrize(("accesses", "segments"), CHAINS.values(), ids=CHAINS)
def test_segments_that_pools_and_packing_end(accesses, segments):
    tensors, ops, source, side = {"x": TensorSpec("x", 8, 8, 4)}, [], "x", 8
    for number, access in enumerate(accesses):
        side = side // 2 if access is POOL else side
        name = f"t{number}"
        wide = number + 1 < len(accesses) and not access is accesses[number + 1] is CONV
        tensors[name] = TensorSpec(name, side, side, 40 if wide else 1)
        ops.append(OpSpec(f"o{number}", access, (source,), name))
        source = name
    if accesses[0] is UNPACK and len(accesses) > 1:
        tensors["t0"] = TensorSpec("t0", 8, 8, 40)
    found = cutter(MemoryProblem(tensors, ("x",), (source,), tuple(ops)), pooled=True)
    assert [(segment.begin, segment.end) for segment in found.cut(0)] == segments


# ---- orders ------------------------------------------------------------------------------------
def test_views_follow_what_they_see():
    """The branch with the large tensor runs first, and its view with it."""
    sizes = {"x": 2, "a": 10, "b": 40, "v": 40, "c": 1, "y": 1}
    tensors = {name: TensorSpec(name, 1, 1, size) for name, size in sizes.items()}
    ops = (
        OpSpec("a", Whole(), ("x",), "a"),
        OpSpec("b", Whole(), ("x",), "b"),
        OpSpec("v", View(), ("b",), "v"),
        OpSpec("c", Whole(), ("v",), "c"),
        OpSpec("y", Whole(), ("a", "c"), "y"),
    )
    problem = MemoryProblem(tensors, ("x",), ("y",), ops)
    assert [op.name for op in best_order(problem, SETTINGS).ops] == ["b", "v", "c", "a", "y"]
    aliased = replace(problem, ops=(*ops[:4], OpSpec("y", Window((1, 1), aliases=1), ("a", "c"), "y")))
    assert best_order(aliased, SETTINGS) is aliased


# ---- the solver ----------------------------------------------------------------------------------
def test_a_placement_at_the_bound_is_left_alone():
    net = Net(4, 4, 2)
    net.fc(net.fc(net.input, 7), 3)
    packing = Packing(Buffers(net.done(), SETTINGS, ()))
    start = packing.first_fit([0, 1, 2], [False, False])
    assert start.bytes == packing.bound == 39 and solve(packing, start) is start
    pytest.importorskip("ortools.sat.python.cp_model")
    worse = Placement((50, 0, 20), (False, False), 82)
    found = solve(packing, worse)
    assert found.bytes == 39 and packing.bound == 39
    ends = [(at, at + block.size) for at, block in zip(found.offsets, packing.blocks, strict=True)]
    assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in ((ends[0], ends[1]), (ends[1], ends[2])))


# ---- columns of a network's tensors ----------------------------------------------------------------
@pytest.mark.parametrize(
    ("plane", "wanted"),
    [
        (Plane(100, 3, 4, 8, 5, 0, 2), Plane(108, 3, 4, 3, 5, 0, 2, pitch=32)),
        (Plane(100, 3, 4, 8, 5, 0, 2, pitch=50), Plane(108, 3, 4, 3, 5, 0, 2, pitch=50)),
        (Plane(100, 3, 4, 8, 5, 0, 2, limit=64, wrap_offset=10), Plane(108, 3, 4, 3, 5, 0, 2, 64, 18, pitch=32)),
    ],
)
def test_the_plane_of_some_columns(plane, wanted):
    """Columns 2 to 5 of 8."""
    graph = QuantGraph("g", 8, inputs=["x"], outputs=["c"])
    graph.nodes = [QuantNode("c", Columns(2, 5), ["x"], ["c"])]
    assert with_columns(graph, MemoryPlan("by hand", 999, {"x": plane}, ())).planes == {"x": plane, "c": wanted}


def test_an_operator_without_an_access_is_named():
    graph = QuantGraph("g", 8, inputs=["x"], outputs=["y"])
    graph.tensors = {name: QuantTensor(name, (1, 2, 3, 4), NumType(16)) for name in "xy"}

    class Unknown(Columns):
        kind = "Unknown"
        is_part = False

    graph.nodes = [QuantNode("y", Unknown(0, 4), ["x"], ["y"])]
    with pytest.raises(InternalError, match="no memory access for Unknown"):
        memory_problem(graph)
