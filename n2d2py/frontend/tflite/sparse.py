"""Dense values of sparse tensors in .tflite files.

The format is `SparsityParameters` of TFLite's schema. Axes, some of them split into an outer and a block axis, are traversed in
a stored order. Each axis is dense, or lists its indices below each position of the axis before it (compressed sparse rows).
"""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.frontend.tflite.flatbuffer import DamagedFile, FlatTable
from n2d2py.graph.shapes import Shape

_MIN_POSITIONS = 1 << 16
"""Number of positions that is always allowed."""
_INDEX_TYPES = {1: "<i4", 2: "<u2", 3: "u1"}
"""Element types of an index list, by the type of its table."""
_Lists = tuple[np.ndarray, np.ndarray]
"""The segments and the indices of an axis that is not dense."""


def dense_values(sparsity: FlatTable, shape: Shape, stored: np.ndarray, name: str) -> np.ndarray:
    """Return the values of a tensor of this shape; `stored` are the nonzero values.

    Raises DamagedFile: the lists do not fit each other, the shape or the values.
    """
    try:
        return _dense_values(sparsity, shape, stored)
    except (ValueError, IndexError) as error:
        raise DamagedFile(f"the lists of the sparse tensor '{name}' do not fit ({error})") from None


def _dense_values(sparsity: FlatTable, shape: Shape, stored: np.ndarray) -> np.ndarray:
    order, blocked = (sparsity.vector(slot, "<i4").tolist() for slot in (0, 1))
    axes = [_read_axis(entry) for entry in sparsity.tables(2, len(order))]
    rank = len(shape)
    if not shape or sorted(order) != [*range(rank + len(blocked))] or len(axes) != len(order):
        raise ValueError(f"{rank} axes and {len(blocked)} blocks in the order {order[:16]}")
    if len({*blocked} & {*range(rank)}) < len(blocked):
        raise ValueError(f"blocks of the axes {blocked[:16]}")
    blocks = [axes[order.index(rank + index)] for index in range(len(blocked))]
    sizes = [*shape, *(block if isinstance(block, int) else 0 for block in blocks)]
    for axis, block in zip(blocked, sizes[rank:], strict=True):
        if block < 1 or shape[axis] % block:
            raise ValueError(f"blocks of {block} in an axis of {shape[axis]}")
        sizes[axis] //= block
    places = _value_positions(order, axes, sizes, stored.size)
    index = places[:rank]
    for position, axis in enumerate(blocked, rank):
        index[axis] = index[axis] * sizes[position] + places[position]
    values = np.zeros(shape, stored.dtype)
    values[tuple(index)] = stored
    return values


def _read_axis(entry: FlatTable) -> int | _Lists:
    """Return the size of a dense axis, or the lists of another one."""
    if entry.integer(0, "<b") == 0:
        return entry.integer(1)
    kinds = [_INDEX_TYPES.get(entry.integer(slot, "<B"), "") for slot in (2, 4)]
    if not all(kinds):
        raise ValueError("a list of indices is missing")
    begins, indices = (entry.table(slot).vector(0, kind).astype(np.int64) for slot, kind in zip((3, 5), kinds, strict=True))
    return begins, indices


def _value_positions(order: list[int], axes: list[int | _Lists], sizes: list[int], values: int) -> list[np.ndarray]:
    """Return the index of each of the stored `values` along each axis."""
    result: dict[int, np.ndarray] = {}
    longest = max(_MIN_POSITIONS, values, *(len(one[0]) for one in axes if not isinstance(one, int)))
    count = 1
    for axis, one in zip(order, axes, strict=True):
        if isinstance(one, int):
            if one != sizes[axis] or count * one > longest:  # no list after it is as long: nothing so large is made
                raise ValueError(f"a dense axis of {one}, not {sizes[axis]}, or more positions than the file lists")
            lengths, indices = np.full(count, one), np.tile(np.arange(one), count)
        else:
            begins, indices = one
            lengths = np.diff(begins)
            if len(lengths) != count or begins[0] != 0 or begins[-1] != len(indices):
                raise ValueError(f"indices of {len(lengths)} positions, not {count}")
            if np.any((indices < 0) | (indices >= sizes[axis])):
                raise ValueError(f"an index outside of {sizes[axis]}")
        result = {other: np.repeat(index, lengths) for other, index in result.items()}
        result[axis] = indices
        count = len(indices)
        if count > prod(sizes):
            raise ValueError("more positions than elements")
    if count != values:
        raise ValueError(f"{count:,} positions for {values:,} values")
    return [result[axis] for axis in range(len(sizes))]
