"""Concatenation of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph.forms import Moved
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register


@register
@dataclass(frozen=True)
class Concat(Op):
    """The channels of all inputs in order; the other axes must agree."""

    kind: ClassVar[str] = "Concat"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        first = inputs[0]
        for shape in inputs[1:]:
            if len(shape) != len(first) or shape[2:] != first[2:]:
                dims = " and ".join("x".join(map(str, s[1:])) for s in (first, shape))
                raise N2D2Error(
                    "E206",
                    f"Concat '{node.name}' has inputs of different sizes {dims}",
                    where=node.location,
                    remedy="use inputs of equal width and height",
                )
        return [(first[0], sum(shape[1] for shape in inputs), *first[2:])]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [np.concatenate(inputs, axis=1)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Inputs of the output's type are copied; others are rescaled by their own factor of `rescale`."""
        kind = graph.type(node.output)
        if isinstance(node.form, Moved):
            return [np.concatenate(inputs, axis=1)]
        channels = np.concatenate([np.full(x.shape[1], i) for i, x in enumerate(inputs)])
        stacked = np.concatenate(
            [x.astype(np.int64) - graph.type(name).zero_point for x, name in zip(inputs, node.inputs, strict=True)], axis=1
        )
        result = np.empty(stacked.shape, kind.dtype)
        for i in range(len(inputs)):
            acc = np.zeros((stacked.shape[0], len(inputs), *stacked[:, channels == i].shape[1:]), np.int64)
            acc[:, i] = stacked[:, channels == i]
            result[:, channels == i] = node.requantize(acc, kind)[:, i]
        return [result]
