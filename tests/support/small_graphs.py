"""Networks of one layer on an image of two channels, or on two images made of it, for exports that are compared layer by layer."""

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Clip
from n2d2py.operators.pool import Pool
from support.layer_params import real_params


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
    graph, rng = Graph("binary"), np.random.default_rng(3)
    graph.add_input("x", (1, 2, 8, 8))
    graph.add(Node("a", Conv(), ["x"], ["a"], real_params(rng, 4, 2, 1, 1), Clip(0.0)))
    graph.add(Node("b", Conv(pads=(1, 1, 1, 1)), ["x"], ["b"], real_params(rng, 4, 2, 3, 3)))
    second = "b"
    if other == (1, 1):
        graph.add(Node("mean", Pool("Average", (8, 8)), ["b"], ["mean"]))
        second = "mean"
    graph.add(Node("y", op, ["a", second], ["y"], {}, activation))
    graph.outputs = ["y"]
    graph.verify()
    return graph
