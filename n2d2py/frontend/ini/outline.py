"""The result of a layer that has dimensions but no arithmetic here: what -describe shows of it."""

from __future__ import annotations

from dataclasses import dataclass

from n2d2py.graph.shapes import Shape
from n2d2py.operators.base import Op

__all__ = ["Outline"]


@dataclass(frozen=True)
class Outline(Op):
    """A result of a fixed shape. Never part of a graph that runs.

    Attributes:
        shape: of its output, batch 1 first.
        kind: the layer's type.
    """

    shape: Shape
    kind: str = "Outline"  # type: ignore[misc]

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        return [self.shape]
