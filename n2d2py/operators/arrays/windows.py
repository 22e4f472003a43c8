"""Windows over axes. Convolutions and pools of ONNX become layers on images, or arrays of up to three spatial axes, also with
weights computed in the network."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any, NamedTuple

import numpy as np

from n2d2py.arithmetic import functions as exact
from n2d2py.contracts.cpp import Call, Layer, LayerCode, cpp
from n2d2py.contracts.onnx.nodes import OnnxNode
from n2d2py.contracts.operator import Op, register
from n2d2py.graph import Shape
from n2d2py.graph.shapes import MAX_PAD, MAX_STEP
from n2d2py.operators.arrays.base import ArrayOp, operand_pointers, output_pointer
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, onnx
from n2d2py.operators.conv import Conv, Deconv
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class Windows3D(ArrayOp):
    """Sliding windows over x (batch, channels, D, H, W), operand 0; result (batch, outputs, D', H', W').

    Attributes:
        size: D', H' and W' of the result.
        pads: elements before each axis; padding is not part of a window.
    """

    dims: tuple[int, int, int, int, int]
    size: Triple
    kernel: Triple
    stride: Triple
    pads: Triple
    dilation: Triple

    def windows(self, x: np.ndarray, fill: float) -> np.ndarray:
        """Return the elements of all windows (N, batch, channels, taps, D', H', W')."""
        extent, last = ((np.array(n) - 1) * step for n, step in ((self.kernel, self.dilation), (self.size, self.stride)))
        after = np.maximum(0, last + extent + 1 - self.dims[2:] - self.pads)
        full = np.pad(x, [(0, 0)] * 3 + list(zip(self.pads, after, strict=True)), constant_values=fill)
        windows = np.lib.stride_tricks.sliding_window_view(full, tuple(extent + 1), axis=(3, 4, 5))  # (..., D, H, W, extent)
        starts = (slice(0, stop + 1, step) for stop, step in zip(last, self.stride, strict=True))
        taps = windows[(..., *starts, *(slice(None, None, step) for step in self.dilation))]
        return np.moveaxis(taps, (6, 7, 8), (3, 4, 5)).reshape(*x.shape[:3], -1, *self.size)

    def counted_range(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first position that an average counts along each axis, and the one after the last."""
        return np.zeros(3, int), np.array(self.dims[2:])

    def lower(self, layer: Layer, function: str, call: str, *template: str, **constants: int) -> LayerCode:
        """Return the call of a kernel whose configuration has these windows and `constants`."""
        first, last = self.counted_range()
        axes = {"Input": self.dims[2:], "Output": self.size, "Kernel": self.kernel, "Stride": self.stride, "Pad": self.pads}
        axes |= {"Dilation": self.dilation, "First": first, "Last": last}
        sizes = {f"{name}{axis}": values[index] for index, axis in enumerate("DHW") for name, values in axes.items()}
        config = layer.config(f"{function} over windows", {}, {"Batch": self.dims[0], **constants, **sizes})
        return layer.code("array_matmul", Call(call, (config, *template), (*operand_pointers(layer), output_pointer(layer))))


@register
class Conv3D(Windows3D):
    """Convolution of windows with operand 1, weights (outputs, channels / groups, kernel)."""

    outputs: int
    groups: int = 1
    slots: tuple[int, ...] = (0, 1)
    result: str = ""

    def operand_dims(self) -> tuple[Shape, ...]:
        return self.dims, (self.outputs, self.dims[1] // self.groups, *self.kernel)

    def output_dims(self) -> Shape:
        return self.dims[0], self.outputs, *self.size

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * prod(self.kernel) * (self.dims[1] // self.groups)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x, weights = self.operands(inputs, node)
        wide = np.float64 if x.dtype.kind == "f" else np.int64
        parts = self.windows(x.astype(wide), 0)
        n, batch, channels = parts.shape[:3]
        depth = channels // self.groups * prod(self.kernel)
        columns = parts.reshape(n, batch, self.groups, depth, prod(self.size))
        matrix = weights.astype(wide).reshape(-1, 1, self.groups, self.outputs // self.groups, depth)
        total = np.zeros((max(n, len(matrix)), batch, self.groups, self.outputs // self.groups, prod(self.size)), wide)
        for k in range(depth):
            total += matrix[..., k, None] * columns[..., k, None, :]
        return self.as_output(total, inputs)


@cpp("Conv3D")
def _lower_convolution(layer: Layer) -> LayerCode:
    op = layer.op
    constants = {"Outputs": op.outputs, "Groups": op.groups, "ColumnMajor": 0, "Depth": op.dims[1] // op.groups}
    return op.lower(layer, "Conv", "n2d2::arrayConvolution", **constants)


@register
class Pool3D(Windows3D):
    """Max, Average, Lp (of order `order`) of windows. MaxIndex: index of the largest element within a channel, plus the elements
    of the channels and samples before it.

    Attributes:
        counted: padding after each axis that an average counts, like the padding before; None counts only inputs.
        column_major: MaxIndex counts positions within a channel with the first axis fastest.
    """

    function: str
    counted: Triple | None = None
    order: int = 2
    column_major: bool = False
    result: str = ""

    def operand_dims(self) -> tuple[Shape, ...]:
        return (self.dims,)

    def output_dims(self) -> Shape:
        return *self.dims[:2], *self.size

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * prod(self.kernel)

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        (x,) = self.operands(inputs, node)
        if self.function in ("Max", "MaxIndex"):
            lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            parts = self.windows(x, lowest)
            if self.function == "Max":
                return self.as_output(parts.max(3), inputs)
            index = np.arange(prod(self.dims[2:]))
            index = index.reshape(self.dims[:1:-1]).T if self.column_major else index.reshape(self.dims[2:])
            index = index + (np.arange(prod(self.dims[:2])) * prod(self.dims[2:])).reshape(*self.dims[:2], 1, 1, 1)
            positions = self.windows(np.broadcast_to(index, x.shape).astype(np.int64), 0)
            best = parts.argmax(3)[:, :, :, None]
            return self.as_output(np.take_along_axis(positions, best, 3), inputs)
        wide = x.astype(np.float64)
        if self.function == "Lp":
            wide = wide * wide if self.order == 2 else exact.power(np.abs(wide), self.order)
        total = np.add.accumulate(self.windows(wide, 0.0), axis=3)[:, :, :, -1]
        if self.function == "Lp":
            return self.as_output(np.sqrt(total) if self.order == 2 else exact.power(total, 1 / self.order), inputs)
        return self.as_output(total / self.counts(), inputs)

    def counted_range(self) -> tuple[np.ndarray, np.ndarray]:
        before, after = (self.pads, self.counted) if self.counted else ((0, 0, 0), (0, 0, 0))
        return np.negative(before), np.add(self.dims[2:], after)

    def counts(self) -> np.ndarray:
        """Return the number of elements that each window counts, (D', H', W')."""
        axes = zip(self.size, self.stride, self.pads, self.kernel, self.dilation, *self.counted_range(), strict=True)
        counts = []
        for size, stride, pad, kernel, dilation, first, last in axes:
            taps = (np.arange(size) * stride - pad)[:, None] + np.arange(kernel) * dilation
            counts.append(((taps >= first) & (taps < last)).sum(1))
        return reduce(np.multiply.outer, counts)


@cpp("Pool3D")
def _lower_pool(layer: Layer) -> LayerCode:
    op = layer.op
    pools = {"Max": "WindowMax", "MaxIndex": "WindowMaxIndex", "Average": "WindowAverage", "Lp": f"WindowNorm<{op.order}>"}
    constants = {"Outputs": op.dims[1], "Groups": 1, "ColumnMajor": op.column_major, "Depth": 1}
    return op.lower(layer, op.function, "n2d2::arrayPool", f"n2d2::{pools[op.function]} ", **constants)


# ---- ONNX import: attributes ---------------------------------------------------------------------
class Windows(NamedTuple):
    """Windows on a tensor: its size, kernel, stride, dilation and pads, each with a value for each spatial axis."""

    size: np.ndarray
    kernel: np.ndarray
    stride: np.ndarray
    dilation: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def extent(self) -> np.ndarray:
        """Length of the dilated kernel."""
        return (self.kernel - 1) * self.dilation + 1

    def counts(self, ceil_mode: bool = False) -> np.ndarray:
        """Return the windows along each axis; `ceil_mode` adds one that ends, but does not start, beyond the padding."""
        rest = self.size + self.before + self.after - self.extent
        count = rest // self.stride + 1
        return count + (ceil_mode & (rest % self.stride > 0) & (count * self.stride < self.size + self.before))


def _per_axis(node: OnnxNode, name: str, axes: int) -> np.ndarray:
    values = np.array(node.attribute(name) or [1] * axes)
    if len(values) != axes:
        raise Unsupported(f"its {name} have {len(values)} values for {axes} spatial axes")
    if min(values) < 1 or max(values) > MAX_STEP:
        raise Unsupported(f"its {name} are not positive" if min(values) < 1 else f"its {name} are larger than any image")
    return values


def _read_windows(a: Arrays, x: Value, weights: Value | None = None) -> Windows:
    node, spatial = a.node, len(x.dims) - 2
    if not 1 <= spatial <= 3:
        raise Unsupported(f"its input has rank {len(x.dims)}, only rank 3, 4 or 5 is supported")
    if weights is None:
        kernel = x.dims[2:] if node.type.startswith("Global") else _per_axis(node, "kernel_shape", spatial)
    else:
        kernel = weights.dims[2:]
        if len(kernel) != spatial:
            raise Unsupported("its weights and its input differ in rank")
        if tuple(node.attribute("kernel_shape") or kernel) != kernel:
            raise Unsupported("its kernel_shape differs from the shape of its weights")
    stride, dilation = _per_axis(node, "strides", spatial), _per_axis(node, "dilations", spatial)
    return Windows(np.array(x.dims[2:]), np.array(kernel), stride, dilation, *np.zeros((2, spatial), int))


def _read_pads(node: OnnxNode, axes: int) -> tuple[np.ndarray, np.ndarray]:
    is_valid = node.attribute("auto_pad", "NOTSET") == "VALID"
    pads = np.array((not is_valid and node.attribute("pads")) or [0] * 2 * axes)
    if len(pads) != 2 * axes:
        raise Unsupported(f"its pads have {len(pads)} values instead of {2 * axes}")
    return pads[:axes], pads[axes:]


def _halves(node: OnnxNode, total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split total pads into pads before and after each axis; SAME_UPPER puts the larger half after it."""
    small, large = total // 2, total - total // 2
    return (small, large) if node.attribute("auto_pad", "NOTSET") == "SAME_UPPER" else (large, small)


def _with_pads(node: OnnxNode, windows: Windows) -> Windows:
    size, stride = windows.size, windows.stride
    if node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        before, after = _halves(node, np.maximum((-(-size // stride) - 1) * stride + windows.extent - size, 0))
    else:
        before, after = _read_pads(node, len(size))
        if max(*before, *after) > MAX_PAD:
            raise Unsupported(f"its pads exceed the limit of {MAX_PAD}")
        if min(*before, *after) < 0:
            raise Unsupported("negative pads are not supported", "crop with a Pad or Slice before it")
    return windows._replace(before=before, after=after)


def _cropped(node: OnnxNode, windows: Windows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the elements that a transposed convolution crops before and after each axis, and its output padding."""
    size, stride, axes = windows.size, windows.stride, len(windows.size)
    added = np.array(node.attribute("output_padding") or [0] * axes)
    target = np.array(node.attribute("output_shape") or [])[-axes:]
    if not target.size and node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        target = size * stride
    for name, values in (("output_padding", added), ("output_shape", target)):
        if values.size and len(values) != axes:
            raise Unsupported(f"its {name} has {len(values)} values for {axes} spatial axes")
    if not target.size:
        return *_read_pads(node, axes), added
    return *_halves(node, stride * (size - 1) + windows.extent + added - target), added


def _on_axes(axes: int, values: Iterable[int], fill: int = 1) -> Any:
    """Return the values of `axes` axes; those before the given ones get `fill`."""
    values = tuple(map(int, values))
    return (fill,) * (axes - len(values)) + values


# ---- layers --------------------------------------------------------------------------------------
def _add_layer(a: Arrays, x: Value, op: Op, weights: np.ndarray | None = None) -> None:
    """Add a layer on an image, with weights (O, C, kernel) and the bias; a sequence becomes an image of one row and back."""
    assert x.image is not None
    node, builder, params, weights_at = a.node, a.builder, None, None
    if weights is not None:
        bias = node.optional_constant(2, "bias")
        if bias is not None:
            _check_bias(bias.size, len(weights))
            bias = bias.reshape(-1)
        params, weights_at = {"weights": weights.reshape(*weights.shape[:2], *_on_axes(2, weights.shape[2:])), "bias": bias}, 1
    if len(x.dims) == 4:
        builder.layer(node, op, [x.image], params, weights_at=weights_at)
        return
    image = builder.layer(node, Reshape((x.dims[1], 1, x.dims[2])), [x.image], part="line")
    result = builder.layer(node, op, [image], params, part="image", weights_at=weights_at)
    _, count, _, length = builder.graph.shape(result)
    builder.layer(node, Reshape((count, length)), [result])


def _check_bias(values: int, outputs: int) -> None:
    if values != outputs:
        raise Unsupported(f"its bias has {values} values for {outputs} outputs", "export the model again")


def _add_windows(
    a: Arrays,
    kind: type[Windows3D],
    operands: Sequence[Value],
    size: Iterable[int],
    windows: Windows,
    *attributes: Any,
    **more: Any,
) -> Value:
    """Add an operator on windows of a tensor, whose result has the axes of the tensor; `attributes` and `more` are its own."""
    if min(size) < 1:
        raise Unsupported("its result has no elements")
    size, x = tuple(map(int, size)), operands[0]
    more = {"slots": a.slots(operands), "result": x.kind, **more}
    kernel, stride, dilation = (_on_axes(3, values) for values in windows[1:4])
    dims, before = x.dims[:2] + _on_axes(3, x.dims[2:]), _on_axes(3, windows.before, 0)
    op = kind(dims, _on_axes(3, size), kernel, stride, before, dilation, *attributes, **more)
    return a.add(op, operands, (*op.output_dims()[:2], *size), label=op.kind.lower())


def add_convolution(a: Arrays, x: Value, weights: Value, **more: Any) -> Value:
    """Add the Conv3D of arrays that the node's attributes describe, without bias; `more`: attributes of it."""
    windows = _with_pads(a.node, _read_windows(a, x, weights))
    outputs, groups = weights.dims[0], _groups(a, x, weights.dims)
    return _add_windows(a, Conv3D, [x, weights], windows.counts(), windows, outputs, groups, **more)


def _groups(a: Arrays, x: Value, weights: Sequence[int], transposed: bool = False) -> int:
    groups = int(a.node.attribute("group", 1))
    channels = weights[0] if transposed else groups * weights[1]
    if groups < 1 or x.dims[1] != channels or weights[0] % groups:
        raise Unsupported(f"its weights of {list(weights)} do not match {x.dims[1]} channels in {groups} groups")
    return groups


def _add_bias(a: Arrays, output: Value) -> Value:
    if not a.node.has(2):
        return output
    bias = a.value(2)
    _check_bias(bias.size, output.dims[1])
    return a.map("Add", output, a.reshape(bias, (bias.size, *(1,) * (len(output.dims) - 2))))


# ---- operators -----------------------------------------------------------------------------------
def _weighted_operands(a: Arrays) -> tuple[Value, Value]:
    is_image = all(a.node.is_constant(index) for index in range(1, len(a.node.inputs)) if a.node.has(index))
    return a.image() if is_image else a.value(0), a.value(1)


@onnx("Conv")
def _conv(a: Arrays) -> None:
    x, weights = _weighted_operands(a)
    if x.image is None or weights.constant is None:
        a.bind(_add_bias(a, add_convolution(a, x, weights)))
        return
    windows = _with_pads(a.node, _read_windows(a, x, weights))
    pads, groups = (*_on_axes(2, windows.before, 0), *_on_axes(2, windows.after, 0)), int(a.node.attribute("group", 1))
    _add_layer(a, x, Conv(_on_axes(2, windows.stride), pads, _on_axes(2, windows.dilation), groups), weights.constant)


@onnx("ConvTranspose")
def _deconv(a: Arrays) -> None:
    """Add a Deconv, or a convolution with mirrored weights over the input with zeros between its elements."""
    x, weights = _weighted_operands(a)
    windows, groups = _read_windows(a, x, weights), _groups(a, x, weights.dims, transposed=True)
    begin, end, extra = _cropped(a.node, windows)
    inputs, per_group, *kernel = weights.dims
    if x.image is not None and weights.constant is not None and min(*begin, *end) >= 0:
        parts = weights.constant.reshape(groups, inputs // groups, per_group, *kernel).swapaxes(1, 2)
        pads = (*_on_axes(2, begin, 0), *_on_axes(2, end - extra, 0))
        op = Deconv(_on_axes(2, windows.stride), pads, _on_axes(2, windows.dilation), groups)
        _add_layer(a, x, op, parts.reshape(groups * per_group, inputs // groups, *kernel))
        return
    size = (windows.size - 1) * windows.stride + windows.extent + extra - begin - end
    axes, positions = zip(windows.size, windows.stride, windows.extent - 1, begin, size, strict=True), {}
    for axis, (n, stride, reach, cropped, count) in enumerate(axes, 2):
        index, rest = np.divmod(np.arange(count + reach) - (reach - cropped), stride)
        positions[axis] = np.where((rest == 0) & (index >= 0) & (index < n), index, -1).tolist()
    spread = a.select(a.value(0), positions)
    mirrored = a.select(weights, {axis: range(k - 1, -1, -1) for axis, k in enumerate(kernel, 2)})
    split = a.reshape(mirrored, (groups, inputs // groups, per_group, *kernel))
    swapped = a.transpose(split, (0, 2, 1, *range(3, 3 + len(kernel))))
    swapped = a.reshape(swapped, (per_group * groups, inputs // groups, *kernel))
    dense = windows._replace(stride=np.ones_like(size))
    a.bind(_add_bias(a, _add_windows(a, Conv3D, [spread, swapped], size, dense, per_group * groups, groups)))


def _pool(function: str, a: Arrays) -> None:
    x, is_used = a.value(0) if function == "Lp" else a.image(), a.is_output_used(1)
    windows = _with_pads(a.node, _read_windows(a, x))
    size = windows.counts(bool(a.node.attribute("ceil_mode", 0)))
    last = np.maximum(windows.after, (size - 1) * windows.stride + windows.kernel - windows.before - windows.size)
    counts_pads = bool(a.node.attribute("count_include_pad", 0))
    is_partly_counted = function == "Average" and counts_pads and (last != windows.after).any()
    if x.image is not None and max(windows.dilation) == 1 and not is_used and not is_partly_counted:
        pads = (*_on_axes(2, windows.before, 0), *_on_axes(2, last, 0))
        counts_pads = counts_pads or not any(pads) or function == "Max"
        _add_layer(a, x, Pool(function, _on_axes(2, windows.kernel), _on_axes(2, windows.stride), pads, counts_pads))
        _check_windows(size, windows)
        return
    x, order = a.tensor(a.value(0)), int(a.node.attribute("p", 2))
    if order < 1:
        raise Unsupported(f"p={order} is not supported")
    counted = _on_axes(3, windows.after, 0) if counts_pads else None
    output = _add_windows(a, Pool3D, [x], size, windows, function, counted, order)
    _check_windows(size, windows)
    a.bind(output)
    if is_used:
        more = {"result": "int64", "column_major": bool(a.node.attribute("storage_order", 0))}
        a.bind(_add_windows(a, Pool3D, [x], size, windows, "MaxIndex", **more), 1)


def _check_windows(counts: np.ndarray, windows: Windows) -> None:
    for n, k, s, d, before, _, count in zip(*windows, counts, strict=True):
        for start in (-before, (count - 1) * s - before):
            if not any(0 <= start + tap * d < n for tap in range(k)):
                raise Unsupported("some of its windows lie outside the image", "reduce its pads")


for _function in ("Max", "Average", "Lp"):
    onnx(f"{_function}Pool", f"Global{_function}Pool")(partial(_pool, _function))
