"""ONNX import of convolutions and pools: layers on images, or arrays of up to three spatial axes and computed weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from n2d2py.contracts.onnx.nodes import OnnxNode, Unsupported
from n2d2py.contracts.operator import Op
from n2d2py.graph.shapes import MAX_PAD, MAX_STEP
from n2d2py.operators.arrays.values import Arrays, Value, onnx
from n2d2py.operators.arrays.windows import ArrayConvPool
from n2d2py.operators.conv import Conv, Deconv
from n2d2py.operators.pool import Pool
from n2d2py.operators.reshape import Reshape


class Windows(NamedTuple):
    """Windows on a tensor: kernel, stride, dilation and pads, each with a value for each spatial axis."""

    kernel: Sequence[int]
    stride: Sequence[int]
    dilation: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]

    @property
    def extent(self) -> list[int]:
        """Length of the dilated kernel."""
        return [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True)]


# ---- attributes ----------------------------------------------------------------------------------
def _spatial_rank(x: Value) -> int:
    if not 3 <= len(x.dims) <= 5:
        raise Unsupported(f"its input has rank {len(x.dims)}, only rank 3, 4 or 5 is supported")
    return len(x.dims) - 2


def _per_axis(node: OnnxNode, name: str, axes: int) -> list[int]:
    """Return an attribute with one value for each of `axes` spatial axes; 1 by default."""
    values = [int(v) for v in node.attribute(name) or [1] * axes]
    if len(values) != axes:
        raise Unsupported(f"its {name} have {len(values)} values for {axes} spatial axes")
    if min(values) < 1 or max(values) > MAX_STEP:
        raise Unsupported(f"its {name} are not positive" if min(values) < 1 else f"its {name} are larger than any image")
    return values


def _read_windows(a: Arrays, x: Value, weights: Value | None = None) -> Windows:
    """Return the windows of a pool, or of a convolution with `weights`, without pads."""
    node, spatial = a.node, _spatial_rank(x)
    if weights is None:
        kernel = _per_axis(node, "kernel_shape", spatial)
    else:
        kernel = list(weights.dims[2:])
        if len(kernel) != spatial:
            raise Unsupported("its weights and its input differ in rank")
        if list(node.attribute("kernel_shape") or kernel) != kernel:
            raise Unsupported("its kernel_shape differs from the shape of its weights")
    stride, dilation = _per_axis(node, "strides", spatial), _per_axis(node, "dilations", spatial)
    return Windows(kernel, stride, dilation, [0] * spatial, [0] * spatial)


def _read_pads(node: OnnxNode, axes: int) -> tuple[list[int], list[int]]:
    pads = [0] * 2 * axes if node.attribute("auto_pad", "NOTSET") == "VALID" else node.attribute("pads") or [0] * 2 * axes
    if len(pads) != 2 * axes:
        raise Unsupported(f"its pads have {len(pads)} values instead of {2 * axes}")
    return [int(p) for p in pads[:axes]], [int(p) for p in pads[axes:]]


def _halves(node: OnnxNode, total: Sequence[int]) -> tuple[list[int], list[int]]:
    """Split total pads into pads before and after each axis; SAME_UPPER puts the larger half after it."""
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return (small, large) if node.attribute("auto_pad", "NOTSET") == "SAME_UPPER" else (large, small)


def _with_pads(node: OnnxNode, x: Value, windows: Windows) -> Windows:
    """Return the windows with the pads that auto_pad or pads give for an input."""
    sizes = zip(x.dims[2:], windows.extent, windows.stride, strict=True)
    if node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        before, after = _halves(node, [max((-(-n // s) - 1) * s + e - n, 0) for n, e, s in sizes])
    else:
        before, after = _read_pads(node, len(windows.kernel))
        if max(before + after) > MAX_PAD:
            raise Unsupported(f"its pads exceed the limit of {MAX_PAD}")
        if min(before + after) < 0:
            raise Unsupported("negative pads are not supported", "crop with a Pad or Slice before it")
    return windows._replace(before=before, after=after)


def _cropped(node: OnnxNode, x: Value, windows: Windows) -> tuple[list[int], list[int], list[int]]:
    """Return the elements that a transposed convolution crops before and after each axis, and its output padding."""
    size, axes = x.dims[2:], len(windows.kernel)
    added, target = ([int(v) for v in node.attribute(name) or ()] for name in ("output_padding", "output_shape"))
    added, target = added or [0] * axes, target[-axes:]
    if not target and node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        target = [n * s for n, s in zip(size, windows.stride, strict=True)]
    for name, values in (("output_padding", added), ("output_shape", target)):
        if values and len(values) != axes:
            raise Unsupported(f"its {name} has {len(values)} values for {axes} spatial axes")
    if not target:
        return *_read_pads(node, axes), added
    full = [s * (n - 1) + e + a for n, s, e, a in zip(size, windows.stride, windows.extent, added, strict=True)]
    return *_halves(node, [whole - wanted for whole, wanted in zip(full, target, strict=True)]), added


def _window_counts(x: Value, windows: Windows, ceil_mode: bool = False) -> list[int]:
    """Return the windows along each axis; `ceil_mode` adds one that ends, but does not start, beyond the padding."""
    counts = []
    for n, before, after, extent, s in zip(x.dims[2:], *windows[3:], windows.extent, windows.stride, strict=True):
        count = (n + before + after - extent) // s + 1
        if ceil_mode and (n + before + after - extent) % s and count * s < n + before:
            count += 1
        counts.append(count)
    return counts


# ---- images --------------------------------------------------------------------------------------
def _pair(values: Sequence[int], fill: int = 1) -> tuple[int, int]:
    """Return (vertical, horizontal) values; a sequence is an image of one row."""
    vertical, horizontal = (*(fill,) * (2 - len(values)), *values)
    return vertical, horizontal


def _add_layer(a: Arrays, x: Value, op: Op, weights: np.ndarray | None = None) -> None:
    """Add a layer on an image, with weights (O, C, kernel) and the bias; a sequence becomes an image of one row and back."""
    assert x.image is not None
    node, builder, params, weights_at = a.node, a.builder, None, None
    if weights is not None:
        bias = node.optional_constant(2, "bias")
        if bias is not None:
            _check_bias(bias.size, len(weights))
            bias = bias.reshape(-1)
        params, weights_at = {"weights": weights.reshape(*weights.shape[:2], *_pair(weights.shape[2:])), "bias": bias}, 1
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


# ---- arrays --------------------------------------------------------------------------------------
def _as_triple(values: Sequence[int], fill: int = 1) -> tuple[int, int, int]:
    return (*(fill,) * (3 - len(values)), *map(int, values))  # type: ignore[return-value]


def _add_windows(
    a: Arrays,
    function: str,
    operands: Sequence[Value],
    outputs: int,
    size: Sequence[int],
    windows: Windows,
    result: str | None = None,
    **more: Any,
) -> Value:
    """Add an ArrayConvPool of a tensor and weights, if any, whose result has the axes of the tensor; `more` are attributes."""
    if min(size) < 1:
        raise Unsupported("its result has no elements")
    x, *_ = operands = [a.tensor(operands[0])] if len(operands) == 1 else operands
    dims = (x.dims[0], x.dims[1], *_as_triple(x.dims[2:]))
    kernel, stride, dilation = map(_as_triple, windows[:3])
    more |= {"slots": a.slots(operands), "result": x.kind if result is None else result}
    before = _as_triple(windows.before, 0)
    op = ArrayConvPool(function, dims, outputs, _as_triple(size), kernel, stride, before, dilation, **more)
    return a.add(op, operands, (x.dims[0], outputs, *size), label=function.lower())


def add_convolution(a: Arrays, x: Value, weights: Value, result: str | None = None) -> Value:
    """Add the convolution of arrays that the node's attributes describe, without bias."""
    windows = _with_pads(a.node, x, _read_windows(a, x, weights))
    groups, size = _groups(a, x, weights.dims), _window_counts(x, windows)
    return _add_windows(a, "Conv", [x, weights], weights.dims[0], size, windows, result, groups=groups)


def _groups(a: Arrays, x: Value, weights: Sequence[int], transposed: bool = False) -> int:
    """Return the groups of a convolution; raise Unsupported if its weights do not match its input."""
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
    """Return the input, an image if possible and if weights and bias are constants, and the weights."""
    is_image = all(a.node.is_constant(index) for index in range(1, len(a.node.inputs)) if a.node.has(index))
    return a.image() if is_image else a.value(0), a.value(1)


@onnx("Conv")
def _conv(a: Arrays) -> None:
    x, weights = _weighted_operands(a)
    if x.image is None or weights.constant is None:
        a.bind(_add_bias(a, add_convolution(a, x, weights)))
        return
    windows = _with_pads(a.node, x, _read_windows(a, x, weights))
    pads = (*_pair(windows.before, 0), *_pair(windows.after, 0))
    op = Conv(_pair(windows.stride), pads, _pair(windows.dilation), int(a.node.attribute("group", 1)))
    _add_layer(a, x, op, weights.constant)


@onnx("ConvTranspose")
def _deconv(a: Arrays) -> None:
    """Add a Deconv, or a convolution with mirrored weights over the input with zeros between its elements."""
    x, weights = _weighted_operands(a)
    windows, groups = _read_windows(a, x, weights), _groups(a, x, weights.dims, transposed=True)
    begin, end, extra = _cropped(a.node, x, windows)
    inputs, per_group, *kernel = weights.dims
    if x.image is not None and weights.constant is not None and min(begin + end) >= 0:
        parts = weights.constant.reshape(groups, inputs // groups, per_group, *kernel).swapaxes(1, 2)
        pads = (*_pair(begin, 0), *_pair([e - o for e, o in zip(end, extra, strict=True)], 0))
        op = Deconv(_pair(windows.stride), pads, _pair(windows.dilation), groups)
        _add_layer(a, x, op, parts.reshape(groups * per_group, inputs // groups, *kernel))
        return
    x, spatial, extent, stride = a.value(0), len(kernel), windows.extent, windows.stride
    full = zip(x.dims[2:], stride, extent, extra, begin, end, strict=True)
    size = [(n - 1) * s + e + o - b - c for n, s, e, o, b, c in full]
    positions = {}
    for axis in range(spatial):
        lead = extent[axis] - 1 - begin[axis]
        line = [-1] * ((x.dims[2 + axis] - 1) * stride[axis] + 1)
        line[:: stride[axis]] = range(x.dims[2 + axis])
        line = [-1] * max(0, lead) + line[max(0, -lead) :]
        length = size[axis] + extent[axis] - 1
        positions[2 + axis] = (line + [-1] * max(0, length - len(line)))[:length]
    spread = a.select(x, positions)
    mirrored = a.select(weights, {2 + axis: range(k - 1, -1, -1) for axis, k in enumerate(kernel)})
    split = a.reshape(mirrored, (groups, inputs // groups, per_group, *kernel))
    swapped = a.transpose(split, (0, 2, 1, *range(3, 3 + spatial)))
    swapped = a.reshape(swapped, (per_group * groups, inputs // groups, *kernel))
    dense = windows._replace(stride=[1] * spatial)
    a.bind(_add_bias(a, _add_windows(a, "Conv", [spread, swapped], per_group * groups, size, dense, groups=groups)))


def _pool(function: str, a: Arrays) -> None:
    x = a.value(0) if function == "Lp" else a.image()
    windows = _with_pads(a.node, x, _read_windows(a, x))
    size = _window_counts(x, windows, bool(a.node.attribute("ceil_mode", 0)))
    ends = zip(size, windows.stride, windows.kernel, windows.before, x.dims[2:], windows.after, strict=True)
    last = [max(after, (count - 1) * s + k - before - n) for count, s, k, before, n, after in ends]
    counts_pads = bool(a.node.attribute("count_include_pad", 0))
    is_partly_counted = function == "Average" and counts_pads and last != windows.after
    if x.image is not None and max(windows.dilation) == 1 and not a.is_output_used(1) and not is_partly_counted:
        pads = (*_pair(windows.before, 0), *_pair(last, 0))
        counts_pads = counts_pads or not any(pads) or function == "Max"
        _add_layer(a, x, Pool(function, _pair(windows.kernel), _pair(windows.stride), pads, counts_pads))
        _check_windows(size, windows, x)
        return
    x = a.value(0)
    counted = _as_triple(windows.after, 0) if counts_pads else None
    output = _add_windows(a, function, [x], x.dims[1], size, windows, order=_norm_order(a), counted=counted)
    _check_windows(size, windows, x)
    a.bind(output)
    if a.is_output_used(1):
        column_major = bool(a.node.attribute("storage_order", 0))
        a.bind(_add_windows(a, "MaxIndex", [x], x.dims[1], size, windows, "int64", column_major=column_major), 1)


def _norm_order(a: Arrays) -> int:
    """Return the p of a p-norm."""
    order = int(a.node.attribute("p", 2))
    if order < 1:
        raise Unsupported(f"p={order} is not supported")
    return order


def _check_windows(counts: Sequence[int], windows: Windows, x: Value) -> None:
    """Raise Unsupported if the first or the last window along an axis contains no element."""
    axes = zip(x.dims[2:], windows.kernel, windows.stride, windows.before, windows.dilation, counts, strict=True)
    for n, k, s, before, d, count in axes:
        for start in (-before, (count - 1) * s - before):
            if not any(0 <= start + tap * d < n for tap in range(k)):
                raise Unsupported("some of its windows lie outside the image", "reduce its pads")


def _global_pool(function: str, a: Arrays) -> None:
    x = a.value(0) if function == "Lp" else a.image()
    spatial = _spatial_rank(x)
    if x.image is not None:
        _add_layer(a, x, Pool(function, _pair(x.dims[2:])))
        return
    ones, zeros = [1] * spatial, [0] * spatial
    windows = Windows(x.dims[2:], ones, ones, zeros, zeros)
    a.bind(_add_windows(a, function, [x], x.dims[1], ones, windows, order=_norm_order(a)))


for _function in ("Max", "Average", "Lp"):
    onnx(f"{_function}Pool")(partial(_pool, _function))
    onnx(f"Global{_function}Pool")(partial(_global_pool, _function))
