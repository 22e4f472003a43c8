"""The stimuli that integers hold worst, and ranges that are chosen again, of a few numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node, QuantGraph, QuantTensor
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import FUNCTIONS
from n2d2py.operators.identity import Identity
from n2d2py.quant.isolation import Tail
from n2d2py.quant.sequential import refined_type
from n2d2py.quant.worst import WorstStimuli, stimulus_picture


def worst(elements: int = 3) -> WorstStimuli:
    graph = QuantGraph("g", 8, inputs=["x"], outputs=["y"])
    graph.tensors = {"y": QuantTensor("y", (1, elements, 1, 1), NumType(8, scale=0.5))}
    return WorstStimuli(graph)


def add(found: WorstStimuli, real: list[list[float]], stored: list[list[int]], first: int = 0) -> None:
    count = len(real)
    names = [f"s{first + at}" for at in range(count)]
    x = np.zeros((count, 1, 2, 2), np.float32)
    found.add(x, np.arange(first, first + count), names, {"y": np.array(real)}, {"y": np.array(stored, np.int8)})


def test_the_figures_of_a_stimulus():
    """1, 2 and 4 against 0.5, 2.5 and 2.0: 1 lost of each, in the mean, and the second is now the largest."""
    found = worst()
    add(found, [[1.0, 2.0, 4.0]], [[1, 5, 4]], 7)
    (one,) = found.result()
    assert (one.position, one.name, one.label, one.error, one.expected, one.found) == (0, "s7", 7, 1.0, 2, 1)
    assert one.sqnr_db == pytest.approx(10 * math.log10(21 / 4.5))
    single = worst(1)
    add(single, [[1.0]], [[1]])
    assert (single.result()[0].expected, single.result()[0].found) == (-1, -1)


def test_twelve_stimuli_are_kept_the_worst_first():
    """Of equal ones those that came first."""
    found = worst(1)
    errors = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 1]
    add(found, [[0.5 * error] for error in errors[:5]], [[0]] * 5)
    add(found, [[0.5 * error] for error in errors[5:]], [[0]] * 11, 5)
    wanted = sorted(range(16), key=lambda at: (-errors[at], at))[:12]
    assert [one.position for one in found.result()] == wanted and [one.label for one in found.result()] == wanted
    assert [one.error for one in found.result()] == [0.5 * errors[at] for at in wanted]
    assert [one.name for one in found.result()] == [f"s{at}" for at in wanted]


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_a_range_is_chosen_again_where_that_helps(scale):
    """Values up to 70 steps of a range of 127: the finest steps that are tried serve them best."""
    node = Node("n", Identity(), ["x"], ["y"], {})
    kind = NumType(8, scale=scale)
    exact = np.concatenate([np.arange(100) * 0.7, [0.3]]) * scale
    same = refined_type(node, kind, [(exact, np.rint(exact / scale) * scale)])
    assert same == kind  # already on the integers
    found = refined_type(node, kind, [(exact[:50], exact[:50]), (exact[50:], exact[50:])])
    errors = {}
    for factor in np.geomspace(0.6, 1.25, 24):
        step = scale * factor
        errors[factor] = np.mean((np.clip(np.rint(exact / step), -127, 127) * step - exact) ** 2)
    best = min(errors, key=errors.__getitem__)
    assert found == kind.with_scale(scale * best) and found.scale < scale


def chain() -> Graph:
    """x -> a -> b -> c; a -> d: c and d are outputs."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 1, 1))
    for name, source in (("a", "x"), ("b", "a"), ("c", "b"), ("d", "a")):
        graph.add(Node(name, Activation(FUNCTIONS["Abs"]()), [source], [name], {}))
    graph.outputs = ["c", "d"]
    return graph


@pytest.mark.parametrize(
    ("replaced", "wanted"),
    [
        (["x"], {"c": 1.0, "d": 1.0}),
        (["a"], {"c": 2.0, "d": 2.0}),
        (["b"], {"c": 3.0, "d": 5.0}),
        (["c"], {"c": 4.0, "d": 5.0}),
        (["b", "d"], {"c": 3.0, "d": 5.0}),
        (["a", "b"], {"c": 3.0, "d": 2.0}),
    ],
)
def test_the_layers_that_a_replaced_tensor_reaches(replaced, wanted):
    """The others keep the values that they are given."""
    values = {name: np.full((3, 2, 1, 1), -float(at), np.float32) for at, name in enumerate("xabcd", 1)}
    values["x"], values["a"], values["b"] = (np.full((3, 2, 1, 1), -v, np.float32) for v in (1.0, 2.0, 3.0))
    values["c"], values["d"] = (np.full((3, 2, 1, 1), v, np.float32) for v in (4.0, 5.0))
    found = Tail(chain(), replaced).outputs(values)
    assert {name: float(each[0, 0, 0, 0]) for name, each in found.items()} == wanted
    assert all(each.shape == (3, 2, 1, 1) for each in found.values())


def test_a_stimulus_without_error_is_left_out():
    found = worst(1)
    add(found, [[1.0], [1.5], [0.0]], [[2], [2], [0]])
    assert [one.position for one in found.result()] == [1]


@pytest.mark.parametrize(
    ("shape", "largest", "wanted"),
    [
        ((1, 2, 2), 256, (2, 2)),
        ((3, 2, 3), 256, (2, 3, 3)),
        ((1, 1, 5), 256, None),
        ((1, 5, 1), 256, None),
        ((2, 4, 4), 256, None),
        ((4, 4, 4), 256, None),
        ((8,), 256, None),
        ((1, 6, 9), 9, (6, 9)),
        ((1, 6, 10), 9, (3, 5)),
        ((3, 19, 6), 9, (7, 2, 3)),
    ],
)
def test_pictures_of_stimuli(shape, largest, wanted):
    found = stimulus_picture(np.zeros(shape, np.float32), largest)
    assert (None if found is None else found.shape) == wanted and (found is None or not found.any())


def test_pictures_reach_from_black_to_white():
    found = stimulus_picture(np.array([[[-1.0, 0.0], [0.5, 3.0]]]))
    assert found is not None and found.dtype == np.uint8 and found.tolist() == [[0, 64], [96, 255]]
    colours = np.arange(12.0).reshape(3, 2, 2)
    turned = stimulus_picture(colours)
    assert turned is not None and turned[0, 1].tolist() == [round(v * 255 / 11) for v in (1, 5, 9)]
