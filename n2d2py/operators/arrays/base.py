"""Shared by the operators on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.contracts.operator import Op
from n2d2py.graph.shapes import Shape


def kind_dtype(kind: str, real: np.dtype | type = np.float32) -> np.dtype:
    """Return the NumPy type of a tensor kind; `real` for real numbers (kind "")."""
    return np.dtype(real) if not kind else np.dtype(np.bool_ if kind == "bool" else kind)


class ArrayOp(Op):
    """An operator on vectors; constant operands are parameters "operand0", "operand1", ...

    Subclasses define `slots`, the input index of each operand or -1 for a constant, and `result`, the kind of the output.
    """

    slots: tuple[int, ...] = (0,)
    result: str = ""
    mixes_types = True

    def operand_sizes(self) -> tuple[int, ...]:
        """Return the number of elements of each operand."""
        raise NotImplementedError

    def output_size(self) -> int:
        """Return the number of elements of the output."""
        raise NotImplementedError

    def output_kinds(self, kinds: list[str], node) -> list[str]:
        return [self.result]

    def output_shapes(self, inputs: list[Shape], node) -> list[Shape]:
        for index, (slot, size) in enumerate(zip(self.slots, self.operand_sizes(), strict=True)):
            constant = node.params.get(f"operand{index}") if slot < 0 else None
            dims = inputs[slot][1:] if slot >= 0 else (size if constant is None or constant.size == 1 else constant.size,)
            if tuple(dims) != (size,):
                what = f"requires an array of {size} elements instead of {'x'.join(map(str, dims))}"
                remedy = "correct the layer before it" if slot >= 0 else "correct the shape of its constants"
                raise self.error("E208", node, what, remedy)
        return [(1, self.output_size())]

    def operands(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        """Return the operands (N or 1, E), constants in the type of the real inputs."""
        real, result = self.real_dtype(inputs), []
        for index, slot in enumerate(self.slots):
            if slot >= 0:
                result.append(inputs[slot])
            else:
                constant = node.params[f"operand{index}"].reshape(1, -1)
                result.append(constant.astype(real) if constant.dtype.kind == "f" else constant)
        return result

    def real_dtype(self, inputs: list[np.ndarray]) -> np.dtype:
        """Return the type of real results."""
        return next((x.dtype for x in inputs if x.dtype.kind == "f"), np.dtype(np.float32))

    def as_output(self, values: np.ndarray, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Return the result as [(N, E)] in the type of its kind."""
        count = max(len(x) for x in inputs)
        values = np.broadcast_to(values, (count, *values.shape[1:])).reshape(count, -1)
        return [np.ascontiguousarray(values.astype(kind_dtype(self.result, self.real_dtype(inputs)), copy=False))]

    def run_integer(self, inputs: list[np.ndarray], node, graph) -> list[np.ndarray]:
        """Compute with integers of a fixed type unchanged; quantized integers are only moved or compared."""
        return [
            y.astype(graph.type(name).dtype, copy=False) for y, name in zip(self.run(inputs, node), node.outputs, strict=True)
        ]


def strides(dims: Sequence[int]) -> list[int]:
    """Return the row-major stride of each axis, in elements."""
    return [prod(dims[axis + 1 :]) for axis in range(len(dims))]


def around_axis(dims: Shape, axis: int) -> tuple[int, int, int]:
    """Return the number of elements before an axis, its size, and the number of elements after it."""
    return prod(dims[:axis]), dims[axis], prod(dims[axis + 1 :])


@dataclass(frozen=True)
class AxisOp(ArrayOp):
    """An operator along the middle axis of its first operand (outer, size, inner)."""

    outer: int
    size: int
    inner: int

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.outer * self.size * self.inner,)

    def to_lines(self, x: np.ndarray) -> np.ndarray:
        """Return an operand as (N, outer, size, inner)."""
        return x.reshape(-1, self.outer, self.size, self.inner)
