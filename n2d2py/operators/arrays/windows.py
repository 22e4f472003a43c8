"""Windows over axes: convolutions and pools over up to three, also with weights computed in the network; resampling along one."""

from __future__ import annotations

from math import prod

import numpy as np

from n2d2py.arithmetic import functions as exact
from n2d2py.contracts.cpp.layer import Call, Layer, LayerCode, cpp
from n2d2py.contracts.operator import register
from n2d2py.contracts.reference import OnnxWriter, onnx_emitter
from n2d2py.graph import Node, Shape
from n2d2py.operators.arrays.base import (
    ArrayOp,
    AxisOp,
    emit_constant,
    emit_flat,
    emit_reshape,
    kernel_call,
    operand_pointers,
    output_pointer,
)

# ---- convolutions and pools ---------------------------------------------------------------------


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
        """Return the elements of all windows (N, batch, channels, taps, D', H', W')."""
        pads = [
            (before, max(0, (n - 1) * s + (k - 1) * d + 1 - size - before))
            for before, n, s, k, d, size in zip(
                self.pads, self.size, self.stride, self.kernel, self.dilation, self.dims[2:], strict=True
            )
        ]
        full = np.pad(x, [(0, 0)] * 3 + pads, constant_values=fill)
        extents = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]
        windows = np.lib.stride_tricks.sliding_window_view(full, extents, axis=(3, 4, 5))  # (..., D, H, W, extents)
        starts = (slice(0, (n - 1) * s + 1, s) for n, s in zip(self.size, self.stride, strict=True))
        taps = windows[(..., *starts, *(slice(None, None, d) for d in self.dilation))]
        return np.moveaxis(taps, (6, 7, 8), (3, 4, 5)).reshape(*x.shape[:3], -1, *self.size)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        operands = self.operands(inputs, node)
        x = operands[0].reshape(-1, *self.dims)
        if self.function == "Conv":
            return self.as_output(self._convolve(x, operands[1]), inputs)
        if self.function in ("Max", "MaxIndex"):
            lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            parts = self._windows(x, lowest)
            if self.function == "Max":
                return self.as_output(parts.max(3), inputs)
            index = np.arange(prod(self.dims[2:]))
            index = index.reshape(self.dims[:1:-1]).T if self.column_major else index.reshape(self.dims[2:])
            index = index + (np.arange(prod(self.dims[:2])) * prod(self.dims[2:])).reshape(*self.dims[:2], 1, 1, 1)
            positions = self._windows(np.broadcast_to(index, x.shape).astype(np.int64), 0)
            best = parts.argmax(3)[:, :, :, None]
            return self.as_output(np.take_along_axis(positions, best, 3), inputs)
        wide = x.astype(np.float64)
        if self.function == "Lp":
            wide = wide * wide if self.order == 2 else exact.power(np.abs(wide), self.order)
        total = np.add.accumulate(self._windows(wide, 0.0), axis=3)[:, :, :, -1]
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


@cpp("ArrayConvPool")
def _lower_conv_pool(layer: Layer) -> LayerCode:
    op = layer.op
    depth, (before, after) = op.dims[1] // op.groups if op.function == "Conv" else 1, ((0, 0, 0), (0, 0, 0))
    if op.counted is not None:
        before, after = op.pads, op.counted
    sizes = {"Input": op.dims[2:], "Output": op.size, "Kernel": op.kernel, "Stride": op.stride, "Pad": op.pads}
    sizes |= {"Dilation": op.dilation, "First": [-pad for pad in before]}
    sizes["Last"] = [size + pad for size, pad in zip(op.dims[2:], after, strict=True)]
    constants = {
        "Batch": op.dims[0],
        "Outputs": op.outputs,
        "Groups": op.groups,
        "ColumnMajor": op.column_major,
        "Depth": depth,
    }
    for index, axis in enumerate("DHW"):
        constants |= {f"{name}{axis}": values[index] for name, values in sizes.items()}
    config, operands = layer.config(f"{op.function} over windows", {}, constants), operand_pointers(layer)
    if op.function == "Conv":
        call = Call("n2d2::arrayConvolution", (config,), (*operands[:2], output_pointer(layer)))
    else:
        pools = {"Max": "WindowMax", "MaxIndex": "WindowMaxIndex", "Average": "WindowAverage", "Lp": f"WindowNorm<{op.order}>"}
        call = Call("n2d2::arrayPool", (config, f"n2d2::{pools[op.function]} "), (operands[0], output_pointer(layer)))
    return layer.code("array_matmul", call)


# ---- resampling ---------------------------------------------------------------------------------


@register
class ArrayInterpolate(AxisOp):
    """y[o, j, i] = sum over t of weights[j][t] * x[o, positions[j][t], i] for x (outer, size, inner).

    Attributes:
        positions: input rows of each output row, the same number for each.
        weights: weights of these rows.
    """

    positions: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]

    def output_size(self) -> int:
        return self.outer * len(self.positions) * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * len(self.positions[0])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = self.to_lines(inputs[0])
        wide = x.astype(np.float64)
        total = np.zeros((len(x), self.outer, len(self.positions), self.inner))
        weights = np.asarray(self.weights, x.dtype).astype(np.float64)
        for tap in range(len(self.positions[0])):
            lines = [line[tap] for line in self.positions]
            total += wide[:, :, lines] * weights[:, tap][None, None, :, None]
        return self.as_output(total, inputs)


@cpp("ArrayInterpolate")
def _lower_interpolate(layer: Layer) -> LayerCode:
    op = layer.op
    positions = layer.array("positions", np.array(op.positions), "std::int32_t")
    weights = layer.array("weights", np.array(op.weights).astype(layer.output.dtype), layer.output.cpp)
    sizes = (op.outer, op.size, op.inner, len(op.positions), len(op.positions[0]))
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", positions, weights)
    return kernel_call(layer, "array_norm", "arrayInterpolate", sizes, operands)


@onnx_emitter("ArrayInterpolate")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    matrix = np.zeros((1, 1, len(op.positions), op.size))
    for line, (positions, weights) in enumerate(zip(op.positions, op.weights, strict=True)):
        np.add.at(matrix[0, 0, line], list(positions), weights)
    x = emit_reshape(writer, node.inputs[0], (op.outer, op.size, op.inner))
    emit_flat(writer, writer.emit("MatMul", [emit_constant(writer, matrix, ""), x]), output)
