"""Dense values of sparse tensors in .tflite files.

The format is `SparsityParameters` of TFLite's schema. Axes, some of them split into an outer and a block axis, are traversed in
a stored order. Each axis is dense, or lists its indices below each position of the axis before it (compressed sparse rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from n2d2py.frontend.tflite.flatbuffer import DamagedFile, FlatTable
from n2d2py.graph.shapes import Shape

_MIN_POSITIONS = 1 << 16
"""Number of positions that is always allowed."""
_INDEX_TYPES = {1: "<i4", 2: "<u2", 3: "u1"}
"""Element types of an index list, by the type of its table."""


@dataclass(frozen=True)
class _Axis:
    """An axis in storage order: its size if it is dense, else the segments and the indices."""

    size: int = 0
    begins: np.ndarray | None = None
    indices: np.ndarray | None = None


def dense_values(sparsity: FlatTable, shape: Shape, stored: np.ndarray, name: str) -> np.ndarray:
    """Return the values of a tensor of this shape; `stored` are the nonzero values.

    Raises DamagedFile: the lists do not fit each other, the shape or the values.
    """
    order, blocked = ([int(axis) for axis in sparsity.vector(slot, "<i4")] for slot in (0, 1))
    axes = [_read_axis(entry, name) for entry in sparsity.tables(2, len(order))]
    rank = len(shape)
    if not shape or sorted(order) != list(range(rank + len(blocked))) or len(axes) != len(order):
        raise DamagedFile(
            f"the sparse tensor '{name}' of {rank} axes and {len(blocked)} blocks is stored in the order {order[:16]}"
        )
    if len(set(blocked)) < len(blocked) or any(not 0 <= axis < rank for axis in blocked):
        raise DamagedFile(f"the sparse tensor '{name}' has blocks of the axes {blocked[:16]}")
    sizes = _axis_sizes(order, blocked, axes, shape, name)
    places = _value_positions(order, axes, sizes, stored.size, name)
    values = np.zeros(shape, stored.dtype)
    index = [places[axis] for axis in range(rank)]
    for position, axis in enumerate(blocked):
        index[axis] = index[axis] * sizes[rank + position] + places[rank + position]
    values[tuple(index)] = stored
    return values


def _read_axis(entry: FlatTable, name: str) -> _Axis:
    if entry.integer(0, "<b") == 0:
        return _Axis(entry.integer(1))
    lists = []
    for slot in (2, 4):
        kind = _INDEX_TYPES.get(entry.integer(slot, "<B"))
        if kind is None or not entry.has(slot + 1):
            raise DamagedFile(f"the sparse tensor '{name}' lacks a list of indices")
        lists.append(entry.table(slot + 1).vector(0, kind).astype(np.int64))
    return _Axis(begins=lists[0], indices=lists[1])


def _axis_sizes(order: Sequence[int], blocked: Sequence[int], axes: Sequence[_Axis], shape: Shape, name: str) -> list[int]:
    """Return the sizes of the tensor's axes without their blocks, and of the blocks."""
    rank = len(shape)
    blocks = [axes[order.index(rank + index)].size for index in range(len(blocked))]
    sizes = [*shape, *blocks]
    for axis, block in zip(blocked, blocks, strict=True):
        if block < 1 or shape[axis] % block:
            raise DamagedFile(f"the sparse tensor '{name}' has blocks of {block} in an axis of {shape[axis]}")
        sizes[axis] //= block
    for axis, one in zip(order, axes, strict=True):
        if one.indices is None and one.size != sizes[axis]:
            raise DamagedFile(f"the sparse tensor '{name}' has a dense axis of {one.size}, not {sizes[axis]}")
    return sizes


def _value_positions(order: list[int], axes: list[_Axis], sizes: list[int], values: int, name: str) -> dict[int, np.ndarray]:
    """Return the index of each of the stored `values` along each axis."""
    result: dict[int, np.ndarray] = {}
    count, most = 1, prod(sizes)
    longest = max(_MIN_POSITIONS, values, *(len(one.begins) for one in axes if one.begins is not None))
    for axis, one in zip(order, axes, strict=True):
        if one.begins is None or one.indices is None:
            if count * sizes[axis] > longest:  # no list after it is as long: nothing so large is made
                raise DamagedFile(f"the sparse tensor '{name}' has more positions than the file lists")
            lengths, indices = np.full(count, sizes[axis]), np.tile(np.arange(sizes[axis]), count)
        else:
            lengths, indices = np.diff(one.begins), one.indices
            is_whole = len(one.begins) == count + 1 and one.begins[0] == 0 and one.begins[-1] == len(indices)
            if not is_whole or (lengths < 0).any():
                raise DamagedFile(f"the sparse tensor '{name}' lists the indices of {len(lengths)} positions, not {count}")
            if ((indices < 0) | (indices >= sizes[axis])).any():
                raise DamagedFile(f"the sparse tensor '{name}' has an index outside of {sizes[axis]}")
        result = {other: np.repeat(index, lengths) for other, index in result.items()}
        result[axis] = indices
        count = len(indices)
        if count > most:
            raise DamagedFile(f"the sparse tensor '{name}' lists more positions than it has")
    if count != values:
        raise DamagedFile(f"the sparse tensor '{name}' lists {count:,} positions for {values:,} values")
    return result
