"""Determinants, identity matrices, reversed sequences and updated caches, as sums, constants, gathers and scatters."""

from __future__ import annotations

import numpy as np
from onnx import helper

from n2d2py.frontend.onnx.parts import Parts, Unsupported, expands

_LARGEST = 4
"""Rows of a matrix whose determinant is expanded along rows."""


@expands("Det")
def _det(parts: Parts) -> None:
    """Laplace's expansion: x (..., n, n) to (...)."""
    dims = parts.dims(0)
    if len(dims) < 2 or dims[-1] != dims[-2] or not 1 <= dims[-1] <= _LARGEST:
        raise Unsupported(f"determinants of {'x'.join(map(str, dims[-2:]))} are not supported, those up to 4x4 are")
    size = dims[-1]
    rows = [parts.split(row, len(dims) - 1, [1] * size) for row in parts.split(parts.inputs[0], len(dims) - 2, [1] * size)]

    def minor(row: int, columns: list[int]) -> str:
        if row == size - 1:
            return rows[row][columns[0]]
        result = ""
        for index, column in enumerate(columns):
            term = parts.add("Mul", rows[row][column], minor(row + 1, [other for other in columns if other != column]))
            result = parts.add("Sub" if index % 2 else "Add", result, term) if result else term
        return result

    parts.reshape(minor(0, [*range(size)]), *(0 for _ in dims[:-2]), out=0)


@expands("EyeLike")
def _eye_like(parts: Parts) -> None:
    """Add a constant, by the shape of the input alone."""
    rows, columns = parts.dims(0)
    kind = helper.tensor_dtype_to_np_dtype(parts.attribute("dtype", 1))
    parts.add("Identity", parts.add_constant("eye", np.eye(rows, columns, parts.attribute("k", 0), kind)), out=0)


@expands("ReverseSequence")
def _reverse_sequence(parts: Parts) -> None:
    """Add a Gather along the time axis: the first steps of each sequence, as many as it has, in the opposite order."""
    dims, time, batch = parts.dims(0), parts.attribute("time_axis", 0), parts.attribute("batch_axis", 1)
    lengths = parts.constant(1, "lengths").astype(np.int64)
    if {time, batch} != {0, 1} or lengths.size != dims[batch]:
        raise Unsupported(f"time axis {time} and batch axis {batch} do not fit {lengths.size} sequences")
    steps = np.arange(dims[time])[:, None]
    order = np.where(steps < lengths, lengths - 1 - steps, steps)
    order = order if time == 0 else order.T
    if (lengths == lengths[0]).all():
        parts.add("Gather", parts.inputs[0], parts.add_constant("order", order.take(0, axis=batch)), axis=time, out=0)
        return
    index = np.broadcast_to(order.reshape(*order.shape, *[1] * (len(dims) - 2)), dims)
    parts.add("GatherElements", parts.inputs[0], parts.add_constant("order", np.ascontiguousarray(index)), axis=time, out=0)


@expands("Compress")
def _compress(parts: Parts) -> None:
    """Add a Gather of the positions, along one axis or of all elements, at which a constant condition holds."""
    places = np.flatnonzero(parts.constant(1, "condition"))
    axis = parts.attribute("axis")
    x = parts.inputs[0] if axis is not None else parts.reshape(parts.inputs[0], -1)
    parts.add("Gather", x, parts.add_constant("places", places), axis=axis or 0, out=0)


@expands("TensorScatter")
def _tensor_scatter(parts: Parts) -> None:
    """Add a ScatterElements of an update (N, ..., steps, ...) into a cache, from a position of each sample on."""
    dims, update = parts.dims(0), parts.dims(1)
    axis = parts.attribute("axis", -2) % len(dims)
    lines = [-1 if index == axis else 1 for index in range(len(dims))]
    places = parts.add_constant("steps", np.arange(update[axis]).reshape(lines))
    if parts.has(2):
        first = parts.reshape(parts.inputs[2], *(-1 if index == 0 else 1 for index in range(len(dims))))
        places = parts.add("Add", parts.add("Cast", first, to=7), places)
    if parts.attribute("mode", "linear") == "circular":
        places = parts.add("Mod", places, parts.add_constant("length", np.array(dims[axis])))
    places = parts.add("Expand", places, parts.add_constant("shape", np.array(update)))
    parts.add("ScatterElements", parts.inputs[0], places, parts.inputs[1], axis=axis, out=0)


@expands("ai.onnx.ml::ArrayFeatureExtractor")
def _array_features(parts: Parts) -> None:
    """Add a Gather along the last axis."""
    parts.add("Gather", parts.inputs[0], parts.reshape(parts.inputs[1], -1), axis=len(parts.dims(0)) - 1, out=0)


@expands("ai.onnx.ml::Binarizer")
def _binarizer(parts: Parts) -> None:
    """Add a comparison with a threshold."""
    above = parts.add("Greater", parts.inputs[0], parts.number(parts.attribute("threshold", 0.0)))
    parts.add("Cast", above, to=1, out=0)


@expands("BitCast")
def _bit_cast(parts: Parts) -> None:
    """Add a Cast between integers of one width, which keeps the bits."""
    kind, result = parts.kind(0), helper.tensor_dtype_to_np_dtype(parts.attribute("to"))
    if not kind or result.kind not in "iu" or np.dtype(kind).itemsize != result.itemsize:
        raise Unsupported("the bits of floating-point numbers are not available")
    parts.add("Cast", parts.inputs[0], to=parts.attribute("to"), out=0)
