"""Fourier transforms with constant sizes as convolutions and products with constant matrices: STFT and DFT of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper

from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.graph.shapes import Shape

OPERATORS = ("STFT", "DFT")
_LARGEST = 1 << 26
"""Elements of a matrix of a transform; more would outgrow a network."""


class _Parts:
    """The nodes that stand for one; constants are added to those of the model."""

    def __init__(self, proto: onnx.NodeProto, constants: dict[str, np.ndarray], fresh: Callable[[str], str]):
        self.proto, self.constants, self.fresh = proto, constants, fresh
        self.nodes: list[onnx.NodeProto] = []

    def add(self, operator: str, inputs: list[str], last: bool = False, **attributes: Any) -> str:
        """A node; its result, that of the operator where it is the `last`."""
        made = self.proto.output[0] if last else self.fresh(f"{self.proto.output[0]}_{operator.lower()}")
        self.nodes.append(helper.make_node(operator, inputs, [made], **attributes))
        return made

    def constant(self, what: str, values: np.ndarray) -> str:
        """A constant."""
        name = self.fresh(f"{self.proto.output[0]}_{what}")
        self.constants[name] = values
        return name

    def number(self, index: int, what: str) -> int | None:
        """An input that is one integer; None where it is left out."""
        values = self.values(index, what)
        if values is not None and values.size != 1:
            raise Unsupported(f"its {what} has {values.size} values instead of one")
        return None if values is None else int(values.item())

    def values(self, index: int, what: str) -> np.ndarray | None:
        """An input that is constant; None where it is left out."""
        if len(self.proto.input) <= index or not self.proto.input[index]:
            return None
        if self.proto.input[index] not in self.constants:
            raise Unsupported(f"its {what} is computed at run time", "export it as a constant")
        return self.constants[self.proto.input[index]]

    def attribute(self, name: str, default: int) -> int:
        """An attribute that is an integer."""
        return next((int(one.i) for one in self.proto.attribute if one.name == name), default)


def expand(
    proto: onnx.NodeProto, opset: int, dims: Shape, constants: dict[str, np.ndarray], fresh: Callable[[str], str]
) -> list[onnx.NodeProto]:
    """The nodes that stand for `proto`, a transform of a tensor of these axes.

    Raises:
        Unsupported: for sizes that are not constant, complex signals of STFT, inverse transforms of one side.
    """
    parts = _Parts(proto, constants, fresh)
    if proto.op_type == "STFT":
        _stft(parts, dims)
    else:
        _dft(parts, opset, dims)
    return parts.nodes


def _stft(parts: _Parts, dims: Shape) -> None:
    """A convolution with windowed cosines and sines: signal (N, samples[, 1]) to (N, frames, bins, 2)."""
    step, window = parts.number(1, "frame step"), parts.values(2, "window")
    length = parts.number(3, "frame length")
    if not 2 <= len(dims) <= 3 or (len(dims) == 3 and dims[2] != 1):
        raise Unsupported(f"its signal of shape {'x'.join(map(str, dims))} is complex, which is not supported")
    if length is None:
        length = 0 if window is None else window.size
    if step is None or step < 1 or not 1 <= length <= dims[1] or (window is not None and window.size != length):
        raise Unsupported(f"frame length {length} and step {step} do not match the window or the signal of {dims[1]} samples")
    bins = length // 2 + 1 if parts.attribute("onesided", 1) else length
    _need_room(2 * bins * length)
    shape = np.ones(length) if window is None else window.reshape(-1).astype(np.float64)
    turns = 2 * np.pi * (np.outer(np.arange(bins), np.arange(length)) % length) / length
    weights = np.concatenate([np.cos(turns) * shape, -np.sin(turns) * shape])[:, None].astype(np.float32)
    line = parts.add("Reshape", [parts.proto.input[0], parts.constant("line", np.array([0, 1, dims[1]]))])
    made = parts.add("Conv", [line, parts.constant("waves", weights)], strides=[step])
    frames = (dims[1] - length) // step + 1
    halves = parts.add("Reshape", [made, parts.constant("halves", np.array([0, 2, bins, frames]))])
    parts.add("Transpose", [halves], last=True, perm=[0, 3, 2, 1])


def _dft(parts: _Parts, opset: int, dims: Shape) -> None:
    """A product with a constant matrix: the axis and the two parts of its numbers become another axis and two parts."""
    rank, asked = len(dims), parts.number(1, "length")
    axis = parts.attribute("axis", 1) if opset < 20 else parts.number(2, "axis")
    axis = -2 if axis is None else axis
    if axis not in (*range(1, rank - 1), *range(1 - rank, -1)) or dims[-1] not in (1, 2):
        raise Unsupported(f"axis {axis} cannot be transformed in shape {'x'.join(map(str, dims))}")
    axis %= rank
    length = dims[axis] if asked is None else asked
    if length < 1:
        raise Unsupported(f"length {length} is below 1")
    inverse, onesided = parts.attribute("inverse", 0), parts.attribute("onesided", 0)
    if onesided and (inverse or dims[-1] == 2):
        raise Unsupported("onesided=1 is not supported for an inverse or complex transform")
    bins, used = length // 2 + 1 if onesided else length, min(length, dims[axis])
    _need_room(2 * bins * dims[axis] * dims[-1])
    turns = 2 * np.pi * (np.outer(np.arange(used), np.arange(bins)) % length) / length
    cosines, sines = np.cos(turns), np.sin(turns) * (1 if inverse else -1)
    matrix = np.zeros((dims[axis], dims[-1], bins, 2))
    matrix[:used, 0] = np.stack([cosines, sines], -1)
    if dims[-1] == 2:
        matrix[:used, 1] = np.stack([-sines, cosines], -1)
    matrix /= length if inverse else 1
    order = [*(at for at in range(rank - 1) if at != axis), axis, rank - 1]
    front = [0, *(dims[at] for at in order[1:-2])]  # 0: the batch, unchanged
    x = parts.proto.input[0]
    if order != [*range(rank)]:
        x = parts.add("Transpose", [x], perm=order)
    flat = parts.add("Reshape", [x, parts.constant("flat", np.array([*front, dims[axis] * dims[-1]]))])
    waves = parts.constant("waves", matrix.reshape(dims[axis] * dims[-1], 2 * bins).astype(np.float32))
    made = parts.add("MatMul", [flat, waves])
    plain = order == [*range(rank)]
    made = parts.add("Reshape", [made, parts.constant("parts", np.array([*front, bins, 2]))], last=plain)
    if not plain:
        parts.add("Transpose", [made], last=True, perm=[order.index(at) for at in range(rank)])


def _need_room(elements: int) -> None:
    if elements > _LARGEST:
        raise Unsupported(f"its matrix of {elements:,} elements exceeds the limit of {_LARGEST:,}")
