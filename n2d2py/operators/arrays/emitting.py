"""Shared by the emitters of operators on arrays: the vectors get their dimensions, and lose them again."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.graph.layout import memory_axes
from n2d2py.operators.arrays.base import kind_dtype
from n2d2py.reference.contract import OnnxWriter


def typed(writer: OnnxWriter, values: np.ndarray, kind: str) -> str:
    """An initializer of a tensor kind."""
    return writer.exact(np.ascontiguousarray(values.astype(kind_dtype(kind))))


def shaped(writer: OnnxWriter, tensor: str, dims: tuple[int, ...]) -> str:
    """The elements of a tensor, in the order of memory, with dimensions after the batch axis."""
    rank = len(writer.graph.shape(tensor))
    if rank > 2:
        tensor = writer.emit("Transpose", [tensor], perm=memory_axes(rank))
    return writer.emit("Reshape", [tensor, writer.constant([0, *dims])])


def flat(writer: OnnxWriter, tensor: str, output: str) -> None:
    """Writes `output` of a tensor that has its elements in the order of memory."""
    shape = writer.graph.shape(output)
    axes = memory_axes(len(shape))
    target = writer.constant([0, *(shape[axis] for axis in axes[1:])] if len(shape) > 2 else [0, -1])
    if len(shape) == 2:
        writer.emit("Reshape", [tensor, target], output)
    else:
        writer.emit("Transpose", [writer.emit("Reshape", [tensor, target])], output, perm=np.argsort(axes).tolist())


def operands(
    writer: OnnxWriter, node: Node, shapes: tuple[tuple[int, ...], ...], slots: tuple[int, ...] | None = None
) -> list[str]:
    """Each operand in its dimensions after the batch axis, of length 1 for constants."""
    found = []
    for index, (slot, dims) in enumerate(zip(slots or node.op.slots, shapes, strict=True)):
        if slot >= 0:
            found.append(shaped(writer, node.inputs[slot], dims))
        else:
            values = node.params[f"operand{index}"].reshape(1, *dims)
            found.append(typed(writer, values, "" if values.dtype.kind == "f" else values.dtype.name))
    return found
