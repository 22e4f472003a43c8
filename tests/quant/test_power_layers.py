"""What stands between squares and their logarithm, and what spectra are made of: one case for each kind of layer (`n2d2py.quant.spectra`)."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.graph import Graph, Node
from n2d2py.graph.precision import Precision
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.arrays.reduce import ArrayReduce
from n2d2py.operators.concat import Concat
from n2d2py.operators.conv import Conv
from n2d2py.operators.convert import Convert
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import FUNCTIONS, Clip, Log, Sqrt
from n2d2py.operators.identity import Identity
from n2d2py.operators.pool import Pool
from n2d2py.operators.softmax import Softmax
from n2d2py.operators.transpose import Transpose
from n2d2py.quant.spectra import is_magnitude, is_square, power_layers, wide_tensors

TANH = FUNCTIONS["Tanh"]()
DIMS = (2, 4, 4)


def params(op, channels: int) -> dict[str, np.ndarray]:
    """Those of a layer of as many outputs as inputs."""
    shape = {Conv: (channels, channels, 1, 1), Affine: (channels,)}.get(type(op))
    if shape is None:
        return {}
    return {"weights": np.ones(shape, np.float32), "bias": np.zeros(channels, np.float32)}


def network(*layers: tuple, outputs: tuple[str, ...] = ()) -> Graph:
    """(name, operator, inputs, activation) behind an input x of two channels."""
    graph = Graph("net")
    graph.add_input("x", (1, *DIMS))
    for name, op, inputs, *activation in layers:
        made = params(op, graph.shape(inputs.split()[0])[1])
        graph.add(Node(name, op, inputs.split(), [name], made, *activation))
    read = {name for node in graph.nodes for name in node.inputs}
    graph.outputs = [node.output for node in graph.nodes if node.output not in read or node.output in outputs]
    return graph


SQUARE, LOG = ("s", ElemWise("Prod"), "x x"), Activation(Log())
BETWEEN: dict[str, tuple[object, str, object, bool]] = {
    # operator, inputs, activation, whether it may stand there
    "a sum": (ElemWise("Sum"), "s s", None, True),
    "a maximum": (ElemWise("Max"), "s s", None, True),
    "a minimum": (ElemWise("Min"), "s s", None, True),
    "a product": (ElemWise("Prod"), "s t", None, False),
    "magnitudes": (ElemWise("EuclideanSum"), "s s", None, False),
    "a sum with what is no square": (ElemWise("Sum"), "s t", None, False),
    "weights": (Conv(), "s", None, True),
    "scales": (Affine(), "s", None, True),
    "a limit": (Activation(Clip(0.5)), "s", None, True),
    "another function": (Activation(TANH), "s", None, False),
    "weights with a limit": (Conv(), "s", Clip(0.0), True),
    "weights with another function": (Conv(), "s", TANH, False),
    "means": (Pool("Average", (2, 2)), "s", None, True),
    "largest values": (Pool("Max", (2, 2)), "s", None, True),
    "the same": (Identity(), "s", None, True),
    "a transposition": (Transpose((0, 1, 3, 2)), "s", None, True),
    "shares": (Softmax(), "s", None, False),
    "a conversion": (Convert(True), "s", None, False),
}


@pytest.mark.parametrize("case", BETWEEN)
def test_layers_between_squares_and_their_logarithm(case):
    op, inputs, activation, taken = BETWEEN[case]
    other = [("t", Activation(TANH), "x")] if "t" in inputs.split() else []
    graph = network(SQUARE, *other, ("m", op, inputs, activation), ("l", LOG, "m"))
    assert power_layers(graph) == ({"s", "m", "l"} if taken else set())


@pytest.mark.parametrize("slots, square", [((0, 0), True), ((0, 1), True), ((1, 0), True), ((0, -1), False), ((1, 1), False)])
def test_squares_of_arrays(slots, square):
    """The operands are the one tensor, by whichever of its inputs."""
    operands = {f"operand{at}": np.ones(32, np.float32) for at, slot in enumerate(slots) if slot < 0}
    inputs = ["x", "x"] if 1 in slots else ["x"]
    node = Node("s", ArrayMap("Mul", DIMS, (DIMS, DIMS), slots), inputs, ["s"], operands)
    assert is_square(node) == square
    node.activation = Clip(0.0)
    assert not is_square(node)


@pytest.mark.parametrize(
    ("op", "inputs", "square"),
    [
        (ElemWise("Prod"), "x x", True),
        (ElemWise("Prod"), "x x x", False),
        (ElemWise("Prod"), "x y", False),
        (ElemWise("Prod"), "x", False),
        (ElemWise("Sum"), "x x", False),
        (ArrayMap("Add", DIMS, (DIMS, DIMS), (0, 0)), "x", False),
        (Identity(), "x", False),
    ],
)
def test_what_a_square_is(op, inputs, square):
    assert is_square(Node("s", op, inputs.split(), ["s"])) == square


@pytest.mark.parametrize(
    ("function", "constants", "taken"),
    [
        *((function, True, True) for function in ("Add", "Clip", "Div", "Max", "Min", "Mul")),
        ("Sub", True, False),
        ("Pow", True, False),
        ("Add", False, False),
    ],
)
def test_maps_of_arrays_between(function, constants, taken):
    """Of one tensor and constants."""
    graph, size = Graph("net"), 32
    graph.add_input("x", (1, size))
    graph.add(Node("s", ArrayMap("Mul", DIMS, (DIMS, DIMS), (0, 0)), ["x"], ["s"]))
    count = 3 if function == "Clip" else 2
    slots = (0, *(-1,) * (count - 1)) if constants else (0, 1)
    operands = {f"operand{at}": np.ones(size, np.float32) for at in range(1, count)} if constants else {}
    inputs = ["s"] if constants else ["s", "x"]
    graph.add(Node("m", ArrayMap(function, DIMS, (DIMS,) * count, slots), inputs, ["m"], operands))
    graph.add(Node("l", ArrayMap("Log", DIMS, (DIMS,)), ["m"], ["l"]))
    graph.outputs = ["l"]
    assert power_layers(graph) == ({"s", "m", "l"} if taken else set())


@pytest.mark.parametrize(("function", "taken"), [("Mean", True), ("Sum", True), ("Max", False), ("L2", False)])
def test_reductions_of_arrays_between(function, taken):
    graph = Graph("net")
    graph.add_input("x", (1, 32))
    graph.add(Node("s", ArrayMap("Mul", DIMS, (DIMS, DIMS), (0, 0)), ["x"], ["s"]))
    graph.add(Node("m", ArrayReduce(function, DIMS, (2,)), ["s"], ["m"]))
    graph.add(Node("l", ArrayMap("Log", DIMS[:2], (DIMS[:2],)), ["m"], ["l"]))
    graph.outputs = ["l"]
    assert power_layers(graph) == ({"s", "m", "l"} if taken else set())


@pytest.mark.parametrize(("layers", "found"), [(13, True), (14, True), (15, True), (16, False), (17, False)])
def test_how_many_layers_stand_between(layers, found):
    chain = [(f"m{at}", Identity(), f"m{at - 1}" if at else "s") for at in range(layers)]
    graph = network(SQUARE, *chain, ("l", LOG, f"m{layers - 1}"))
    assert bool(power_layers(graph)) == found


def test_roots_of_power_that_are_squared_again():
    """Magnitudes, what moves them, and their squares are part of it; a root of something else is not."""
    root = ("r", Activation(Sqrt()), "a")
    start = [SQUARE, ("a", ElemWise("Sum"), "s s")]
    assert power_layers(network(*start, root, ("q", ElemWise("Prod"), "r r"), ("l", LOG, "q"))) == {"s", "a", "r", "q", "l"}
    moved = [("t", Transpose((0, 1, 3, 2)), "r"), ("u", Identity(), "t"), ("q", ElemWise("Prod"), "u u"), ("l", LOG, "q")]
    assert power_layers(network(*start, root, *moved)) == {"s", "a", "r", "t", "u", "q", "l"}
    for between in (("r", Activation(TANH), "a"), ("r", Activation(Sqrt()), "a", Clip(0.5)), ("r", Conv(), "a")):
        assert power_layers(network(*start, between, ("q", ElemWise("Prod"), "r r"), ("l", LOG, "q"))) == {"q", "l"}
    plain = network(("r", Activation(Sqrt()), "x"), ("q", ElemWise("Prod"), "r r"), ("l", LOG, "q"))
    assert power_layers(plain) == {"q", "l"}


@pytest.mark.parametrize("asked", ["s", "m", "l", "x2"])
def test_one_layer_that_is_asked_for_keeps_all_as_they_are(asked):
    graph = network(SQUARE, ("m", Identity(), "s"), ("l", LOG, "m"), ("x2", Identity(), "l"))
    graph.precisions[asked] = Precision(quantize=True)
    assert power_layers(graph) == ({"s", "m", "l"} if asked == "x2" else set())
    graph.precisions[asked] = Precision(quantize=False)
    assert power_layers(graph) == {"s", "m", "l"}


def test_a_logarithm_with_an_activation_is_another_function():
    assert power_layers(network(SQUARE, ("l", LOG, "s", Clip(0.0)))) == set()


MAGNITUDES = ("y", ElemWise("EuclideanSum"), "a b")
MADE_OF: dict[str, tuple[list[tuple], set[str]]] = {
    "magnitudes": ([("a", Conv(), "x"), ("b", Conv(), "x"), MAGNITUDES], {"x", "a", "b"}),
    "an activation before": ([("a", Conv(), "x"), ("b", Activation(TANH), "x"), MAGNITUDES], {"a", "b"}),
    "means before": ([("m", Pool("Average", (1, 1)), "x"), ("a", Conv(), "m"), ("b", Conv(), "m"), MAGNITUDES], {"x", "m", "a", "b"}),
    "largest values before": ([("m", Pool("Max", (1, 1)), "x"), ("a", Conv(), "m"), ("b", Conv(), "m"), MAGNITUDES], {"x", "m", "a", "b"}),
    "sums before": ([("m", ElemWise("Sum"), "x x"), ("a", Conv(), "m"), ("b", Conv(), "m"), MAGNITUDES], {"x", "m", "a", "b"}),
    "products before": ([("m", ElemWise("Prod"), "x x"), ("a", Conv(), "m"), ("b", Conv(), "m"), MAGNITUDES], {"m", "a", "b"}),
    "joined": ([("a", Conv(), "x"), ("j", Concat(), "a x"), ("b", Conv(), "j"), ("c", Conv(), "j"), ("y", ElemWise("EuclideanSum"), "b c")], {"x", "a", "j", "b", "c"}),
    "another reader": ([("a", Conv(), "x"), ("b", Conv(), "x"), MAGNITUDES, ("z", Conv(), "a")], {"b"}),
    "turned into real numbers besides": ([("a", Conv(), "x"), ("b", Conv(), "x"), MAGNITUDES, ("z", Convert(True), "a")], {"x", "a", "b"}),
    "turned behind a transposition": (
        [("a", Conv(), "x"), ("b", Conv(), "x"), MAGNITUDES, ("t", Transpose((0, 1, 3, 2)), "a"), ("z", Convert(True), "t")],
        {"x", "a", "b"},
    ),
    "squared in real numbers": ([("a", Conv(), "x"), ("r", Convert(True), "a"), ("s", ElemWise("Prod"), "r r")], {"x", "a"}),
    "squared and read in real numbers": (
        [("a", Conv(), "x"), ("r", Convert(True), "a"), ("s", ElemWise("Prod"), "r r"), ("z", Activation(TANH), "r")],
        set(),
    ),
    "nothing of it": ([("a", Conv(), "x"), ("y", Activation(TANH), "a")], set()),
}  # fmt: skip


@pytest.mark.parametrize("case", MADE_OF)
def test_what_spectra_are_made_of(case):
    layers, wanted = MADE_OF[case]
    assert wide_tensors(network(*layers)) == wanted


def test_outputs_are_no_part_of_a_spectrum_alone():
    layers = [("a", Conv(), "x"), ("b", Conv(), "x"), MAGNITUDES]
    assert wide_tensors(network(*layers, outputs=("a",))) == {"b"}


def test_what_magnitudes_are():
    assert is_magnitude(Node("y", ElemWise("EuclideanSum"), ["a", "b"], ["y"]))
    assert not is_magnitude(Node("y", ElemWise("Sum"), ["a", "b"], ["y"])) and not is_magnitude(None)
    assert not is_magnitude(Node("y", Identity(), ["a"], ["y"]))
