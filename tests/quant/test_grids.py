"""Which tensors hold the integers of a Quantize, in other places: what moves values keeps them, what computes does not."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import Concat
from n2d2py.operators.functions import Clip
from n2d2py.operators.identity import Dropout, Identity
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Quantize, grid_of, moved_from
from n2d2py.operators.resize import Resize

BYTE, OTHER = NumType(8, scale=0.5, full=True), NumType(8, scale=0.25, full=True)


def chain(*ops, activation=None) -> Graph:
    """An input, rounded to BYTE, and these layers behind it; the last one has the activation."""
    graph = Graph("net")
    graph.add_input("x", (1, 2, 6, 6))
    last = "x"
    for index, op in enumerate((Quantize(BYTE), *ops)):
        name = f"l{index}"
        graph.add(Node(name, op, [last], [name], {}, activation if index == len(ops) and index else None))
        last = name
    graph.outputs = [last]
    return graph


@pytest.mark.parametrize(
    ("ops", "activation", "moves"),
    [
        ([], None, True),
        ([Identity()], None, True),
        ([Dropout()], None, True),
        ([Pool("Max", (2, 2), (2, 2))], None, True),
        ([Resize((12, 12))], None, True),
        ([Resize((12, 12), "Bilinear", "HalfPixel")], None, False),
        ([Resize((12, 12)), Identity()], None, True),
        ([Resize((12, 12), "Bilinear", "HalfPixel"), Identity()], None, False),
        ([Pool("Average", (2, 2), (2, 2))], None, False),
        ([Identity()], Clip(0.0), False),
    ],
    ids=str,
)
def test_values_are_on_the_grid_where_they_were_only_moved(ops, activation, moves):
    graph = chain(*ops, activation=activation)
    last = graph.outputs[0]
    assert grid_of(graph, last) == (BYTE if moves else None)
    assert (moved_from(graph, last) == "l0") == moves


@pytest.mark.parametrize(("kinds", "wanted"), [((BYTE, BYTE), BYTE), ((BYTE, OTHER), None), ((BYTE, None), None)])
def test_a_concatenation_has_the_grid_of_all_its_parts(kinds, wanted):
    graph = Graph("net")
    names = []
    for index, kind in enumerate(kinds):
        graph.add_input(f"x{index}", (1, 2, 3, 3))
        names.append(f"x{index}")
        if kind is not None:
            graph.add(Node(f"q{index}", Quantize(kind), [f"x{index}"], [f"q{index}"]))
            names[-1] = f"q{index}"
    graph.add(Node("c", Concat(), names, ["c"]))
    graph.add(Node("i", Identity(), ["c"], ["i"]))
    graph.outputs = ["i"]
    assert grid_of(graph, "i") == wanted and grid_of(graph, "x0") is None


def test_a_mean_of_stored_values_is_off_the_grid():
    """Why a bilinear Resize moves nothing: its values lie between the steps."""
    graph = chain(Resize((11, 11), "Bilinear", "AlignCorners"))
    x = np.random.default_rng(0).integers(-9, 9, (1, 2, 6, 6)).astype(np.float32)
    (y,) = graph.node("l1").op.run([x * 0.5], graph.node("l1"))
    assert np.any(y / 0.5 != np.rint(y / 0.5))
