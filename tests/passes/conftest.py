"""Small graphs for the rewrites, and the comparison before and after one."""

import numpy as np
import pytest

from n2d2py.graph import Graph, Node
from n2d2py.passes import FuseReport, fuse
from n2d2py.reference.executor import run_graph


class Builder:
    """Adds layers with random parameters; `layer` returns the tensor's name."""

    def __init__(self, *shape: int):
        self.graph = Graph("g")
        self.graph.add_input("x", (1, *shape))
        self._random = np.random.default_rng(0)

    def array(self, *shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
        values = self._random.uniform(low, high, shape).astype(np.float32)
        values.setflags(write=False)  # rewrites replace arrays, they never write to them
        return values

    def layer(self, name, op, inputs="x", params=None, activation=None):
        inputs = [inputs] if isinstance(inputs, str) else inputs
        self.graph.add(Node(name, op, inputs, [name], params or {}, activation))
        return name

    def done(self, *outputs: str) -> Graph:
        self.graph.outputs = list(outputs)
        self.graph.verify()
        return self.graph


def same_results(before: Graph, after: Graph, tolerance: float = 1e-6) -> None:
    """Both graphs give the same outputs in float64, up to `tolerance` of the largest value."""
    x = {name: np.random.default_rng(1).normal(size=(3, *before.shape(name)[1:])) for name in before.inputs}
    for (name, want), got in zip(run_graph(before, x).items(), run_graph(after, x).values(), strict=True):
        assert got.shape == want.shape, name
        assert np.abs(got - want).max() <= tolerance * max(1.0, np.abs(want).max()), name


def apply_pass(graph: Graph, rewrite) -> tuple[Graph, FuseReport]:
    """One pass on a copy; the original must keep its values, the copy the results."""
    after, report = graph.copy(), FuseReport()
    rewrite.run(after, report)
    same_results(graph, after)
    return after, report


def apply_all(graph: Graph, integer: bool = False) -> tuple[Graph, FuseReport]:
    """All passes; results compared unless a Softmax is dropped."""
    after, report = fuse(graph, integer=integer)
    if "drop-softmax" not in report.counts:
        same_results(graph, after)
    return after, report


@pytest.fixture
def build():
    """The builder class."""
    return Builder


@pytest.fixture
def run():
    """`apply_pass`."""
    return apply_pass


@pytest.fixture
def run_all():
    """`apply_all`."""
    return apply_all


@pytest.fixture
def kinds():
    """(name, operator) of the nodes in order."""
    return lambda graph: [(node.name, node.op.kind) for node in graph.nodes]
