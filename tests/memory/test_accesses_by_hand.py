"""What operators announce of their access, in numbers counted by hand: lines read, lines that are dead, work, faults."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from n2d2py.arithmetic import NumType
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.memory.access import (
    Access,
    Concatenated,
    Joined,
    LineTable,
    Overlay,
    Pointwise,
    PoolWindow,
    Repacked,
    TensorSpec,
    Upsample,
    View,
    Whole,
    Window,
    same_order,
)
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.stages.packed_activations import bytes_beside

X = TensorSpec("x", 7, 5, 6)


def tensor(height: int, width: int, channels: int, element: int = 1, name: str = "y") -> TensorSpec:
    return TensorSpec(name, height, width, channels, element)


def test_bytes_of_a_tensor():
    found = tensor(2, 3, 5, 4)
    assert (found.shape, found.pixel_bytes, found.bytes) == ((2, 3, 5), 20, 120)
    assert tensor(2, 3, 5).bytes == 30


@pytest.mark.parametrize(
    ("window", "reads", "dead", "lead"),
    [
        (Window((3, 1)), [[0, 1, 2], [1, 2, 3], [2, 3, 4]], [0, 1, 2], 0),
        (Window((3, 1), (2, 1)), [[0, 1, 2], [2, 3, 4], [4, 5, 6]], [0, 2, 4], 0),
        (Window((3, 1), (2, 3), (1, 0, 1, 0)), [[0, 1], [1, 2, 3], [3, 4, 5], [5, 6]], [0, 1, 3, 5], 0),
        (Window((3, 1), (1, 3), (2, 0, 0, 0)), [[0], [0, 1], [0, 1, 2], [1, 2, 3]], [0, 0, 0, 1], 2),
        (Window((4, 1), (3, 1), (5, 0, 0, 0)), [[], [0, 1], [1, 2, 3, 4]], [0, 0, 1], 1),
        (Window((3, 1), (1, 1), (3, 0, 3, 0), (2, 5)), [[1], [0, 2], [1, 3], [0, 2, 4], [1, 3, 5]], [0, 0, 0, 0, 1], 3),
        (Window((2, 1), (2, 1), (3, 0, 0, 0), (4, 1)), [[1], [3], [1, 5], [3]], [0, 0, 1, 3], 1),
        (Window((1, 1), (5, 1), (0, 0, 9, 0)), [[0], [5], []], [0, 5, 7], 0),
    ],
)
def test_lines_of_windows(window, reads, dead, lead):
    assert [list(each) for each in window.reads([0], X, len(reads))] == reads
    gone = window.dead([0], X)
    assert [gone(y) for y in range(len(dead))] == dead and gone(100) == 7
    assert window.lead == lead


@pytest.mark.parametrize(
    ("access", "work"),
    [
        (Window((2, 3)), 8 * 9 * 10 * 6 * 6),
        (Window((2, 3), groups=3), 8 * 9 * 10 * 6 * 2),
        (PoolWindow((2, 3)), 8 * 9 * 10 * 6),
        (Upsample((2, 2)), 0),
        (Whole(), 0),
        (Pointwise(), 0),
    ],
)
def test_multiply_accumulates_and_bytes(access, work):
    """An operator's work counts four for each byte that it reads or stores; a residual is not among them."""
    output = tensor(8, 9, 10)
    assert access.computed(X, output) == work
    tensors = {"x": X, "y": output, "z": tensor(8, 9, 10, name="z")}
    assert OpSpec("a", access, ("x",), "y").work(tensors) == work + 4 * (210 + 720)
    assert OpSpec("a", replace(access, aliases=1), ("x", "z"), "y").work(tensors) == work + 4 * (210 + 720)
    assert OpSpec("a", access, ("x", "z"), "y").work(tensors) == work + 4 * (210 + 720 + 720)


@pytest.mark.parametrize(
    ("kernel", "pads", "source", "output", "wanted"),
    [
        ((7, 5), (0, 0, 0, 0), (7, 5, 6), (1, 1, 6), True),
        ((7, 5), (0, 0, 0, 1), (7, 5, 6), (1, 1, 6), False),
        ((7, 5), (0, 0, 0, 0), (7, 5, 6), (1, 2, 6), False),
        ((7, 5), (0, 0, 0, 0), (7, 5, 6), (2, 1, 6), False),
        ((5, 7), (0, 0, 0, 0), (7, 5, 6), (1, 1, 6), False),
        ((2, 1), (0, 0, 0, 0), (2, 1, 6), (1, 1, 6), True),
        ((1, 5), (0, 0, 0, 0), (1, 5, 6), (1, 1, 6), False),  # one line is the whole
    ],
)
def test_pools_that_take_their_input_by_lines(kernel, pads, source, output, wanted):
    assert PoolWindow(kernel, pads=pads).accumulates(tensor(*source), tensor(*output)) is wanted
    assert Window(kernel, pads=pads).accumulates(tensor(*source), tensor(*output)) is False


@pytest.mark.parametrize(
    ("access", "size"),
    [
        (PoolWindow((7, 5)), 24),
        (PoolWindow((7, 5), partial_bytes=8), 48),
        (PoolWindow((7, 5), partial_bytes=1), 6),
        (Whole(), 24),
    ],
)
def test_bytes_of_partial_results(access, size):
    assert OpSpec("a", access, ("x",), "y").partial_bytes({"x": X, "y": tensor(1, 1, 6)}) == size


def test_an_operator_without_inputs_takes_none_by_lines():
    assert OpSpec("a", PoolWindow((1, 1)), (), "y").accumulates({"y": tensor(1, 1, 6)}) is False


@pytest.mark.parametrize(
    ("factors", "reads", "dead"),
    [
        ((2, 3), [0, 0, 1, 1, 2], [0, 0, 1, 1, 2]),
        ((3, 2), [0, 0, 0, 1, 1], [0, 0, 0, 1, 1]),
        ((1, 2), [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ],
)
def test_lines_of_repeated_pixels(factors, reads, dead):
    access = Upsample(factors)
    assert [list(each) for each in access.reads([0], X, 5)] == [[line] for line in reads]
    gone = access.dead([0], X)
    assert [gone(y) for y in range(5)] == dead and gone(7 * factors[0] + 5) == 7


TABLE = LineTable((((0, 1), (2, 4), (3, 3), (1, 2)), ((5, 6), (1, 1), (4, 4), (0, 3))), (((0, 1),), ((0, 1),)))


@pytest.mark.parametrize(
    ("numbers", "reads", "dead"),
    [
        ([0], [(0, 1), (2, 4), (0, 0), (1, 2)], [0, 1, 1, 1]),
        ([1], [(5, 6), (0, 0), (0, 0), (0, 3)], [0, 0, 0, 0]),
        ([0, 1], [(0, 6), (2, 4), (0, 0), (0, 3)], [0, 0, 0, 0]),  # the same tensor twice
    ],
)
def test_lines_of_tables(numbers, reads, dead):
    """Empty ranges read nothing; where a tensor is read twice, all from the first to the last line of both."""
    assert [(each.start, each.stop) for each in TABLE.reads(numbers, X, 4)] == reads
    gone = TABLE.dead(numbers, X)
    assert [gone(y) for y in range(4)] == dead and gone(4) == gone(9) == 7


def test_lines_behind_the_last_that_is_read_are_dead():
    table = LineTable((((0, 2), (1, 3), (2, 2), (2, 2)),), (((0, 1),),))
    gone = table.dead([0], X)
    assert [gone(y) for y in range(5)] == [0, 1, 7, 7, 7]


def test_lines_of_concatenations_and_the_others():
    assert [list(each) for each in Concatenated().reads([0], X, 3)] == [[0], [1], [2]]
    gone = Concatenated().dead([0], X)
    assert [gone(y) for y in (0, 3, 7, 9)] == [0, 3, 7, 7]
    for access, name in ((Whole(), "Whole"), (View(), "View"), (Pointwise(), "Pointwise"), (Access(), "Access")):
        with pytest.raises(InternalError, match=f"{name} does not go line by line"):
            access.reads([0], X, 1)
        assert access.lead == 0 and access.accumulates(X, X) is False and access.computed(X, X) == 0
    assert Access().faults([X], X) == [] and Whole().over(X, X) is Overlay.WHOLE and View().over(X, X) is Overlay.VIEW


def test_repacked_lines_and_columns():
    found = Repacked.of(2, 3, True)
    assert (found.lines, found.columns) == ((((0, 1), (1, 2)),), (((0, 1), (1, 2), (2, 3)),))
    assert found.unpacks and not Repacked.of(2, 3, False).unpacks and Repacked(found.lines, found.columns).unpacks is False


def test_an_operand_that_is_repeated_is_needed_to_the_end():
    assert Pointwise().over(X, tensor(7, 5, 6, 4)) is Overlay.POINTWISE
    assert Pointwise().over(tensor(1, 1, 6), X) is Overlay.WHOLE


KERNEL = "kernel and stride must be at least 1, pads at least 0 above and below but for a window of one pixel"


@pytest.mark.parametrize(
    ("access", "sources", "output", "faults"),
    [
        (Window((1, 1), (1, 1), (-1, -2, -3, -4)), [X], (1, 1, 1), []),
        (Window((1, 2), (1, 1), (-1, 0, 0, 0)), [X], (1, 1, 1), [KERNEL]),
        (Window((2, 1), (1, 1), (0, 0, -1, 0)), [X], (1, 1, 1), [KERNEL]),
        (Window((2, 2), (1, 1), (0, -1, 0, -1)), [X], (1, 1, 1), []),
        (Window((1, 0)), [X], (1, 1, 1), [KERNEL]),
        (Window((0, 1)), [X], (1, 1, 1), [KERNEL]),
        (Window((1, 1), (0, 1)), [X], (1, 1, 1), [KERNEL]),
        (Window((1, 1), (1, 0)), [X], (1, 1, 1), [KERNEL]),
        (PoolWindow((1, 0)), [X], (1, 1, 5), [KERNEL]),
        (PoolWindow((1, 1)), [X], (1, 1, 5), ["a pool keeps the channels; 6 in, 5 out"]),
        (PoolWindow((1, 1)), [X], (1, 1, 6), []),
        (Upsample((2, 3)), [X], (14, 15, 6), []),
        (Upsample((3, 2)), [X], (14, 15, 6), ["(7, 5, 6) upsampled by (3, 2) is not (14, 15, 6)"]),
        (Upsample((2, 3)), [X], (14, 15, 7), ["(7, 5, 6) upsampled by (2, 3) is not (14, 15, 7)"]),
        (Pointwise(), [tensor(1, 1, 6), X], (7, 5, 6), []),
        (Pointwise(), [tensor(1, 1, 6), X], (7, 5, 5), ["no operand has the shape (7, 5, 5) of the output"]),
        (Concatenated(), [X, tensor(7, 5, 2)], (7, 5, 8), []),
        (
            Concatenated(),
            [X, tensor(7, 5, 2)],
            (7, 5, 9),
            ["[(7, 5, 6), (7, 5, 2)] do not concatenate to (7, 5, 9) along channels"],
        ),
        (
            Concatenated(),
            [X, tensor(6, 5, 2)],
            (7, 5, 8),
            ["[(7, 5, 6), (6, 5, 2)] do not concatenate to (7, 5, 8) along channels"],
        ),
        (
            Concatenated(),
            [X, tensor(7, 4, 2)],
            (7, 5, 8),
            ["[(7, 5, 6), (7, 4, 2)] do not concatenate to (7, 5, 8) along channels"],
        ),
        (View(), [X], (1, 1, 210), []),
        (View(), [X], (1, 1, 211), ["(7, 5, 6) cannot be seen as (1, 1, 211)"]),
        (View(), [tensor(7, 5, 6, 2)], (1, 1, 210), ["(7, 5, 6) cannot be seen as (1, 1, 210)"]),
        (Joined(), [X, tensor(7, 2, 6)], (7, 7, 6), []),
        (Joined(), [X, tensor(7, 2, 6)], (7, 8, 6), ["[(7, 5, 6), (7, 2, 6)] are not the columns of (7, 8, 6)"]),
        (Joined(), [X, tensor(6, 2, 6)], (7, 7, 6), ["[(7, 5, 6), (6, 2, 6)] are not the columns of (7, 7, 6)"]),
        (Joined(), [X, tensor(7, 2, 5)], (7, 7, 6), ["[(7, 5, 6), (7, 2, 5)] are not the columns of (7, 7, 6)"]),
        (Joined(), [X, tensor(7, 2, 6, 2)], (7, 7, 6), ["[(7, 5, 6), (7, 2, 6)] are not the columns of (7, 7, 6)"]),
        (LineTable((((0, 7), (7, 7)),), (((0, 5), (5, 5), (0, 0)),)), [X], (2, 3, 1), []),
        (
            LineTable((((0, 8), (7, 7)),), (((0, 5), (5, 5), (0, 0)),)),
            [X],
            (2, 3, 1),
            ["the table of lines is not one of ranges within each input"],
        ),
        (
            LineTable((((0, 7), (7, 7)),), (((0, 6), (5, 5), (-1, 0)),)),
            [X],
            (2, 3, 1),
            ["the table of columns is not one of ranges within each input"],
        ),
        (
            LineTable((((0, 7),),), (((0, 5), (5, 5)),)),
            [X],
            (2, 3, 1),
            [
                "the table of lines is not one of ranges within each input",
                "the table of columns is not one of ranges within each input",
            ],
        ),
        (
            LineTable((((0, 7), (7, 7)),), (((0, 5), (5, 5), (0, 0)),)),
            [X, X],
            (2, 3, 1),
            [
                "the table of lines is not one of ranges within each input",
                "the table of columns is not one of ranges within each input",
            ],
        ),
    ],
)
def test_faults_of_accesses(access, sources, output, faults):
    assert access.faults(sources, tensor(*output)) == faults


@pytest.mark.parametrize(
    ("access", "inputs", "scratch", "faults"),
    [
        (Whole(), (), 0, ["the operator reads nothing"]),
        (Whole(), (), -1, ["the operator reads nothing"]),
        (Whole(), ("x",), -1, ["scratch of -1 bytes"]),
        (Whole(), ("x",), 0, []),
        (Whole(), ("x", "z"), 5, []),
        (PoolWindow((1, 1)), ("x", "z"), 0, ["a pool reads one tensor, not 2"]),
        (Window((1, 1)), ("x", "z"), 0, ["a convolution reads one tensor, not 2"]),
        (Upsample((1, 1)), ("x", "z"), 0, ["a upsampling reads one tensor, not 2"]),
        (View(), ("x", "z"), 0, ["a view reads one tensor, not 2"]),
        (Repacked.of(7, 5, True), ("x", "z"), 0, ["a packing reads one tensor, not 2"]),
        (Window((1, 1), aliases=1), ("x", "z"), 0, []),
        (Window((1, 1), aliases=0), ("z", "x"), 0, []),
        (Window((1, 1), aliases=1), ("x", "x"), 0, ["its residual x has not the form of its output, or is its input"]),
        (Window((1, 1), aliases=1), ("x", "s"), 0, ["its residual s has not the form of its output, or is its input"]),
        (Window((1, 1), aliases=1), ("x", "w"), 0, ["its residual w has not the form of its output, or is its input"]),
        (Whole(aliases=0), ("z",), 0, ["the operator reads nothing"]),
        (Whole(aliases=2), ("x", "z", "v"), 0, []),
    ],
)
def test_faults_of_operators(access, inputs, scratch, faults):
    tensors = {"x": X, "s": tensor(7, 5, 5, name="s"), "w": tensor(7, 5, 6, 2, "w")}
    tensors.update({name: replace(X, name=name) for name in "yzv"})
    assert OpSpec("a", access, inputs, "y", scratch).faults(tensors) == faults


def test_the_residual_is_apart_from_the_operands():
    op = OpSpec("a", Whole(aliases=1), ("p", "q", "r"), "y")
    assert (op.aliased, op.operands) == ("q", ("p", "r"))
    assert OpSpec("a", Whole(aliases=0), ("p", "q"), "y").operands == ("q",)
    plain = OpSpec("a", Whole(), ("p", "q"), "y")
    assert (plain.aliased, plain.operands) == (None, ("p", "q"))


def problem_of_two() -> MemoryProblem:
    names = ("x", "h", "m", "y", "z")
    tensors = {name: TensorSpec(name, 1, 1, 1 + at) for at, name in enumerate(names)}
    ops = (OpSpec("a", Whole(), ("x", "h"), "m"), OpSpec("b", View(), ("m",), "y"), OpSpec("c", Whole(), ("m",), "z"))
    return MemoryProblem(tensors, ("x", "h"), ("y", "z"), ops)


@pytest.mark.parametrize(("states", "kept", "becoming"), [(0, (), ()), (1, ("h",), ("z",)), (2, ("x", "h"), ("y", "z"))])
def test_the_last_inputs_and_outputs_are_states(states, kept, becoming):
    problem = replace(problem_of_two(), states=states)
    assert (problem.kept, problem.becoming) == (kept, becoming)


def test_parts_of_a_problem():
    problem = problem_of_two()
    assert problem.tensor_bytes == 15 and problem.views == {"b"} and problem.op("c").output == "z"
    with pytest.raises(KeyError, match="nothing"):
        problem.op("nothing")
    whole = problem.read_whole({"b"})
    assert [type(op.access) for op in whole.ops] == [Whole, Whole, Whole] and whole.ops[1].name == "b"
    assert problem.read_whole([]) == problem


def test_the_bytes_that_are_needed_beside_each_tensor():
    """x 1, h 2, m 3, y 4, z 5 bytes: at the first operator 6, at the second 7, at the third 12, and at the end 9."""
    assert bytes_beside(problem_of_two()) == {"x": 6, "h": 6, "m": 12, "y": 12, "z": 12}
    unread = replace(problem_of_two(), outputs=("z",))
    assert bytes_beside(unread) == {"x": 6, "h": 6, "m": 8, "y": 7, "z": 8}


def test_a_fault_of_sizes_names_them():
    problem = problem_of_two()
    for at, field in enumerate(("height", "width", "channels", "element_bytes")):
        numbers = [1, 1, 3, 1]
        numbers[at] = 0
        wrong = replace(problem, tensors={**problem.tensors, "m": replace(problem.tensors["m"], **{field: 0})})
        text = "{} x {} x {} elements of {} bytes; each must be at least 1".format(*numbers)
        with pytest.raises(N2D2Error, match=f"m: the tensor has {text}"):
            wrong.validate()


CHAIN = {
    (): True,
    ("Reshape",): True,
    ("Identity", "Dropout"): True,
    ("Dropout", "Reshape", "Identity"): True,
    ("Clip",): False,
    ("Clip", "Reshape"): False,
    ("Reshape", "Clip"): False,
    ("Clip", "Identity", "Dropout"): False,
}


@pytest.mark.parametrize("before", CHAIN, ids=lambda kinds: " ".join(kinds) or "nothing")
def test_an_output_that_is_an_input_in_another_shape_is_a_copy(before):
    """The caller's input and the caller's output are two places; what a layer computes can be seen as the output."""
    graph = QuantGraph("g", 8, inputs=["t0"], outputs=["y"])
    names = [f"t{at}" for at in range(len(before) + 1)]
    graph.tensors = {name: QuantTensor(name, (1, 6, 1, 1), NumType(8)) for name in (*names, "y")}
    for kind, source, output in zip(before, names, names[1:], strict=False):
        graph.nodes.append(QuantNode(output, SimpleNamespace(kind=kind), [source], [output]))
    node = QuantNode("y", SimpleNamespace(kind="Reshape"), [names[-1]], ["y"])
    graph.nodes.append(node)
    assert isinstance(same_order(node, graph), Whole if CHAIN[before] else View)
    graph.outputs = []
    assert isinstance(same_order(node, graph), View)
