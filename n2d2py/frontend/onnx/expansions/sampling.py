"""Sampling between pixels and scatter operators as gathers and weighted sums; Shrink."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from n2d2py.frontend.onnx.parts import Parts, Unsupported, expands

_CUBIC = -0.75
"""Cubic convolution coefficient that ONNX fixes for GridSample."""


class _Real:
    """A float tensor under construction, with Python operators."""

    def __init__(self, parts: Parts, name: str):
        self.parts, self.name = parts, name

    def _with(self, operator: str, other: _Real | float) -> _Real:
        right = other.name if isinstance(other, _Real) else self.parts.number(other)
        return _Real(self.parts, self.parts.add(operator, self.name, right))

    def __add__(self, other: _Real | float) -> _Real:
        return self._with("Add", other)

    def __sub__(self, other: _Real | float) -> _Real:
        return self._with("Sub", other)

    def __mul__(self, other: _Real | float) -> _Real:
        return self._with("Mul", other)

    def __truediv__(self, other: _Real | float) -> _Real:
        return self._with("Div", other)

    def apply(self, operator: str, *inputs: str, **attributes: float) -> _Real:
        return _Real(self.parts, self.parts.add(operator, self.name, *inputs, out=None, **attributes))

    def clip(self, low: float, high: float) -> _Real:
        if self.parts.opset < 11:
            return self.apply("Clip", min=float(low), max=float(high))
        return self.apply("Clip", self.parts.number(low), self.parts.number(high))

    def inside(self, low: float, high: float) -> _Real:
        """Return 1 for values from `low` to `high`, else 0."""
        distance = (self - self.clip(low, high)).apply("Abs")
        return _Real(self.parts, self.parts.number(1)) - distance.apply("Sign")

    def reshape(self, *dims: int) -> _Real:
        return _Real(self.parts, self.parts.reshape(self.name, *dims))


def _reflect(x: _Real, low: float, high: float) -> _Real:
    """Reflect positions at both ends of an axis until they lie in the range."""
    span = high - low
    if span <= 0:
        return x.clip(low, low)
    turns = (x - low).apply("Abs") / span
    whole = turns.apply("Floor")
    rest, odd = turns - whole, whole - (whole / 2).apply("Floor") * 2
    return (rest + odd - rest * odd * 2) * span + low


def _taps(x: _Real, mode: str) -> list[tuple[_Real, _Real | None]]:
    """Return the sampling positions around `x` and their weights (None: 1)."""
    if mode == "nearest":
        return [(x.apply("Round"), None)]
    base = x.apply("Floor")
    t = x - base
    one = _Real(t.parts, t.parts.number(1))
    if mode == "linear":
        return [(base, one - t), (base + 1, t)]

    def near(d: _Real) -> _Real:
        return ((d * (_CUBIC + 2)) - (_CUBIC + 3)) * d * d + 1

    def far(d: _Real) -> _Real:
        return ((d * _CUBIC - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    return [(base - 1, far(t + 1)), (base, near(t)), (base + 1, near(one - t)), (base + 2, far(one - t + 1))]


@expands("GridSample")
def _grid_sample(parts: Parts) -> None:
    """Sample X (N, C, ...) at the positions of a grid (N, ..., axes) in [-1, 1], last axis first."""
    dims, grid = parts.dims(0), parts.dims(1)
    sizes, places = dims[2:], prod(grid[1:-1])
    mode = str(parts.attribute("mode", "linear")).removeprefix("bi")
    padding, corners = parts.attribute("padding_mode", "zeros"), parts.attribute("align_corners", 0)
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise Unsupported(f"its mode '{mode}' or padding '{padding}' is not known")
    if grid[-1] != len(sizes) or len(grid) != len(dims) or (mode == "cubic" and len(sizes) != 2) or grid[0] != 1:
        raise Unsupported(f"{mode} interpolation of {len(sizes)} axes, or a grid of several samples, is not supported")
    axes = parts.split(parts.reshape(parts.inputs[1], places, len(sizes)), 1, [1] * len(sizes))
    per_axis = []
    for size, name in zip(sizes, reversed(axes), strict=True):
        x = (_Real(parts, name) + 1) * ((size - 1) / 2 if corners else size / 2)
        x = x if corners else x - 0.5
        ends = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        if padding == "border":
            x = x.clip(0, size - 1)
        elif padding == "reflection":
            x = _reflect(x, *ends)
        per_axis.append(_mask(_taps(x, mode), size, padding, ends))
    flat = parts.reshape(parts.inputs[0], 0, dims[1], prod(sizes))
    parts.reshape(_reduce(parts, flat, sizes, places, per_axis), 0, dims[1], *grid[1:-1], out=0)


def _mask(taps: list[tuple[_Real, _Real | None]], size: int, padding: str, ends: tuple[float, float]) -> _Taps:
    """Return the taps with valid positions; with `padding` zeros, taps outside get weight 0."""
    result = []
    for place, weight in taps:
        if padding == "reflection":
            place = _reflect(place, *ends)
        if padding == "zeros":
            known = place.inside(0, size - 1)
            weight = known if weight is None else weight * known
        result.append((place.clip(0, size - 1), weight))
    return result


_Taps = list[tuple[_Real, _Real | None]]
"""Positions along an axis with their weights (None: 1)."""


def _reduce(parts: Parts, flat: str, sizes: Sequence[int], places: int, per_axis: list[_Taps], combine: str = "Add") -> str:
    """Reduce the products of all axes' taps of `flat` (1, C, prod(sizes)) to (1, C, places), by `combine`."""
    total = None
    for combination in product(*per_axis):
        index, weight = None, None
        for axis, (place, share) in enumerate(combination):
            step = place * prod(sizes[axis + 1 :])
            index = step if index is None else index + step
            weight = share if weight is None or share is None else weight * share
        assert index is not None
        read = parts.add("Gather", flat, parts.reshape(index.apply("Cast", to=7).name, places), axis=2)
        if weight is not None:
            read = parts.add("Mul", read, parts.reshape(weight.name, 1, 1, places))
        total = read if total is None else parts.add(combine, total, read)
    assert total is not None
    return total


@expands("DeformConv")
def _deform_conv(parts: Parts) -> None:
    """Add a convolution with offsets (y, x) for each result, as a product of gathered values."""
    dims, filters = parts.dims(0), parts.dims(1)
    if len(dims) != 4 or dims[0] != 1:
        form = " x ".join(map(str, dims))
        raise Unsupported(f"an input of {form} is not supported, only one image", "export it for one image")
    groups, image, kernel, result = parts.attribute("offset_group", 1), dims[2:], filters[2:], parts.dims(2)[2:]
    steps, holes, pads = (parts.attribute(name, [least] * 4) for name, least in (("strides", 1), ("dilations", 1), ("pads", 0)))
    taps, places = prod(kernel), prod(kernel) * prod(result)
    offsets = parts.reshape(parts.inputs[2], groups, taps, 2, prod(result))
    outer = [np.add.outer(np.arange(kernel[k]) * holes[k], np.arange(result[k]) * steps[k]) for k in (0, 1)]
    starts = [one.astype(np.float32) - pads[k] for k, one in enumerate(outer)]
    grid = (starts[0][:, None, :, None], starts[1][None, :, None, :])
    bases = [np.broadcast_to(start, (*kernel, *result)).reshape(1, taps, 1, prod(result)) for start in grid]
    sampled, width = [], dims[1] // groups
    for group, x in enumerate(parts.split(parts.inputs[0], 1, [width] * groups)):
        own = parts.split(offsets, 0, [1] * groups)[group]
        axes = zip(parts.split(own, 2, [1, 1]), bases, image, strict=True)
        per_axis = [
            _mask(_taps(_Real(parts, parts.add_constant("start", base)) + _Real(parts, moved), "linear"), size, "zeros", (0, 0))
            for moved, base, size in axes
        ]
        output = _reduce(parts, parts.reshape(x, 1, width, prod(image)), image, places, per_axis)
        if parts.has(4):
            mask = parts.split(parts.reshape(parts.inputs[4], groups, 1, places), 0, [1] * groups)[group]
            output = parts.add("Mul", output, mask)
        sampled.append(parts.reshape(output, 1, width * taps, *result))
    lines = sampled[0] if groups == 1 else parts.add("Concat", *sampled, axis=1)
    inputs = [lines, parts.reshape(parts.inputs[1], filters[0], filters[1] * taps, 1, 1), *parts.inputs[3:4]]
    parts.add("Conv", *inputs, out=0, group=parts.attribute("group", 1))


@expands("RoiAlign")
def _roi_align(parts: Parts) -> None:
    """Pool each box (x1, y1, x2, y2) of an image to (height, width) means or maxima of interpolated values."""
    dims, boxes = parts.dims(0), parts.dims(1)
    mode, ratio = parts.attribute("mode", "avg"), parts.attribute("sampling_ratio", 0)
    if dims[0] != 1 or mode not in ("avg", "max"):
        raise Unsupported(f"boxes in {dims[0]} images, or mode '{mode}', are not supported", "export it for one image")
    half = parts.attribute("coordinate_transformation_mode", "half_pixel" if parts.opset >= 16 else "output_half_pixel")
    scale, size = parts.attribute("spatial_scale", 1.0), [parts.attribute(f"output_{name}", 1) for name in ("height", "width")]
    least = -np.inf if half == "half_pixel" else 1.0
    flat = parts.reshape(parts.inputs[0], 1, dims[1], prod(dims[2:]))
    moved = _Real(parts, parts.inputs[1]) * scale - (0.5 if half == "half_pixel" else 0.0)
    if ratio > 0:
        _pool_boxes(parts, flat, moved, boxes[0], [(each, ratio) for each in size], least, 0)
        return
    known = parts.constant(1, "list of boxes, which decides the number of samples,") * np.float32(scale)
    extents = np.maximum(known[:, [3, 2]] - known[:, [1, 0]], least)
    counts = np.maximum(np.ceil(extents / size), 1).astype(int).tolist()
    rows = parts.split(moved.name, 0, [1] * boxes[0])
    bins = [list(zip(size, count, strict=True)) for count in counts]
    result = [_pool_boxes(parts, flat, _Real(parts, row), 1, own, least) for row, own in zip(rows, bins, strict=True)]
    parts.add("Concat", *result, out=0, axis=0)


def _pool_boxes(
    parts: Parts, flat: str, boxes: _Real, count: int, bins: list[tuple[int, int]], least: float, out: int | None = None
) -> str:
    """Return the pooled boxes (count, 4) as (count, C, rows, columns); `bins`: (number, samples of each) of rows and of columns;
    sides are at least `least`."""
    size, samples = zip(*bins, strict=True)
    dims, mode, per_axis = parts.dims(0), parts.attribute("mode", "avg"), []
    ends = [_Real(parts, column).reshape(count, 1, 1, 1, 1) for column in parts.split(boxes.name, 1, [1] * 4)]
    for axis, (low, high) in enumerate(((ends[1], ends[3]), (ends[0], ends[2]))):
        length = high - low
        if least > 0:
            length = length.apply("Max", parts.number(least))
        steps = np.add.outer(np.arange(size[axis]), (np.arange(samples[axis]) + 0.5) / samples[axis]) / size[axis]
        shape = (1, size[0], 1, samples[0], 1) if axis == 0 else (1, 1, size[1], 1, samples[1])
        positions = length * _Real(parts, parts.add_constant("steps", steps.astype(np.float32).reshape(shape))) + low
        most = dims[2 + axis] - 1
        known, taps = positions.inside(-1, most + 1), _taps(positions.clip(0, most), "linear")
        per_axis.append([(place.clip(0, most), known * share if share is not None else known) for place, share in taps])
    places, reduced = count * prod(size), prod(samples)
    combine = "Add" if mode == "avg" else "Max"
    result = _reduce(parts, flat, dims[2:], places * reduced, per_axis, combine)
    result = parts.reshape(result, dims[1], places, reduced)
    result = parts.add_along("ReduceMean" if mode == "avg" else "ReduceMax", result, [2], 18, keepdims=0)
    return parts.add("Transpose", parts.reshape(result, dims[1], count, *size), out=out, perm=[1, 0, 2, 3])


@expands("MaxUnpool")
def _max_unpool(parts: Parts) -> None:
    """Scatter the values of X to their indices in a tensor of zeros."""
    dims, kernel = parts.dims(0), parts.attribute("kernel_shape")
    steps, pads = parts.attribute("strides", [1] * len(kernel)), parts.attribute("pads", [0] * 2 * len(kernel))
    axes = range(len(kernel))
    natural = [(dims[2 + k] - 1) * steps[k] + kernel[k] - pads[k] - pads[k + len(kernel)] for k in axes]
    asked = parts.optional_constant(2, "output shape")
    shape = [dims[1], *natural] if asked is None else asked.tolist()[1:]
    # an index counts in the natural shape
    zeros = parts.add_constant("zeros", np.zeros(dims[1] * prod(natural), np.float32))
    flat = [parts.reshape(name, prod(dims[1:])) for name in parts.inputs[:2]]
    filled = parts.reshape(parts.add("ScatterElements", zeros, flat[1], flat[0], axis=0), 1, dims[1], *natural)
    more = [large - small for large, small in zip(shape[1:], natural, strict=True)]
    pad = parts.add_constant("pads", np.array([0] * (4 + len(kernel)) + more, np.int64))
    parts.add("Pad", filled, pad, out=0)


@expands("Col2Im")
def _col2im(parts: Parts) -> None:
    """Sum blocks (N, C * block, L) at their positions in an image, by a transposed convolution with one-hot weights."""
    image, block = (parts.constant(index, what).tolist() for index, what in ((1, "image shape"), (2, "block shape")))
    rank = len(block)
    steps, holes = parts.attribute("strides", [1] * rank), parts.attribute("dilations", [1] * rank)
    pads, channels = parts.attribute("pads", [0] * 2 * rank), parts.dims(0)[1] // max(1, prod(block))
    if parts.dims(0)[1] != channels * prod(block) or min(*block, *steps, *holes) < 1:
        raise Unsupported(f"its {parts.dims(0)[1]} rows are not blocks of {' x '.join(map(str, block))}")
    room = [image[k] + pads[k] + pads[k + rank] - holes[k] * (block[k] - 1) - 1 for k in range(rank)]
    counts, rest = zip(*(divmod(room[k], steps[k]) for k in range(rank)), strict=True)
    weights = np.tile(np.eye(prod(block), dtype=np.float32).reshape(prod(block), 1, *block), (channels, *[1] * (rank + 1)))
    x = parts.reshape(parts.inputs[0], 0, channels * prod(block), *(count + 1 for count in counts))
    windows = {"strides": steps, "dilations": holes, "pads": pads, "output_padding": list(rest), "kernel_shape": block}
    parts.add("ConvTranspose", x, parts.add_constant("moves", weights), out=0, group=channels, **windows)


@expands("Shrink")
def _shrink(parts: Parts) -> None:
    """Shrink values beyond a limit towards zero by the bias; others are 0."""
    x, zero = parts.inputs[0], parts.number(0.0)
    large = parts.add("Greater", parts.add("Abs", x), parts.number(parts.attribute("lambd", 0.5)))
    moved = parts.add("Mul", parts.add("Sign", x), parts.number(parts.attribute("bias", 0.0)))
    parts.add("Where", large, parts.add("Sub", x, moved), zero, out=0)
