"""Sums, means, extremes and their positions over axes; running sums along one."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic import functions as exact
from n2d2py.arithmetic.functions import sequential_sum
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.base import register


def _last(function):
    return lambda x: x.shape[-1] - 1 - function(x[..., ::-1], axis=-1)


def _log_sum_exp(x: np.ndarray) -> np.ndarray:
    top = x.max(-1).astype(np.float64)
    shift = np.where(np.isfinite(top), top, 0.0)
    return exact.log(sequential_sum(exact.exp(x.astype(np.float64) - shift[..., None]))) + shift


def _square(x: np.ndarray) -> np.ndarray:
    return np.square(x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64))


def _mean(x: np.ndarray) -> np.ndarray:
    total = sequential_sum(x)
    if x.dtype.kind == "f":
        return total / x.shape[-1]
    signed = total.astype(np.int64)  # as the sums in 64 bits of C++
    return np.where(signed < 0, -(-signed // x.shape[-1]), signed // x.shape[-1])


def _product(x: np.ndarray) -> np.ndarray:
    return np.multiply.accumulate(x.astype(np.float64 if x.dtype.kind == "f" else np.int64), axis=-1)[..., -1]


REDUCTIONS = {
    "Sum": sequential_sum,
    "Mean": _mean,
    "Max": lambda x: x.max(-1),
    "Min": lambda x: x.min(-1),
    "Prod": _product,
    "L1": lambda x: sequential_sum(np.abs(x)),
    "L2": lambda x: np.sqrt(sequential_sum(_square(x))),
    "SumSquare": lambda x: sequential_sum(_square(x)),
    "LogSum": lambda x: exact.log(sequential_sum(x)),
    "LogSumExp": _log_sum_exp,
    "ArgMax": lambda x: np.argmax(x, -1),
    "ArgMin": lambda x: np.argmin(x, -1),
    "ArgMaxLast": _last(np.argmax),
    "ArgMinLast": _last(np.argmin),
}
"""Function -> its value for the last axis; sums in float64 (integers: int64) in order."""


@register
@dataclass(frozen=True)
class ArrayReduce(ArrayOp):
    """`function` over the axes `axes` of an array of dimensions `dims`. ArgMax and ArgMin: the first position of the
    extreme (the last one with "Last"), over one axis."""

    function: str
    dims: tuple[int, ...]
    axes: tuple[int, ...]
    result: str = ""
    kind: ClassVar[str] = "ArrayReduce"

    def operand_sizes(self) -> tuple[int, ...]:
        return (prod(self.dims),)

    def output_size(self) -> int:
        return prod(self.dims) // prod(self.dims[axis] for axis in self.axes)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return prod(self.dims)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(len(inputs[0]), *self.dims)
        kept = [axis for axis in range(len(self.dims)) if axis not in self.axes]
        ordered = x.transpose(0, *(axis + 1 for axis in kept), *(axis + 1 for axis in self.axes))
        lines = ordered.reshape(len(x), self.output_size(), -1)
        with np.errstate(all="ignore"):
            return self.typed(REDUCTIONS[self.function](lines), inputs)


@register
@dataclass(frozen=True)
class ArrayCumSum(ArrayOp):
    """Running sums (products with `product`) along the middle axis of (outer, size, inner).

    `exclusive`: without the element itself; `reverse`: from the last element on.
    """

    outer: int
    size: int
    inner: int
    exclusive: bool = False
    reverse: bool = False
    product: bool = False
    result: str = ""
    kind: ClassVar[str] = "ArrayCumSum"

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.outer * self.size * self.inner,)

    def output_size(self) -> int:
        return self.outer * self.size * self.inner

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(-1, self.outer, self.size, self.inner)
        x = x[:, :, ::-1] if self.reverse else x
        wide = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
        total = (np.multiply if self.product else np.add).accumulate(wide, axis=2)
        if self.exclusive:
            first = np.full_like(total[:, :, :1], 1 if self.product else 0)
            total = np.concatenate([first, total[:, :, :-1]], axis=2)
        return self.typed(total[:, :, ::-1] if self.reverse else total, inputs)


memory_access("ArrayReduce", "ArrayCumSum")(whole)
