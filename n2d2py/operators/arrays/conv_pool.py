"""Convolutions and pools over up to three axes, also with weights computed in the network."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from n2d2py.arithmetic import functions as exact
from n2d2py.exports.cpp.layer import Call, Layer, LayerCode, cpp
from n2d2py.frontend.onnx.windows import check_bias, cut_off, pads_along, per_axis, window_count
from n2d2py.graph.shapes import Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.lowering import operand_pointers, output_pointer
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx_array
from n2d2py.operators.base import register

Triple = tuple[int, int, int]


@register
class ArrayConvPool(ArrayOp):
    """Sliding windows over x (batch, channels, D, H, W), operand 0; result (batch, outputs, D', H', W').

    Conv: operand 1 has the weights (outputs, channels / groups, kernel). Max, Average, Lp (of order `order`). MaxIndex: index
    of the largest element within a channel, plus the elements of the channels and samples before it.

    Attributes:
        pads: elements before each axis; padding is not part of a window.
        counted: padding after each axis that an average counts, like the padding before; None counts only inputs.
        column_major: MaxIndex counts positions within a channel with the first axis fastest.
    """

    function: str
    dims: tuple[int, int, int, int, int]
    outputs: int
    size: Triple
    kernel: Triple
    stride: Triple
    pads: Triple
    dilation: Triple
    groups: int = 1
    counted: Triple | None = None
    order: int = 2
    column_major: bool = False
    slots: tuple[int, ...] = (0, 1)
    result: str = ""

    def operand_sizes(self) -> tuple[int, ...]:
        weights = self.outputs * (self.dims[1] // self.groups) * prod(self.kernel)
        return (prod(self.dims), weights) if self.function == "Conv" else (prod(self.dims),)

    def output_size(self) -> int:
        return self.dims[0] * self.outputs * prod(self.size)

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        each = prod(self.kernel) * (self.dims[1] // self.groups if self.function == "Conv" else 1)
        return self.output_size() * each

    def _windows(self, x: np.ndarray, fill: float) -> np.ndarray:
        """Return the elements of all windows (N, batch, channels, kernel..., D', H', W')."""
        pads = [
            (before, max(0, (n - 1) * s + (k - 1) * d + 1 - size - before))
            for before, n, s, k, d, size in zip(
                self.pads, self.size, self.stride, self.kernel, self.dilation, self.dims[2:], strict=True
            )
        ]
        full = np.pad(x, [(0, 0)] * 3 + pads, constant_values=fill)
        parts = np.empty((*x.shape[:3], *self.kernel, *self.size), x.dtype)
        for index in np.ndindex(*self.kernel):
            cut = tuple(
                slice(k * d, k * d + (n - 1) * s + 1, s)
                for k, d, n, s in zip(index, self.dilation, self.size, self.stride, strict=True)
            )
            parts[(slice(None),) * 3 + index] = full[(slice(None),) * 3 + cut]
        return parts

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        operands = self.operands(inputs, node)
        x = operands[0].reshape(-1, *self.dims)
        if self.function == "Conv":
            return self.as_output(self._convolve(x, operands[1]), inputs)
        taps = prod(self.kernel)
        if self.function in ("Max", "MaxIndex"):
            lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            parts = self._windows(x, lowest).reshape(*x.shape[:3], taps, *self.size)
            if self.function == "Max":
                return self.as_output(parts.max(3), inputs)
            index = np.arange(prod(self.dims[2:]))
            index = index.reshape(self.dims[:1:-1]).T if self.column_major else index.reshape(self.dims[2:])
            index = index + (np.arange(prod(self.dims[:2])) * prod(self.dims[2:])).reshape(*self.dims[:2], 1, 1, 1)
            positions = self._windows(np.broadcast_to(index, x.shape).astype(np.int64), 0)
            positions = positions.reshape(*x.shape[:3], taps, *self.size)
            best = parts.argmax(3)[:, :, :, None]
            return self.as_output(np.take_along_axis(positions, best, 3), inputs)
        wide = x.astype(np.float64)
        if self.function == "Lp":
            wide = wide * wide if self.order == 2 else exact.power(np.abs(wide), self.order)
        parts = self._windows(wide, 0.0).reshape(*x.shape[:3], taps, *self.size)
        total = np.add.accumulate(parts, axis=3)[:, :, :, -1]
        if self.function == "Lp":
            return self.as_output(np.sqrt(total) if self.order == 2 else exact.power(total, 1 / self.order), inputs)
        return self.as_output(total / self.counts(), inputs)

    def counts(self) -> np.ndarray:
        """Return the number of elements that each window counts, (D', H', W')."""
        after = self.counted or (0, 0, 0)
        first = (0, 0, 0) if self.counted is None else tuple(-p for p in self.pads)
        result = np.ones(self.size, np.int64)
        for axis in range(3):
            start = np.arange(self.size[axis]) * self.stride[axis] - self.pads[axis]
            taps = start[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]
            inside = (taps >= first[axis]) & (taps < self.dims[2 + axis] + after[axis])
            shape = [1, 1, 1]
            shape[axis] = -1
            result = result * inside.sum(1).reshape(shape)
        return result

    def _convolve(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        wide = np.float64 if x.dtype.kind == "f" else np.int64
        parts = self._windows(x.astype(wide), 0)
        n, batch, channels = parts.shape[:3]
        depth = channels // self.groups * prod(self.kernel)
        columns = parts.reshape(n, batch, self.groups, depth, prod(self.size))
        matrix = weights.astype(wide).reshape(-1, 1, self.groups, self.outputs // self.groups, depth)
        total = np.zeros((max(n, len(matrix)), batch, self.groups, self.outputs // self.groups, prod(self.size)), wide)
        for k in range(depth):
            total += matrix[..., k, None] * columns[..., k, None, :]
        return total


memory_access("ArrayConvPool")(whole)


# ---- ONNX import ---------------------------------------------------------------------------------
def _as_triple(values: Sequence[int], fill: int = 1) -> tuple[int, int, int]:
    return (*(fill,) * (3 - len(values)), *map(int, values))  # type: ignore[return-value]


def _spatial_rank(x: Value) -> int:
    if not 3 <= len(x.dims) <= 5:
        raise Unsupported(f"its input has rank {len(x.dims)}, only rank 3, 4 or 5 is supported")
    return len(x.dims) - 2


def add_windows(
    a: Arrays,
    function: str,
    x: Value,
    weights: Value | None,
    outputs: int,
    size: Sequence[int],
    windows: Sequence[Sequence[int]],
    result: str | None = None,
    **more: Any,
) -> Value:
    """Add an ArrayConvPool whose result has the axes of x; `more` are attributes of the operator.

    `windows`: kernel, stride, pads before and dilation of each axis.
    """
    if min(size) < 1:
        raise Unsupported("its result has no elements")
    operands = [a.tensor(x)] if weights is None else [x, weights]
    dims = (x.dims[0], x.dims[1], *_as_triple(x.dims[2:]))
    result_dims, kind = (x.dims[0], outputs, *size), x.kind if result is None else result
    geometry = zip((size, *windows), (1, 1, 1, 0, 1), strict=True)
    sizes, kernel, stride, before, dilation = (_as_triple(values, fill) for values, fill in geometry)
    more |= {"slots": a.slots(operands), "result": kind}
    op = ArrayConvPool(function, dims, outputs, sizes, kernel, stride, before, dilation, **more)
    return a.add(op, operands, result_dims, label=function.lower())


def add_convolution(a: Arrays, x: Value, weights: Value, result: str | None = None) -> Value:
    """Add the convolution that the node's attributes describe, without bias."""
    spatial = _spatial_rank(x)
    kernel, stride, dilation = weights.dims[2:], per_axis(a.node, "strides", spatial), per_axis(a.node, "dilations", spatial)
    if len(kernel) != spatial:
        raise Unsupported("its weights and its input differ in rank")
    _check_kernel(a, weights)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    before, after = pads_along(a.node, x.dims[2:], extent, stride)
    size = [window_count(*axis, False) for axis in zip(x.dims[2:], before, after, extent, stride, strict=True)]
    groups = _groups(a, x, weights)
    return add_windows(a, "Conv", x, weights, weights.dims[0], size, (kernel, stride, before, dilation), result, groups=groups)


@onnx_array("Conv")
def _conv(a: Arrays) -> None:
    a.bind(_add_bias(a, add_convolution(a, a.value(0), a.value(1))))


def _groups(a: Arrays, x: Value, weights: Value, transposed: bool = False) -> int:
    """Return the groups of a convolution; raise Unsupported if its weights do not match its input."""
    groups = int(a.node.attribute("group", 1))
    channels = weights.dims[0] if transposed else groups * weights.dims[1]
    if groups < 1 or x.dims[1] != channels or weights.dims[0] % groups:
        raise Unsupported(f"its weights of {list(weights.dims)} do not match {x.dims[1]} channels in {groups} groups")
    return groups


def _check_kernel(a: Arrays, weights: Value) -> None:
    if list(a.node.attribute("kernel_shape") or weights.dims[2:]) != list(weights.dims[2:]):
        raise Unsupported("its kernel_shape differs from the shape of its weights")


def _add_bias(a: Arrays, made: Value) -> Value:
    if not a.has(2):
        return made
    bias = a.value(2)
    check_bias(bias.size, made.dims[1])
    return a.map("Add", made, a.reshape(bias, (bias.size, *(1,) * (len(made.dims) - 2))))


@onnx_array("ConvTranspose")
def _deconv(a: Arrays) -> None:
    """Add a convolution with mirrored weights over the input with zeros between its elements."""
    x, weights = a.value(0), a.value(1)
    spatial = _spatial_rank(x)
    kernel, stride, dilation = weights.dims[2:], per_axis(a.node, "strides", spatial), per_axis(a.node, "dilations", spatial)
    _check_kernel(a, weights)
    groups = _groups(a, x, weights, transposed=True)
    if len(kernel) != spatial:
        raise Unsupported("its weights and its input differ in rank")
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    begin, end, extra = cut_off(a.node, x.dims[2:], extent, stride)
    full = zip(x.dims[2:], stride, extent, extra, begin, end, strict=True)
    size = [(n - 1) * s + e + o - b - c for n, s, e, o, b, c in full]
    chosen = {}
    for axis in range(spatial):
        lead = extent[axis] - 1 - begin[axis]
        line = [-1] * ((x.dims[2 + axis] - 1) * stride[axis] + 1)
        line[:: stride[axis]] = range(x.dims[2 + axis])
        chosen[2 + axis] = [-1] * max(0, lead) + line[max(0, -lead) :]
        short = size[axis] + extent[axis] - 1 - len(chosen[2 + axis])
        chosen[2 + axis] = (chosen[2 + axis] + [-1] * max(0, short))[: size[axis] + extent[axis] - 1]
    spread = a.select(x, chosen)
    inputs, outputs = weights.dims[0], weights.dims[1] * groups
    mirrored = a.select(weights, {2 + axis: range(k - 1, -1, -1) for axis, k in enumerate(kernel)})
    split = a.reshape(mirrored, (groups, inputs // groups, weights.dims[1], *kernel))
    turned = a.transpose(split, (0, 2, 1, *range(3, 3 + spatial)))
    turned = a.reshape(turned, (outputs, inputs // groups, *kernel))
    ones = [1] * spatial
    a.bind(
        _add_bias(
            a, add_windows(a, "Conv", spread, turned, outputs, size, (kernel, ones, [0] * spatial, dilation), groups=groups)
        )
    )


def _pool(function: str, a: Arrays) -> None:
    x = a.value(0)
    spatial = _spatial_rank(x)
    kernel = per_axis(a.node, "kernel_shape", spatial)
    stride, dilation = per_axis(a.node, "strides", spatial), per_axis(a.node, "dilations", spatial)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    before, after = pads_along(a.node, x.dims[2:], extent, stride)
    axes, ceil_mode = zip(x.dims[2:], before, after, extent, stride, strict=True), bool(a.node.attribute("ceil_mode", 0))
    size = [window_count(*axis, ceil_mode) for axis in axes]
    include = bool(a.node.attribute("count_include_pad", 0))
    place = (x, None, x.dims[1], size, (kernel, stride, before, dilation))
    output = add_windows(a, function, *place, order=_norm_order(a), counted=_as_triple(after, 0) if include else None)
    _check_windows(size, kernel, stride, before, dilation, x)
    a.bind(output)
    if a.is_output_used(1):
        column_major = bool(a.node.attribute("storage_order", 0))
        a.bind(add_windows(a, "MaxIndex", *place, result="int64", column_major=column_major), 1)


def _norm_order(a: Arrays) -> int:
    """Return the p of a p-norm."""
    order = int(a.node.attribute("p", 2))
    if order < 1:
        raise Unsupported(f"p={order} is not supported")
    return order


def _check_windows(size, kernel, stride, before, dilation, x: Value) -> None:
    for n, k, s, b, d, count in zip(x.dims[2:], kernel, stride, before, dilation, size, strict=True):
        for start in (-b, (count - 1) * s - b):
            if not any(0 <= start + tap * d < n for tap in range(k)):
                raise Unsupported("some of its windows lie outside the image", "reduce its pads")


def _global_pool(function: str, a: Arrays) -> None:
    x = a.value(0)
    spatial = _spatial_rank(x)
    ones = [1] * spatial
    a.bind(add_windows(a, function, x, None, x.dims[1], ones, (x.dims[2:], ones, [0] * spatial, ones), order=_norm_order(a)))


for _function in ("Max", "Average", "Lp"):
    onnx_array(f"{_function}Pool")(partial(_pool, _function))
    onnx_array(f"Global{_function}Pool")(partial(_global_pool, _function))


# ---- C++ -----------------------------------------------------------------------------------------
@cpp("ArrayConvPool")
def _lower(layer: Layer) -> LayerCode:
    op = layer.op
    constants = {
        "Batch": op.dims[0],
        "Outputs": op.outputs,
        "Groups": op.groups,
        "ColumnMajor": op.column_major,
        "Depth": op.dims[1] // op.groups if op.function == "Conv" else 1,
    }
    for index, axis in enumerate("DHW"):
        counted = op.counted is not None
        constants.update(
            {
                f"Input{axis}": op.dims[2 + index],
                f"Output{axis}": op.size[index],
                f"Kernel{axis}": op.kernel[index],
                f"Stride{axis}": op.stride[index],
                f"Pad{axis}": op.pads[index],
                f"Dilation{axis}": op.dilation[index],
                f"First{axis}": -op.pads[index] if counted else 0,
                f"Last{axis}": op.dims[2 + index] + (op.counted[index] if counted else 0),
            }
        )
    config, operands = layer.config(f"{op.function} over windows", {}, constants), operand_pointers(layer)
    if op.function == "Conv":
        call = Call("n2d2::arrayConvolution", (config,), (*operands[:2], output_pointer(layer)))
    else:
        pools = {"Max": "WindowMax", "MaxIndex": "WindowMaxIndex", "Average": "WindowAverage", "Lp": f"WindowNorm<{op.order}>"}
        call = Call("n2d2::arrayPool", (config, f"n2d2::{pools[op.function]} "), (operands[0], output_pointer(layer)))
    return layer.code("array_matmul", call)
