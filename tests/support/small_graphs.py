"""Small networks in floating point: layer by layer; of given nodes; of one layer on an image of two channels, or on two made of it."""

from collections.abc import Mapping

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.graph import Graph, Node
from support.ops import Affine, Conv, Fc, Pool

RELU = Clip(0.0)


class Net:
    """A network under construction, with random parameters; each method returns the name of the tensor it makes."""

    def __init__(self, shape: tuple[int, int, int], seed: int = 1, name: str = "net"):
        self.graph, self.random = Graph(name), np.random.default_rng(seed)
        self.graph.add_input("x", (1, *shape))

    def add(self, name: str, op, *inputs: str, params=None, activation=None) -> str:
        self.graph.add(Node(name, op, list(inputs), [name], params or {}, activation))
        return name

    def conv(self, name: str, source: str, outputs: int, kernel=(3, 3), activation=None, groups: int = 1, **fields) -> str:
        channels = self.graph.shape(source)[1] // groups
        scale = 1 / np.sqrt(channels * kernel[0] * kernel[1])
        weights = (self.random.standard_normal((outputs, channels, *kernel)) * scale).astype(np.float32)
        bias = (self.random.standard_normal(outputs) * 0.2).astype(np.float32)
        return self.add(
            name, Conv(groups=groups, **fields), source, params={"weights": weights, "bias": bias}, activation=activation
        )

    def fc(self, name: str, source: str, outputs: int) -> str:
        size = int(np.prod(self.graph.shape(source)[1:]))
        weights = (self.random.standard_normal((outputs, size)) / np.sqrt(size)).astype(np.float32)
        return self.add(name, Fc(), source, params={"weights": weights, "bias": np.full(outputs, 0.1, np.float32)})

    def affine(self, name: str, source: str) -> str:
        c = self.graph.shape(source)[1]
        params = {"weights": self.random.uniform(-1.5, 1.5, c), "bias": self.random.uniform(-1, 1, c)}
        return self.add(name, Affine(), source, params={role: values.astype(np.float32) for role, values in params.items()})

    def done(self, *outputs: str) -> Graph:
        self.graph.outputs = list(outputs)
        return self.graph


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
