"""Fully connected layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import exact_float, matmul_sums
from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape, elements
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.base import Op, register


@register
@dataclass(frozen=True)
class Fc(Op):
    """y[o] = bias[o] + sum over k of w[o, k] * x[k], x flattened in C, H, W order.

    Parameters: "weights" (O, K), "bias" (O, always present after loading).
    """

    kind: ClassVar[str] = "Fc"

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        outputs, features = node.params["weights"].shape
        if elements(inputs[0]) != features:
            raise N2D2Error(
                "E204",
                f"Fc '{node.name}' has weights for {features} inputs, but its input has {elements(inputs[0])} elements "
                f"({'x'.join(map(str, inputs[0][1:]))})",
                where=node.location,
                remedy="correct the layer before it",
            )
        return [(inputs[0][0], outputs)]

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return int(node.params["weights"].size)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(len(inputs[0]), -1)
        return [x @ node.params["weights"].astype(x.dtype).T + node.params["bias"].astype(x.dtype)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        x = inputs[0].reshape(len(inputs[0]), -1)
        acc = matmul_sums(x, node.params["weights"], node.bound)
        acc = acc + node.params["bias"].astype(exact_float(node.bound))
        return [node.requantize(acc, graph.type(node.output))]


memory_access("Fc")(whole)
