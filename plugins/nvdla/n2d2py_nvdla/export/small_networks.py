"""The networks of the self-test: what they are made of, and the table that `selftest` and lowerings add theirs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from n2d2py.contracts.functions import Clip, FunctionRow
from n2d2py.contracts.operator import Op
from n2d2py.graph import Graph, Node
from n2d2py.operators.conv import Conv, Deconv, Fc
from n2d2py.registry import Registry

SIZE = 16
"""Lines and columns of the image that they read."""
RELU = Clip(0.0)


class SmallNetwork:
    """A network of layers with random parameters, the same ones each time.

    `white` is the value of a white pixel; what the layers after the first convolution read is about 1.
    """

    def __init__(self, name: str, white: float) -> None:
        self.graph, self.white, self._random = Graph(name), white, np.random.default_rng(1)
        self.graph.add_input("input", (1, 1, SIZE, SIZE))

    def add(
        self,
        name: str,
        op: Op,
        *inputs: str,
        activation: FunctionRow | None = None,
        params: dict[str, np.ndarray] | None = None,
    ) -> str:
        self.graph.add(Node(name, op, list(inputs), [name], params or {}, activation))
        return name

    def _weights(self, *shape: int) -> dict[str, np.ndarray]:
        weights = self._random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        bias = self._random.standard_normal(shape[0]) * 0.1
        return {"weights": weights.astype(np.float32), "bias": bias.astype(np.float32)}

    def conv(self, name: str, source: str, outputs: int, kernel: int = 3, pad: int = 1) -> str:
        params = self._weights(outputs, self.graph.shape(source)[1], kernel, kernel)
        if source == "input":
            params["weights"] /= np.float32(self.white)
        return self.add(name, Conv(pads=(pad, pad, pad, pad)), source, activation=RELU, params=params)

    def deconv(self, name: str, source: str, outputs: int) -> str:
        params = self._weights(outputs, self.graph.shape(source)[1], 4, 4)
        return self.add(name, Deconv((2, 2), (1, 1, 1, 1)), source, params=params)

    def fc(self, name: str, source: str, outputs: int) -> str:
        return self.add(name, Fc(), source, params=self._weights(outputs, int(np.prod(self.graph.shape(source)[1:]))))


Build = Callable[[SmallNetwork], str]
"""Adds the layers of a network, and returns its output."""


@dataclass(frozen=True)
class SelfTest:
    """One loadable of the self-test: what it shows, and the property of a configuration that it `needs`."""

    name: str
    build: Build
    shows: str
    needs: str = ""


_SELF_TESTS: Registry[SelfTest] = Registry("the self-test", "n2d2py_nvdla.export.layers")


def self_test(name: str, shows: str, needs: str = "") -> Callable[[Build], Build]:
    """Return decorator: makes a network one of the self-test, at the place of its name in alphabetical order."""

    def register(build: Build) -> Build:
        _SELF_TESTS.add(name, SelfTest(name, build, shows, needs))
        return build

    return register


def self_tests() -> list[SelfTest]:
    """All of them, in order."""
    return sorted(_SELF_TESTS.values(), key=lambda one: one.name)
