"""A softplus that is linear above a threshold, as PyTorch exports it, is a softplus."""

from __future__ import annotations

import numpy as np
import pytest

from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.functions import Softplus
from n2d2py.operators.reshape import Reshape
from n2d2py.passes.softplus_tail import RemoveSoftplusTail

_DIMS = (1, 2, 3, 4)


def network(b, threshold: float, other: bool = False):
    b.layer("a", Reshape((24,)))
    params = {"operand1": np.array([threshold], np.float32)}
    b.layer("above", ArrayMap("Greater", _DIMS, (_DIMS, (1, 1, 1, 1)), (0, -1), "bool"), "a", params)
    b.layer("plus", Activation(Softplus()))
    b.layer("p", Reshape((24,)), "plus")
    b.layer("y", ArrayMap("Where", _DIMS, (_DIMS, _DIMS, _DIMS), (0, 1, 2)), ["above", "p" if other else "a", "p"])
    return b.done("y")


@pytest.mark.parametrize("threshold", [15.0, 20.0])
def test_it_disappears(build, run, run_all, kinds, threshold):
    graph = network(build(2, 3, 4), threshold)
    after, _ = run(graph, RemoveSoftplusTail())
    assert kinds(after) == [("plus", "Activation"), ("p", "Reshape"), ("y", "Identity")]
    assert "ArrayMap" not in [kind for _, kind in kinds(run_all(graph, integer=True)[0])]


def test_a_low_threshold_stays(build, run, reason):
    after, report = run(network(build(2, 3, 4), 3.0), RemoveSoftplusTail())
    assert reason(report) == "y: the threshold is below 15" and after.node("y").op.kind == "ArrayMap"


def test_another_tensor_stays(build, run, kinds):
    assert len(kinds(run(network(build(2, 3, 4), 20.0, other=True), RemoveSoftplusTail())[0])) == 5
