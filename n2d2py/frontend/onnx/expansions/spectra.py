"""STFT and DFT of constant size as convolutions and products with constant matrices."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.onnx.parts import Parts, Unsupported, expands

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
    bins = length // 2 + 1 if parts.attribute("onesided", 1) else length
    _check_matrix_size(2 * bins * length)
    shape = np.ones(length) if window is None else window.reshape(-1).astype(np.float64)
    turns = 2 * np.pi * (np.outer(np.arange(bins), np.arange(length)) % length) / length
    weights = np.concatenate([np.cos(turns) * shape, -np.sin(turns) * shape])[:, None].astype(np.float32)
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
    half = length // 2 + 1
    bins, used = half if onesided and not inverse else length, min(half if to_real else length, dims[axis])
    _check_matrix_size(2 * bins * dims[axis] * dims[-1])
    turns = 2 * np.pi * (np.outer(np.arange(used), np.arange(bins)) % length) / length
    cosines, sines = np.cos(turns), np.sin(turns) * (1 if inverse else -1)
    matrix = np.zeros((dims[axis], dims[-1], bins, 2))
    matrix[:used, 0] = np.stack([cosines, sines], -1)
    if dims[-1] == 2:
        matrix[:used, 1] = np.stack([-sines, cosines], -1)
    if to_real:  # the other half of the bins is conjugate
        matrix = matrix[..., :1] * np.where((np.arange(dims[axis]) * 2) % length, 2, 1)[:, None, None, None]
    matrix /= length if inverse else 1
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
