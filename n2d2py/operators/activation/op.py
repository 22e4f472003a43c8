"""A layer that only applies an activation function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.interpolated import interpolate
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register
from n2d2py.operators.functions import Function

__all__ = ["Activation"]


@register
@dataclass(frozen=True)
class Activation(Op):
    """y = function(x), element by element."""

    function: Function
    kind: ClassVar[str] = "Activation"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self.function(inputs[0])]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Looks q up in "table", which has one output for each stored input value from qmin up, or between "knots"."""
        kind = graph.type(node.inputs[0])
        if "knots" in node.params:
            output, lowest = graph.type(node.output), -(2 ** (kind.bits - 1)) if kind.signed else 0
            found = interpolate(node.params["knots"], inputs[0].astype(np.int64) - lowest, output.qmin, output.qmax)
            return [found.astype(output.dtype)]
        first = kind.qmin
        return [node.params["table"][inputs[0].astype(np.int64) - first].astype(graph.type(node.output).dtype)]
