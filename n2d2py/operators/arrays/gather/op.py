"""Elements chosen by indices that are computed in the network."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.base import register


@register
@dataclass(frozen=True)
class ArrayGather(ArrayOp):
    """Lines of x (outer, size, inner) by `count` indices: y (outer, count, inner). Operands: x, indices.

    With `each` the indices have the shape of the result (outer, count, inner) and choose element by element. A
    negative index counts from the end; one outside is held at the nearest line.
    """

    outer: int
    size: int
    inner: int
    count: int
    each: bool = False
    slots: tuple[int, ...] = (0, 1)
    result: str = ""
    kind: ClassVar[str] = "ArrayGather"

    def operand_sizes(self) -> tuple[int, ...]:
        return self.outer * self.size * self.inner, self.count * (self.outer * self.inner if self.each else 1)

    def output_size(self) -> int:
        return self.outer * self.count * self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, indices = self.operands(inputs, node)
        count = max(len(x), len(indices))
        x = np.broadcast_to(x, (count, x.shape[1])).reshape(count, self.outer, self.size, self.inner)
        shape = (self.outer, self.count, self.inner) if self.each else (1, self.count, 1)
        lines = indices.astype(np.int64).reshape(-1, *shape)
        lines = np.clip(np.where(lines < 0, lines + self.size, lines), 0, self.size - 1)
        lines = np.broadcast_to(lines, (count, self.outer, self.count, self.inner))
        return self.typed(np.take_along_axis(x, lines, axis=2), inputs)


@register
@dataclass(frozen=True)
class ArrayScatter(ArrayOp):
    """x with updates at positions: y = x; y[indices[i] ...] = update i, in order. Operands: x, indices, updates.

    x is (outer, size, inner). With `each` indices and updates are (outer', count, inner') of the dimensions `region`
    and go element by element along the middle axis; without it x is (size, inner), indices are `count` line numbers
    and each update is a line of `inner`. `combine`: "none", "add", "mul", "max" or "min" with what is there.
    """

    outer: int
    size: int
    inner: int
    count: int
    region: tuple[int, int] = (1, 1)
    each: bool = False
    combine: str = "none"
    slots: tuple[int, ...] = (0, 1, 2)
    result: str = ""
    kind: ClassVar[str] = "ArrayScatter"

    def operand_sizes(self) -> tuple[int, ...]:
        total = self.outer * self.size * self.inner
        if self.each:
            return total, self.count * prod(self.region), self.count * prod(self.region)
        return total, self.count, self.count * self.inner

    def output_size(self) -> int:
        return self.outer * self.size * self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, indices, updates = self.operands(inputs, node)
        count = max(len(x), len(indices), len(updates))
        x, indices, updates = (np.broadcast_to(v, (count, v.shape[1])) for v in (x, indices, updates))
        result = x.reshape(count, self.outer, self.size, self.inner).copy()
        apply = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[self.combine]
        for n in range(count):
            lines = indices[n].astype(np.int64)
            lines = np.clip(np.where(lines < 0, lines + self.size, lines), 0, self.size - 1)
            if self.each:
                _outer, inner = self.region
                for position, (line, value) in enumerate(zip(lines, updates[n], strict=True)):
                    o, i = position // (self.count * inner), position % inner
                    result[n, o, line, i] = apply(result[n, o, line, i], value)
            else:
                for position, line in enumerate(lines):
                    piece = updates[n][position * self.inner : (position + 1) * self.inner]
                    result[n, 0, line] = apply(result[n, 0, line], piece)
        return self.typed(result, inputs)


memory_access("ArrayGather", "ArrayScatter")(whole)
