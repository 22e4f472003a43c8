"""Operators that read images at places between the pixels, or write to places, as gathers and weighted sums."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from n2d2py.frontend.onnx.parts import Parts, expands
from n2d2py.frontend.onnx.unsupported import Unsupported

_CUBIC = -0.75
"""The parameter of the cubic convolution that ONNX fixes for GridSample."""


class _Real:
    """A tensor of real numbers under construction, with the operators of Python."""

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

    def apply(self, operator: str, *inputs: str, **attributes: int) -> _Real:
        return _Real(self.parts, self.parts.add(operator, self.name, *inputs, out=None, **attributes))

    def clip(self, low: float, high: float) -> _Real:
        return self.apply("Clip", self.parts.number(low), self.parts.number(high))

    def inside(self, low: float, high: float) -> _Real:
        """1 where the value is from `low` to `high`, else 0, for values that are whole."""
        distance = (self - self.clip(low, high)).apply("Abs")
        return _Real(self.parts, self.parts.number(1)) - distance.clip(0, 1)


def _reflected(x: _Real, low: float, high: float) -> _Real:
    """Mirrored at both ends of an axis until it lies between them."""
    span = high - low
    if span <= 0:
        return x.clip(low, low)
    turns = (x - low).apply("Abs") / span
    whole = turns.apply("Floor")
    rest, odd = turns - whole, whole - (whole / 2).apply("Floor") * 2
    return (rest + odd - rest * odd * 2) * span + low


def _taps(x: _Real, mode: str) -> list[tuple[_Real, _Real | None]]:
    """The places around `x` that its value is made of, with their weights (None: 1)."""
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
    """X (N, C, ...) at the places of a grid (N, ..., axes) from -1 to 1, the last axis first."""
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
            x = _reflected(x, *ends)
        per_axis.append(_inside(_taps(x, mode), size, padding, ends))
    _summed(parts, sizes, dims[1], places, per_axis, grid[1:-1])


def _inside(
    taps: list[tuple[_Real, _Real | None]], size: int, padding: str, ends: tuple[float, float]
) -> list[tuple[_Real, _Real | None]]:
    """The taps with places that exist; those that do not weigh nothing with `padding` zeros."""
    found = []
    for place, weight in taps:
        if padding == "reflection":
            place = _reflected(place, *ends)
        if padding == "zeros":
            known = place.inside(0, size - 1)
            weight = known if weight is None else weight * known
        found.append((place.clip(0, size - 1), weight))
    return found


def _summed(
    parts: Parts,
    sizes: tuple[int, ...],
    channels: int,
    places: int,
    per_axis: list[list[tuple[_Real, _Real | None]]],
    shape: tuple[int, ...],
) -> None:
    """The sum over all combinations of the taps of each axis, as (N, C, *shape)."""
    flat, total = parts.reshape(parts.inputs[0], 0, channels, prod(sizes)), None
    for combination in product(*per_axis):
        index, weight = None, None
        for axis, (place, share) in enumerate(combination):
            step = place * prod(sizes[axis + 1 :])
            index = step if index is None else index + step
            weight = share if weight is None or share is None else weight * share
        assert index is not None
        at = parts.reshape(index.apply("Cast", to=7).name, places)
        read = parts.add("Gather", flat, at, axis=2)
        if weight is not None:
            read = parts.add("Mul", read, parts.reshape(weight.name, 1, 1, places))
        total = read if total is None else parts.add("Add", total, read)
    assert total is not None
    parts.reshape(total, 0, channels, *shape, out=0)


@expands("MaxUnpool")
def _max_unpool(parts: Parts) -> None:
    """The values of X at their indices in a tensor of zeros."""
    dims, kernel = parts.dims(0), parts.attribute("kernel_shape")
    steps, pads = parts.attribute("strides", [1] * len(kernel)), parts.attribute("pads", [0] * 2 * len(kernel))
    axes = range(len(kernel))
    natural = [(dims[2 + k] - 1) * steps[k] + kernel[k] - pads[k] - pads[k + len(kernel)] for k in axes]
    asked = parts.values(2, "output shape")
    shape = [dims[1], *natural] if asked is None else asked.tolist()[1:]
    # an index counts in the natural shape
    zeros = parts.constant("zeros", np.zeros(dims[1] * prod(natural), np.float32))
    flat = [parts.reshape(name, prod(dims[1:])) for name in parts.inputs[:2]]
    filled = parts.reshape(parts.add("ScatterElements", zeros, flat[1], flat[0], axis=0), 1, dims[1], *natural)
    more = [large - small for large, small in zip(shape[1:], natural, strict=True)]
    pad = parts.constant("pads", np.array([0] * (4 + len(kernel)) + more, np.int64))
    parts.add("Pad", filled, pad, out=0)


@expands("Col2Im")
def _col2im(parts: Parts) -> None:
    """Sums of blocks (N, C * block, L) where they lie in an image: a transposed convolution that only moves."""
    image, block = (parts.needed(index, what).tolist() for index, what in ((1, "image shape"), (2, "block shape")))
    rank = len(block)
    steps, holes = parts.attribute("strides", [1] * rank), parts.attribute("dilations", [1] * rank)
    pads, channels = parts.attribute("pads", [0] * 2 * rank), parts.dims(0)[1] // max(1, prod(block))
    if parts.dims(0)[1] != channels * prod(block) or min(*block, *steps, *holes) < 1:
        raise Unsupported(f"its {parts.dims(0)[1]} rows are not blocks of {' x '.join(map(str, block))}")
    reach = [holes[k] * (block[k] - 1) + 1 for k in range(rank)]
    padded = [image[k] + pads[k] + pads[k + rank] for k in range(rank)]
    counts = [(padded[k] - reach[k]) // steps[k] + 1 for k in range(rank)]
    rest = [padded[k] - reach[k] - (counts[k] - 1) * steps[k] for k in range(rank)]
    weights = np.tile(np.eye(prod(block), dtype=np.float32).reshape(prod(block), 1, *block), (channels, *[1] * (rank + 1)))
    x = parts.reshape(parts.inputs[0], 0, channels * prod(block), *counts)
    given = parts.constant("moves", weights)
    parts.add(
        "ConvTranspose",
        x,
        given,
        out=0,
        group=channels,
        strides=steps,
        dilations=holes,
        pads=pads,
        output_padding=rest,
        kernel_shape=block,
    )
