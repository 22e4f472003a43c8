"""Arrays one behind the other along an axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.base import register

__all__ = ["ArrayJoin"]


@register
@dataclass(frozen=True)
class ArrayJoin(ArrayOp):
    """`outer` times: lengths[0] elements of operand 0, lengths[1] of operand 1, ..."""

    outer: int
    lengths: tuple[int, ...]
    slots: tuple[int, ...] = (0,)
    result: str = ""
    kind: ClassVar[str] = "ArrayJoin"

    def operand_sizes(self) -> tuple[int, ...]:
        return tuple(self.outer * length for length in self.lengths)

    def output_size(self) -> int:
        return self.outer * sum(self.lengths)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        count = len(inputs[0])
        parts = [
            np.broadcast_to(x, (count, x.shape[1])).reshape(count, self.outer, length)
            for x, length in zip(self.operands(inputs, node), self.lengths, strict=True)
        ]
        return self.typed(np.concatenate(parts, axis=2), inputs)
