"""Shapes are (N, C, H, W), (N, C, L) or (N, C) tuples with batch 1; these accessors name the axes.

Images (C, H, W) are stored channels-last (HWC), arrays row-major.
"""

from collections.abc import Iterable
from math import prod

import numpy as np

Shape = tuple[int, ...]

MAX_ELEMENTS = 1 << 28
"""Elements that a parameter may have: 1 GiB of float32, far beyond what the targets hold."""

MAX_TENSOR = 1 << 26
"""Elements that a tensor of the network may have: 256 MiB of float32."""

MAX_STEP = 1 << 20
"""Elements of a window or a stride along one axis."""

MAX_PAD = 1 << 12
"""Elements of a pad along one axis: beyond it, results would be made of little else."""


def dims_text(dims: Iterable[int | None], between: str = "x") -> str:
    """Return a shape as a text, with ? for an open size."""
    return between.join("?" if size is None else str(size) for size in dims)


def channels(shape: Shape) -> int:
    """Return the size of the channel axis; 1 for a rank-1 shape."""
    return shape[1] if len(shape) > 1 else 1


def height(shape: Shape) -> int:
    """Return the number of lines; 1 below rank 4."""
    return shape[2] if len(shape) >= 4 else 1


def width(shape: Shape) -> int:
    """Return the number of columns; the length of a rank-3 shape, 1 below rank 3."""
    return shape[-1] if len(shape) >= 3 else 1


def elements(shape: Shape) -> int:
    """Return the number of elements of one stimulus."""
    return prod(shape[1:])


def n2d2_dims(shape: Shape) -> list[int]:
    """Return the dimensions in N2D2's order X Y C (width, height, channels), batch left out."""
    return [width(shape), height(shape), channels(shape)]


def memory_axes(rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor of `rank` axes, batch included, from the outermost one in memory to the innermost one."""
    return (0, *range(2, rank), 1) if rank > 1 else (0,)


def in_memory_order(x: np.ndarray) -> np.ndarray:
    """Return a tensor (N, C, H, W), (N, C, L) or (N, E) as (N, elements), in the order of memory."""
    return x.transpose(memory_axes(x.ndim)).reshape(len(x), -1)


def of_memory_order(rows: np.ndarray, shape: Shape) -> np.ndarray:
    """Return the tensor of `shape`, whose batch is that of `rows`, of its elements in the order of memory."""
    axes = memory_axes(len(shape))
    stored = rows.reshape(len(rows), *(shape[axis] for axis in axes[1:]))
    return np.ascontiguousarray(stored.transpose(np.argsort(axes)))


def rows_along(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return (outer, size, inner) of an axis in memory: element k of row (o, i) is at (o * size + k) * inner + i."""
    stored = [shape[each] for each in memory_axes(len(shape))]
    place = memory_axes(len(shape)).index(axis)
    return prod(stored[1:place]), stored[place], prod(stored[place + 1 :])


def axis_along(shape: Shape, size: int, inner: int) -> int | None:
    """Return the axis of a tensor whose `size` elements are `inner` elements apart in memory; None if there is none."""
    axes = memory_axes(len(shape))[1:]
    return next((axis for axis in reversed(axes) if rows_along(shape, axis)[1:] == (size, inner)), None)
