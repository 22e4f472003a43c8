"""Small networks in floating point: of given nodes; of one layer on an image of two channels, or on two images made of it."""

from collections.abc import Mapping

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.pool import Pool


def real_params(rng: np.random.Generator, *shape: int) -> dict[str, np.ndarray]:
    """Weights of this shape and a bias, of which sums of inputs near 1 are near 1."""
    fan = max(1, int(np.prod(shape[1:])))
    return {
        "weights": (rng.normal(size=shape) / np.sqrt(fan)).astype(np.float32),
        "bias": rng.normal(size=shape[0]).astype(np.float32) / 4,
    }


def graph_of(inputs: Mapping[str, tuple[int, ...]], *nodes: Node, outputs: list[str] | None = None) -> Graph:
    """The network of these nodes on inputs of these shapes; its output is that of the last node unless `outputs` says more."""
    graph = Graph("net")
    for name, shape in inputs.items():
        graph.add_input(name, shape)
    for node in nodes:
        graph.add(node)
    graph.outputs = outputs or [nodes[-1].output]
    graph.verify()
    return graph


def single(op, channels: int = 2, params=None, activation=None, behind: bool = False) -> Graph:
    """x - op - y; with other than two channels a convolution before it, with `behind` one behind it."""
    graph = Graph("single")
    graph.add_input("x", (1, 2, 8, 8))
    rng, tensor = np.random.default_rng(3), "x"
    if channels != 2:
        graph.add(Node("first", Conv(), ["x"], ["first"], real_params(rng, channels, 2, 1, 1)))
        tensor = "first"
    graph.add(Node("y", op, [tensor], ["y"], real_params(rng, *params) if params else {}, activation))
    graph.outputs = ["y"]
    if behind:
        graph.add(Node("z", Conv(), ["y"], ["z"], real_params(rng, 3, graph.shape("y")[1], 1, 1)))
        graph.outputs = ["z"]
    graph.verify()
    return graph


def binary(op, activation=None, other: tuple[int, int] = (8, 8)) -> Graph:
    """x - a, b - op - y; b has the size `other`."""
    rng = np.random.default_rng(3)
    first = Node("a", Conv(), ["x"], ["a"], real_params(rng, 4, 2, 1, 1), Clip(0.0))
    second = Node("b", Conv(pads=(1, 1, 1, 1)), ["x"], ["b"], real_params(rng, 4, 2, 3, 3))
    mean = [Node("mean", Pool("Average", (8, 8)), ["b"], ["mean"])] if other == (1, 1) else []
    last = Node("y", op, ["a", "mean" if mean else "b"], ["y"], {}, activation)
    return graph_of({"x": (1, 2, 8, 8)}, first, second, *mean, last)
