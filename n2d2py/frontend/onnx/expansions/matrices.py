"""Determinants, identity matrices, reversed sequences, updated caches and spectra, as sums, constants, gathers and products."""

from typing import Any

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
    parts.add("Gather", parts.inputs[0], parts.reshape(parts.inputs[1], -1), axis=len(parts.dims(0)) - 1, out=0)


@expands("ai.onnx.ml::Binarizer")
def _binarizer(parts: Parts) -> None:
    above = parts.add("Greater", parts.inputs[0], parts.number(parts.attribute("threshold", 0.0)))
    parts.add("Cast", above, to=1, out=0)


@expands("BitCast")
def _bit_cast(parts: Parts) -> None:
    """Add a Cast between integers of one width, which keeps the bits."""
    kind, result = parts.kind(0), helper.tensor_dtype_to_np_dtype(parts.attribute("to"))
    if not kind or result.kind not in "iu" or np.dtype(kind).itemsize != result.itemsize:
        raise Unsupported("the bits of floating-point numbers are not available")
    parts.add("Cast", parts.inputs[0], to=parts.attribute("to"), out=0)


# ---- spectra -------------------------------------------------------------------------------------

_MAX_MATRIX_SIZE = 1 << 26
"""Largest number of elements of a transform matrix."""


@expands("STFT")
def _stft(parts: Parts) -> None:
    """Add a convolution with windowed cosines and sines: signal (N, samples[, 1]) to (N, frames, bins, 2)."""
    dims = parts.dims(0)
    step, window = parts.integer(1, "frame step"), parts.optional_constant(2, "window")
    length = parts.integer(3, "frame length")
    if not 2 <= len(dims) <= 3 or (len(dims) == 3 and dims[2] != 1):
        raise Unsupported(f"its signal of shape {'x'.join(map(str, dims))} is complex, which is not supported")
    if length is None:
        length = 0 if window is None else window.size
    if step is None or step < 1 or not 1 <= length <= dims[1] or (window is not None and window.size != length):
        raise Unsupported(f"frame length {length} and step {step} do not match the window or the signal of {dims[1]} samples")
    _check_matrix_size(2 * length * length)
    shape = np.ones(length) if window is None else window.reshape(-1).astype(np.float64)
    waves = (np.fft.rfft if parts.attribute("onesided", 1) else np.fft.fft)(np.diag(shape)).T
    bins, weights = len(waves), np.concatenate([waves.real, waves.imag])[:, None].astype(np.float32)
    line = parts.reshape(parts.inputs[0], 0, 1, dims[1])
    result = parts.add("Conv", line, parts.add_constant("waves", weights), strides=[step])
    frames = (dims[1] - length) // step + 1
    halves = parts.reshape(result, 0, 2, bins, frames)
    parts.add("Transpose", halves, out=0, perm=[0, 3, 2, 1])


@expands("DFT")
def _dft(parts: Parts) -> None:
    """Add a product with a constant matrix over the transformed axis and the real and imaginary parts."""
    dims, opset = parts.dims(0), parts.opset
    rank, asked = len(dims), parts.integer(1, "length")
    axis = parts.attribute("axis", 1) if opset < 20 else parts.integer(2, "axis")
    axis = -2 if axis is None else axis
    if axis not in (*range(1, rank - 1), *range(1 - rank, -1)) or dims[-1] not in (1, 2):
        raise Unsupported(f"axis {axis} cannot be transformed in shape {'x'.join(map(str, dims))}")
    axis %= rank
    inverse, onesided = parts.attribute("inverse", 0), parts.attribute("onesided", 0)
    to_real = inverse and onesided
    length = (2 * dims[axis] - 2 if to_real else dims[axis]) if asked is None else asked
    if length < 1:
        raise Unsupported(f"length {length} is below 1")
    if onesided and bool(inverse) != (dims[-1] == 2):
        raise Unsupported("onesided=1 is not supported for a complex transform")
    _check_matrix_size(2 * length * dims[axis] * dims[-1])
    transform = getattr(np.fft, ("i" if inverse else "") + ("rfft" if onesided else "fft"))
    units = np.eye(dims[axis])
    columns: Any = np.stack([transform(part, length) for part in (units, 1j * units)[: dims[-1]]], 1)
    matrix = columns[..., None] if to_real else np.stack([columns.real, columns.imag], -1)
    bins = matrix.shape[2]
    order = [*(index for index in range(rank - 1) if index != axis), axis, rank - 1]
    front = [0, *(dims[index] for index in order[1:-2])]  # 0: the batch, unchanged
    x = parts.inputs[0]
    if order != [*range(rank)]:
        x = parts.add("Transpose", x, perm=order)
    flat = parts.reshape(x, *front, dims[axis] * dims[-1])
    waves = parts.add_constant("waves", matrix.reshape(dims[axis] * dims[-1], -1).astype(np.float32))
    result = parts.add("MatMul", flat, waves)
    plain = order == [*range(rank)]
    result = parts.reshape(result, *front, bins, matrix.shape[-1], out=0 if plain else None)
    if not plain:
        parts.add("Transpose", result, out=0, perm=[order.index(index) for index in range(rank)])


def _check_matrix_size(elements: int) -> None:
    if elements > _MAX_MATRIX_SIZE:
        raise Unsupported(f"its matrix of {elements:,} elements exceeds the limit of {_MAX_MATRIX_SIZE:,}")
