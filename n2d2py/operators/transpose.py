"""Permutation of axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op, register

__all__ = ["Transpose"]


@register
@dataclass(frozen=True)
class Transpose(Op):
    """Output axis i is input axis perm[i]; axis 0 is the batch and stays first."""

    perm: tuple[int, ...]
    kind: ClassVar[str] = "Transpose"
    moves_values: ClassVar[bool] = True

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        shape = inputs[0]
        if sorted(self.perm) != list(range(len(shape))) or self.perm[0] != 0:
            raise N2D2Error(
                "E209",
                f"Transpose '{node.name}': {list(self.perm)} does not permute the axes after "
                f"the batch of a tensor of rank {len(shape)}",
                where=node.location,
                remedy="keep the batch axis in place",
            )
        return [tuple(shape[axis] for axis in self.perm)]

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        return [inputs[0].transpose(self.perm)]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        return self.run(inputs, node)
