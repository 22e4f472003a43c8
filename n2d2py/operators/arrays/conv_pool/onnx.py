"""Convolutions and pools of up to three axes, with weights computed in the network, dilated pools, positions."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.tensors import Value
from n2d2py.frontend.onnx.windows import check_bias
from n2d2py.graph.shapes import MAX_PAD, MAX_STEP
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.operators.arrays.values import Arrays, onnx_array


def _three(values: Sequence[int], fill: int = 1) -> tuple[int, int, int]:
    return (*(fill,) * (3 - len(values)), *map(int, values))  # type: ignore[return-value]


def _list(a: Arrays, name: str, spatial: int) -> list[int]:
    values = [int(v) for v in a.node.attribute(name) or [1] * spatial]
    if len(values) != spatial:
        raise Unsupported(f"its {name} have {len(values)} values for {spatial} spatial axes")
    if min(values) < 1 or max(values) > MAX_STEP:
        raise Unsupported(f"its {name} are not positive" if min(values) < 1 else f"its {name} are larger than any image")
    return values


def _spatial(x: Value) -> int:
    if not 3 <= len(x.dims) <= 5:
        raise Unsupported(f"its input has rank {len(x.dims)}, only rank 3, 4 or 5 is supported")
    return len(x.dims) - 2


def _pads(a: Arrays, size: Sequence[int], extent: Sequence[int], stride: Sequence[int]) -> tuple[list[int], list[int]]:
    """Elements before and after each axis."""
    mode, count = a.node.attribute("auto_pad", "NOTSET"), len(size)
    if mode in ("NOTSET", "VALID"):
        pads = [int(p) for p in a.node.attribute("pads") or [0] * 2 * count] if mode == "NOTSET" else [0] * 2 * count
        if len(pads) != 2 * count:
            raise Unsupported(f"its pads have {len(pads)} values instead of {2 * count}")
        if max(pads) > MAX_PAD:
            raise Unsupported("its pads exceed the limit")
        if min(pads) < 0:
            raise Unsupported("negative pads are not supported", "crop with a Pad or Slice before it")
        return pads[:count], pads[count:]
    total = [max((-(-n // s) - 1) * s + e - n, 0) for n, e, s in zip(size, extent, stride, strict=True)]
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return (small, large) if mode == "SAME_UPPER" else (large, small)


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
    kernel, stride, dilation = weights.dims[2:], _list(a, "strides", spatial), _list(a, "dilations", spatial)
    if len(kernel) != spatial:
        raise Unsupported("its weights and its input differ in rank")
    _check_kernel(a, weights)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    before, after = _pads(a, x.dims[2:], extent, stride)
    size = [(n + b + c - e) // s + 1 for n, b, c, e, s in zip(x.dims[2:], before, after, extent, stride, strict=True)]
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
        raise Unsupported(f"its weights of {list(weights.dims)} do not match {x.dims[1]} channels in {groups} groups")
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
    kernel, stride, dilation = weights.dims[2:], _list(a, "strides", spatial), _list(a, "dilations", spatial)
    _check_kernel(a, weights)
    groups = _groups(a, x, weights, transposed=True)
    extra = [int(v) for v in a.node.attribute("output_padding") or [0] * spatial]
    if len(kernel) != spatial or len(extra) != spatial:
        raise Unsupported("its weights or its output_padding do not match the rank of its input")
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    wanted = a.node.attribute("output_shape")
    mode = a.node.attribute("auto_pad", "NOTSET")
    full = [(n - 1) * s + e + o for n, s, e, o in zip(x.dims[2:], stride, extent, extra, strict=True)]
    if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
        if wanted is not None and len(wanted) < spatial:
            raise Unsupported(f"its output_shape has {len(wanted)} values for {spatial} spatial axes")
        size = (
            [int(v) for v in wanted[-spatial:]]
            if wanted is not None
            else [n * s for n, s in zip(x.dims[2:], stride, strict=True)]
        )
        total = [f - n for f, n in zip(full, size, strict=True)]
        half = [t // 2 for t in total]
        begin = half if mode == "SAME_UPPER" else [t - h for t, h in zip(total, half, strict=True)]
    else:
        pads = [0] * 2 * spatial if mode == "VALID" else [int(p) for p in a.node.attribute("pads") or [0] * 2 * spatial]
        if len(pads) != 2 * spatial:
            raise Unsupported(f"its pads have {len(pads)} values instead of {2 * spatial}")
        begin = pads[:spatial]
        size = [f - b - e for f, b, e in zip(full, begin, pads[spatial:], strict=True)]
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
        kernel = _list(a, "kernel_shape", spatial)
        stride, dilation = _list(a, "strides", spatial), _list(a, "dilations", spatial)
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
        before, after = _pads(a, x.dims[2:], extent, stride)
        size, counted = [], []
        for n, b, c, e, s in zip(x.dims[2:], before, after, extent, stride, strict=True):
            if a.node.attribute("ceil_mode", 0):
                count = -(-(n + b + c - e) // s) + 1
                size.append(count - 1 if (count - 1) * s >= n + b else count)
            else:
                size.append((n + b + c - e) // s + 1)
            counted.append(c)
        include = bool(a.node.attribute("count_include_pad", 0))
        place = (x, None, x.dims[1], size, kernel, stride, before, dilation)
        made = window(a, function, *place, order=_order(a), counted=counted if include else None)
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
        raise Unsupported(f"p={order} is not supported")
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
