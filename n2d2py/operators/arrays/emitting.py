"""Shared by the ONNX emitters of operators on arrays: conversion between vectors and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from n2d2py.contracts.reference import OnnxWriter
from n2d2py.graph import Node, memory_axes
from n2d2py.operators.arrays.base import kind_dtype


def emit_constant(writer: OnnxWriter, values: np.ndarray, kind: str) -> str:
    """Return an initializer of a tensor kind."""
    return writer.exact(np.ascontiguousarray(values.astype(kind_dtype(kind))))


def emit_reshape(writer: OnnxWriter, tensor: str, dims: tuple[int, ...]) -> str:
    """Return the elements of a tensor, in memory order, with dimensions `dims` after the batch axis."""
    rank = len(writer.graph.shape(tensor))
    if rank > 2:
        tensor = writer.emit("Transpose", [tensor], perm=memory_axes(rank))
    return writer.emit("Reshape", [tensor, writer.constant([0, *dims])])


def emit_flat(writer: OnnxWriter, tensor: str, output: str) -> None:
    """Add `output`, whose elements are those of `tensor` in memory order."""
    shape = writer.graph.shape(output)
    axes = memory_axes(len(shape))
    target = writer.constant([0, *(shape[axis] for axis in axes[1:])] if len(shape) > 2 else [0, -1])
    if len(shape) == 2:
        writer.emit("Reshape", [tensor, target], output)
    else:
        writer.emit("Transpose", [writer.emit("Reshape", [tensor, target])], output, perm=np.argsort(axes).tolist())


def emit_operands(
    writer: OnnxWriter, node: Node, shapes: tuple[tuple[int, ...], ...], slots: tuple[int, ...] | None = None
) -> list[str]:
    """Return each operand in its dimensions after the batch axis, of length 1 for constants."""
    result = []
    for index, (slot, dims) in enumerate(zip(slots or node.op.slots, shapes, strict=True)):
        if slot >= 0:
            result.append(emit_reshape(writer, node.inputs[slot], dims))
        else:
            values = node.params[f"operand{index}"].reshape(1, *dims)
            result.append(emit_constant(writer, values, "" if values.dtype.kind == "f" else values.dtype.name))
    return result


def emit_take(writer: OnnxWriter, vector: str, size: int, axes: Sequence[np.ndarray], output: str | None = None) -> str:
    """Emit y[i, j, ...] = x[axes[0][i] + axes[1][j] + ...] of a vector (N, size), flat; all sums lie within x.

    If the step of each axis divides the step of the axis before, x is reshaped to these steps, and no constant is longer than
    an axis. Otherwise all offsets are one constant.
    """
    firsts = [int(axis.min()) for axis in axes]
    steps = [int(np.gcd.reduce(axis - first)) for axis, first in zip(axes, firsts, strict=True)]
    order = sorted(range(len(axes)), key=lambda k: -steps[k])
    moving = [k for k in order if steps[k]]
    rest, first = size, sum(firsts)
    dims, chosen = [], []
    for k in moving:
        count, odd = divmod(rest, steps[k])
        places = first // steps[k] + (axes[k] - firsts[k]) // steps[k]
        if odd or places.max() >= count:
            offsets = reduce(np.add.outer, axes).reshape(-1)
            return writer.emit("Gather", [vector, writer.exact(offsets)], output, axis=1)
        dims.append(count)
        chosen.append(places)
        rest, first = steps[k], first % steps[k]
    still = [k for k in order if not steps[k]]
    dims += [rest, *(1 for _ in still)]
    chosen += [np.array([first]), *(np.zeros(len(axes[k]), np.int64) for k in still)]
    result = writer.emit("Reshape", [vector, writer.constant([0, *dims])])
    for axis, (count, places) in enumerate(zip(dims, chosen, strict=True), 1):
        if not np.array_equal(places, np.arange(count)):
            result = writer.emit("Gather", [result, writer.exact(places)], axis=axis)
    where = [*moving, len(axes), *still]
    perm = [0, *(1 + where.index(k) for k in range(len(axes) + 1))]
    if perm != sorted(perm):
        result = writer.emit("Transpose", [result], perm=perm)
    return writer.emit("Reshape", [result, writer.constant([0, -1])], output)
