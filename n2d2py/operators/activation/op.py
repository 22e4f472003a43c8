"""A layer that only applies an activation function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.interpolated import interpolate
from n2d2py.graph.forms import Interpolated, Table
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import memory_access, pointwise
from n2d2py.operators.base import Op, register
from n2d2py.operators.functions import FunctionRow


@register
@dataclass(frozen=True)
class Activation(Op):
    """y = function(x), element by element."""

    function: FunctionRow
    kind: ClassVar[str] = "Activation"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [inputs[0]]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [self.function(inputs[0])]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Looks q up in a table, or interpolates between knots."""
        kind = graph.type(node.inputs[0])
        if isinstance(node.form, Interpolated):
            output, lowest = graph.type(node.output), -(2 ** (kind.bits - 1)) if kind.signed else 0
            found = interpolate(node.form.knots, inputs[0].astype(np.int64) - lowest, output.qmin, output.qmax)
            return [found.astype(output.dtype)]
        return [node.form_as(Table).table[inputs[0].astype(np.int64) - kind.qmin].astype(graph.type(node.output).dtype)]


memory_access("Activation")(pointwise)
