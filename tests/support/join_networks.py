"""Networks that join tensors of different ranges: boxes and scores of detectors, constants around images."""

from pathlib import Path

import numpy as np

from support.onnx_models import ModelBuilder

SHAPE = (4, 8, 8)
WIDE = 60.0
"""How many times wider boxes are than scores."""


class Joins(ModelBuilder):
    """Two branches of x, "boxes" of up to about WIDE * 5 and "scores" of 0 to 1, and what is made of them."""

    def __init__(self):
        super().__init__(3)
        self.boxes = self.conv("x", 4, 4, WIDE)
        self.scores = self.add("Sigmoid", self.conv("x", 4, 4))

    def conv(self, x: str, inputs: int, outputs: int, gain: float = 1.0) -> str:
        return self.add("Conv", x, self.rng.normal(0, gain / np.sqrt(inputs), (outputs, inputs, 1, 1)))

    def real(self, x: str) -> str:
        """A layer without integer form, whose values stay about what they are."""
        return self.add("Mul", self.add("Sin", self.add("Mul", x, 1e-3)), 1e3)

    def part(self, x: str, first: int, last: int, axis: int = 1) -> str:
        return self.add("Slice", x, [first], [last], [axis])

    def write(self, path: Path, *outputs: str) -> Path:
        return self.save(path, {"x": ["N", *SHAPE]}, *outputs)


def float_reader(net: Joins) -> str:
    return net.add("Asinh", net.add("Concat", net.boxes, net.scores, axis=1))


def float_input(net: Joins) -> str:
    return net.add("Concat", net.real(net.boxes), net.scores, axis=1)


def row(net: Joins) -> str:
    first = net.add("Concat", net.real(net.part(net.boxes, 0, 2)), net.part(net.boxes, 2, 4), axis=1)
    return net.add("Concat", first, net.scores, axis=1)


def reshaped(net: Joins) -> str:
    joined = net.add("Concat", net.boxes, net.scores, axis=1)
    return net.add("Asinh", net.add("Reshape", joined, [0, 8, -1]))


def split(net: Joins) -> str:
    """Boxes and scores are joined beside floating point, and parted again; the scores go on in integers."""
    joined = net.add("Concat", net.real(net.boxes), net.scores, axis=1)
    scores = net.add("Clip", net.part(joined, 4, 8), 0.0, 0.9)
    return net.add("Concat", net.real(net.part(joined, 0, 4)), scores, axis=1)


def stacked(net: Joins) -> str:
    parts = [net.add("Unsqueeze", x, [1]) for x in (net.real(net.boxes), net.scores)]
    return net.add("Reshape", net.add("Concat", *parts, axis=1), [0, 8, 8, 8])


def integers(net: Joins) -> str:
    return net.add("Concat", net.boxes, net.scores, axis=1)


def moved_integers(net: Joins) -> str:
    halves = [net.part(net.add("Concat", net.boxes, net.scores, axis=1), *ends) for ends in ((0, 4), (4, 8))]
    return net.add("Concat", *halves, axis=1)


def row_of_integers(net: Joins) -> str:
    first = net.add("Concat", net.part(net.boxes, 0, 2), net.part(net.boxes, 2, 4), axis=1)
    return net.add("Concat", first, net.part(net.scores, 0, 2), net.part(net.scores, 2, 4), axis=1)


def _in_lines(net: Joins, *parts: str) -> str:
    """Joined along the last of four axes, and parted again."""
    lines = [net.add("Reshape", x, [0, 2, 4, 4, 8]) for x in parts]
    joined = net.add("Concat", *lines, axis=4)
    apart = [net.part(joined, 8 * index, 8 * index + 8, 4) for index in range(2)]
    return net.add("Concat", *(net.add("Reshape", x, [0, 4, 64]) for x in apart), axis=1)


def lines_of_integers(net: Joins) -> str:
    return _in_lines(net, net.boxes, net.scores)


def lines_beside_reals(net: Joins) -> str:
    return _in_lines(net, net.real(net.boxes), net.scores)


JOINS = (
    float_reader, float_input, row, reshaped, split, stacked, integers, moved_integers, row_of_integers, lines_of_integers, lines_beside_reals,
)  # fmt: skip
"""All give boxes (4 channels), then scores (4 channels)."""


def stimuli(count: int) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(count, *SHAPE)).astype(np.float32)
