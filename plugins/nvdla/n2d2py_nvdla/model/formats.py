"""Feature cubes, operands and images in memory as arrays.

An atom holds `lanes` neighbouring channels of one pixel. Lanes after the last channel are read, computed and written
like the others, as hardware does.
"""

from __future__ import annotations

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py_nvdla.firmware import BYTES, FP16, INT8, INT16

DTYPES = {INT8: np.dtype("<i1"), INT16: np.dtype("<i2"), FP16: np.dtype("<f2")}
"""Type of an element by precision."""


def strided(memory: np.ndarray, base: int, shape: tuple[int, ...], strides: tuple[int, ...], what: str) -> np.ndarray:
    """Return a view of `memory` (uint8) with byte strides; the last axis is contiguous bytes.

    Raises:
        N2D2Error: E906 when it leaves the memory.
    """
    last = base + sum((count - 1) * step for count, step in zip(shape, strides, strict=True))
    if 0 in shape:
        raise N2D2Error("E906", f"{what} has a dimension of 0", remedy="compile it again")
    if base < 0 or last >= len(memory):
        raise N2D2Error("E906", f"{what} ends at byte {last + 1} of a memory of {len(memory)}", remedy="compile it again")
    return np.lib.stride_tricks.as_strided(memory[base:], shape, strides)


def read_feature(
    memory: np.ndarray,
    base: int,
    shape: tuple[int, int, int],
    line: int,
    surface: int,
    precision: int,
    atom: int,
    what: str,
    lanes: int | None = None,
    per_element: int = 1,
) -> np.ndarray:
    """Return the cube of shape (C, H, W) as (C rounded up to lanes, H, W), or (components, C, H, W) when `per_element` > 1.

    `lanes` (default: what fits into an atom) elements of `per_element` components stand side by side.
    """
    c, h, w = shape
    lanes = lanes or atom // BYTES[precision]
    size = lanes * per_element * BYTES[precision]
    surfaces = -(-c // lanes)
    view = strided(memory, base, (surfaces, h, w, size), (surface, line, size, 1), what)
    values = np.ascontiguousarray(view).view(DTYPES[precision])
    if per_element == 1:
        return values.transpose(0, 3, 1, 2).reshape(surfaces * lanes, h, w)
    parts = values.reshape(surfaces, h, w, lanes, per_element)
    return parts.transpose(4, 0, 3, 1, 2).reshape(per_element, surfaces * lanes, h, w)


def write_feature(memory: np.ndarray, base: int, values: np.ndarray, line: int, surface: int, atom: int, what: str) -> None:
    """Store (C, H, W), C being a multiple of the lanes of an atom."""
    c, h, w = values.shape
    lanes = atom // values.dtype.itemsize
    view = strided(memory, base, (c // lanes, h, w, atom), (surface, line, atom, 1), what)
    packed = np.ascontiguousarray(values.reshape(c // lanes, lanes, h, w).transpose(0, 2, 3, 1))
    view[...] = packed.view(np.uint8)


def read_vector(memory: np.ndarray, base: int, count: int, precision: int, per_element: int) -> np.ndarray:
    """Return a table of `count` elements as (components, count); what lies after the memory is 0."""
    size = count * per_element * BYTES[precision]
    data = np.zeros(size, np.uint8)
    found = memory[base : base + size]
    data[: len(found)] = found
    return data.view(DTYPES[precision]).reshape(count, per_element).T


def as_array(
    data: np.ndarray, shape: tuple[int, int, int], line: int, surface: int, precision: int, atom: int, what: str = "the tensor"
) -> np.ndarray:
    """Return the logical (C, H, W) of a tensor in the hardware's layout."""
    return read_feature(data, 0, shape, line, surface, precision, atom, what)[: shape[0]]


def as_bytes(values: np.ndarray, size: int, line: int, surface: int, atom: int, what: str = "the tensor") -> np.ndarray:
    """(C, H, W) in the hardware's layout; padding is 0."""
    lanes = atom // values.dtype.itemsize
    c, h, w = values.shape
    padded = np.zeros((-(-c // lanes) * lanes, h, w), values.dtype)
    padded[:c] = values
    data = np.zeros(size, np.uint8)
    write_feature(data, 0, padded, line, surface, atom, what)
    return data
