"""Convolutions and pools of up to three axes, with weights computed in the network, dilated pools, positions."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.tensors import Value
from n2d2py.frontend.onnx.windows import check_bias, cut_off, pads_along, per_axis, window_count
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.operators.arrays.values import Arrays, onnx_array


def _three(values: Sequence[int], fill: int = 1) -> tuple[int, int, int]:
    return (*(fill,) * (3 - len(values)), *map(int, values))  # type: ignore[return-value]


def _spatial(x: Value) -> int:
    if not 3 <= len(x.dims) <= 5:
        raise Unsupported(f"its input has rank {len(x.dims)}, only rank 3, 4 or 5 is supported")
    return len(x.dims) - 2


def window(
    a: Arrays,
    function: str,
    x: Value,
    weights: Value | None,
    outputs: int,
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    before: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
    counted: Sequence[int] | None = None,
    order: int = 2,
    column_major: bool = False,
    result: str | None = None,
) -> Value:
    """An ArrayConvPool whose result has the axes of x."""
    if min(size) < 1:
        raise Unsupported("its result has no elements")
    operands = [a.tensor(x)] if weights is None else [x, weights]
    dims = (x.dims[0], x.dims[1], *_three(x.dims[2:]))
    op = ArrayConvPool(
        function,
        dims,
        outputs,
        _three(size),
        _three(kernel),
        _three(stride),
        _three(before, 0),
        _three(dilation),
        groups,
        None if counted is None else _three(counted, 0),
        order,
        column_major,
        a.slots(operands),
        x.kind if result is None else result,
    )
    return a.add(op, operands, (x.dims[0], outputs, *size), label=function.lower())


def convolved(a: Arrays, x: Value, weights: Value, result: str | None = None) -> Value:
    """The convolution by the node's attributes, without bias."""
    spatial = _spatial(x)
    kernel, stride, dilation = weights.dims[2:], per_axis(a.node, "strides", spatial), per_axis(a.node, "dilations", spatial)
    if len(kernel) != spatial:
        raise Unsupported("its weights have another rank than its input")
    _check_kernel(a, weights)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    before, after = pads_along(a.node, x.dims[2:], extent, stride)
    size = [window_count(*axis, False) for axis in zip(x.dims[2:], before, after, extent, stride, strict=True)]
    groups = _groups(a, x, weights)
    return window(a, "Conv", x, weights, weights.dims[0], size, kernel, stride, before, dilation, groups, result=result)


@onnx_array("Conv")
def _conv(a: Arrays) -> None:
    a.bind(_biased(a, convolved(a, a.value(0), a.value(1))))


def _groups(a: Arrays, x: Value, weights: Value, transposed: bool = False) -> int:
    """Return the groups of a convolution; raise Unsupported where its weights do not fit its input."""
    groups = int(a.node.attribute("group", 1))
    channels = weights.dims[0] if transposed else groups * weights.dims[1]
    if groups < 1 or x.dims[1] != channels or weights.dims[0] % groups:
        raise Unsupported(f"its weights of {list(weights.dims)} do not fit {x.dims[1]} channels in {groups} groups")
    return groups


def _check_kernel(a: Arrays, weights: Value) -> None:
    if list(a.node.attribute("kernel_shape") or weights.dims[2:]) != list(weights.dims[2:]):
        raise Unsupported("its kernel_shape differs from the shape of its weights")


def _biased(a: Arrays, made: Value) -> Value:
    if not a.has(2):
        return made
    bias = a.value(2)
    check_bias(bias.size, made.dims[1])
    return a.map("Add", made, a.reshape(bias, (bias.size, *(1,) * (len(made.dims) - 2))))


@onnx_array("ConvTranspose")
def _deconv(a: Arrays) -> None:
    """A convolution of the input with zeros between its elements, by the mirrored weights."""
    x, weights = a.value(0), a.value(1)
    spatial = _spatial(x)
    kernel, stride, dilation = weights.dims[2:], per_axis(a.node, "strides", spatial), per_axis(a.node, "dilations", spatial)
    _check_kernel(a, weights)
    groups = _groups(a, x, weights, transposed=True)
    if len(kernel) != spatial:
        raise Unsupported("its weights are for another number of axes than its input has")
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
    spread = a.axes(x, chosen)
    inputs, outputs = weights.dims[0], weights.dims[1] * groups
    mirrored = a.axes(weights, {2 + axis: range(k - 1, -1, -1) for axis, k in enumerate(kernel)})
    split = a.reshape(mirrored, (groups, inputs // groups, weights.dims[1], *kernel))
    turned = a.transpose(split, (0, 2, 1, *range(3, 3 + spatial)))
    turned = a.reshape(turned, (outputs, inputs // groups, *kernel))
    ones = [1] * spatial
    a.bind(_biased(a, window(a, "Conv", spread, turned, outputs, size, kernel, ones, [0] * spatial, dilation, groups)))


def _pool(function: str):
    def convert(a: Arrays) -> None:
        x = a.value(0)
        spatial = _spatial(x)
        kernel = per_axis(a.node, "kernel_shape", spatial)
        stride, dilation = per_axis(a.node, "strides", spatial), per_axis(a.node, "dilations", spatial)
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        before, after = pads_along(a.node, x.dims[2:], extent, stride)
        axes, ceil_mode = zip(x.dims[2:], before, after, extent, stride, strict=True), bool(a.node.attribute("ceil_mode", 0))
        size = [window_count(*axis, ceil_mode) for axis in axes]
        include = bool(a.node.attribute("count_include_pad", 0))
        place = (x, None, x.dims[1], size, kernel, stride, before, dilation)
        made = window(a, function, *place, order=_order(a), counted=after if include else None)
        _check_windows(size, kernel, stride, before, dilation, x)
        a.bind(made)
        if a.wants(1):
            column_major = bool(a.node.attribute("storage_order", 0))
            a.bind(window(a, "MaxIndex", *place, result="int64", column_major=column_major), 1)

    return convert


def _order(a: Arrays) -> int:
    """The p of a p-norm."""
    order = int(a.node.attribute("p", 2))
    if order < 1:
        raise Unsupported(f"its p is {order}")
    return order


def _check_windows(size, kernel, stride, before, dilation, x: Value) -> None:
    for n, k, s, b, d, count in zip(x.dims[2:], kernel, stride, before, dilation, size, strict=True):
        for start in (-b, (count - 1) * s - b):
            if not any(0 <= start + tap * d < n for tap in range(k)):
                raise Unsupported("some of its windows lie outside the image", "reduce its pads")


def _global(function: str):
    def convert(a: Arrays) -> None:
        x = a.value(0)
        spatial = _spatial(x)
        ones = [1] * spatial
        a.bind(window(a, function, x, None, x.dims[1], ones, x.dims[2:], ones, [0] * spatial, ones, order=_order(a)))

    return convert


onnx_array("MaxPool")(_pool("Max"))
onnx_array("AveragePool")(_pool("Average"))
onnx_array("LpPool")(_pool("Lp"))
onnx_array("GlobalMaxPool")(_global("Max"))
onnx_array("GlobalAveragePool")(_global("Average"))
onnx_array("GlobalLpPool")(_global("Lp"))
