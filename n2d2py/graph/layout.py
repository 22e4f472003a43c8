"""The order of a tensor's elements in memory: images (C, H, W) are stored channels-last (HWC), arrays row-major."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.graph.shapes import Shape


def memory_axes(rank: int) -> tuple[int, ...]:
    """The axes of a tensor of `rank` axes, batch included, from the outermost one in memory to the innermost one."""
    return (0, *range(2, rank), 1) if rank > 1 else (0,)


def in_memory_order(x: np.ndarray) -> np.ndarray:
    """A tensor (N, C, H, W), (N, C, L) or (N, E) as (N, elements), in the order of memory."""
    return x.transpose(memory_axes(x.ndim)).reshape(len(x), -1)


def of_memory_order(rows: np.ndarray, shape: Shape) -> np.ndarray:
    """The tensor of `shape`, whose batch is that of `rows`, of its elements in the order of memory."""
    axes = memory_axes(len(shape))
    stored = rows.reshape(len(rows), *(shape[axis] for axis in axes[1:]))
    return np.ascontiguousarray(stored.transpose(np.argsort(axes)))


def rows_along(shape: Shape, axis: int) -> tuple[int, int, int]:
    """(outer, size, inner) of an axis of a tensor in memory: element k of row (o, i) is at (o * size + k) * inner + i."""
    stored = [shape[each] for each in memory_axes(len(shape))]
    place = memory_axes(len(shape)).index(axis)
    return prod(stored[1:place]), stored[place], prod(stored[place + 1 :])


def axis_along(shape: Shape, size: int, inner: int) -> int | None:
    """The axis of a tensor whose `size` elements are `inner` elements apart in memory; None where they are not one axis."""
    axes = memory_axes(len(shape))[1:]
    return next((axis for axis in reversed(axes) if rows_along(shape, axis)[1:] == (size, inner)), None)
