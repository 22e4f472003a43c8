"""Resize and Upsample along any axes: nearest, linear and cubic, with or without antialiasing."""

from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from n2d2py.graph.shapes import MAX_STEP
from n2d2py.operators.arrays.base import around_axis
from n2d2py.operators.arrays.values import Arrays, Unsupported, Value, check_positions, onnx
from n2d2py.operators.quantize import Quantize, grid_type
from n2d2py.operators.resize import ArrayInterpolate, Resize

_LINEAR = {
    "half_pixel": "HalfPixel",
    "pytorch_half_pixel": "HalfPixel",
    "half_pixel_symmetric": "HalfPixel",
    "align_corners": "AlignCorners",
    "asymmetric": "Asymmetric",
}
_HALF = Fraction(1, 2)
_ROUNDINGS = {
    "floor": floor,
    "ceil": ceil,
    "round_prefer_floor": lambda x: ceil(x - _HALF),
    "round_prefer_ceil": lambda x: floor(x + _HALF),
}
_MAX_OUTPUTS = 1 << 16
"""Largest number of output positions with weights along an axis."""


class _Axis(NamedTuple):
    inputs: int
    outputs: int
    scale: Fraction = Fraction(1)
    region: tuple[float, float] | None = None
    """First and last position of a crop, relative to the input."""


@onnx("Resize", "Upsample")
def _resize(a: Arrays) -> None:
    node, x = a.node, a.image()
    axes = _axes(a, x)
    if any(axis.outputs < 1 for axis in axes):
        raise Unsupported("its result has no elements")
    check_positions(axis.outputs for axis in axes)
    mode = node.attribute("mode", "nearest")
    coordinates = "asymmetric" if node.opset < 11 else node.attribute("coordinate_transformation_mode", "half_pixel")
    changed = {index: axis for index, axis in enumerate(axes) if axis.scale != 1 or axis.outputs != axis.inputs or axis.region}
    places = {index: _coordinates(axis, coordinates) for index, axis in changed.items()}
    if mode == "nearest":
        tensor = _nearest(a, x, changed, places)
    elif mode not in ("linear", "cubic"):
        raise Unsupported(f"mode={mode} is not supported")
    elif x.image is not None and changed and _is_bilinear(a, axes, coordinates):
        tensor = a.layer(Resize((axes[2].outputs, axes[3].outputs), "Bilinear", _LINEAR[coordinates]), x, "linear")
    else:
        tensor = a.cast(x, "") if changed else x  # integers are weighted as real numbers, and cut again
        for index, axis in changed.items():
            if axis.outputs > _MAX_OUTPUTS:
                raise Unsupported(f"its output of {axis.outputs:,} rows or columns exceeds the limit of {_MAX_OUTPUTS:,}")
            tensor = _interpolate(a, tensor, index, _taps(a, [float(place) for place in places[index]], axis, mode))
        tensor = a.cast(tensor, x.kind)
    tensor = _extrapolate(a, tensor, changed, places)
    source = x.image or x.tensor
    grid = grid_type(a.builder.graph, source) if source is not None and node.inputs[0] in a.builder.integers else None
    if grid is not None and mode != "nearest":
        rounding = Quantize(grid)
        tensor = a.layer(rounding, tensor, "integers") if tensor.image else a.add(rounding, [tensor], tensor.dims, "integers")
    a.bind(tensor)


def _axes(a: Arrays, x: Value) -> list[_Axis]:
    node, dims, old = a.node, x.dims, a.node.opset < 11
    resized = [node.axis_of(axis, len(dims)) for axis in node.attribute("axes") or range(len(dims))]
    axes = [_Axis(size, size) for size in dims]
    if not old and node.has(3) and node.constant(3, "sizes").size:
        sizes = [int(size) for size in node.constant(3, "sizes").reshape(-1)]
        if len(sizes) != len(resized):
            raise Unsupported(f"it has {len(sizes)} sizes for {len(resized)} axes")
        targets = {axis: size for axis, size in zip(resized, sizes, strict=True) if axis or x.image is None}
        ratios = {axis: Fraction(size, dims[axis]) for axis, size in targets.items()}
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        for axis, size in targets.items():
            if policy == "stretch":
                axes[axis] = _Axis(dims[axis], size, ratios[axis])
            else:
                ratio = min(ratios.values()) if policy == "not_larger" else max(ratios.values())
                axes[axis] = _Axis(dims[axis], floor(ratio * dims[axis] + _HALF), ratio)
    else:
        scales = node.attribute("scales")
        scales = node.constant(1 if old else 2, "scales").reshape(-1).tolist() if scales is None else scales
        if len(scales) != len(resized):
            raise Unsupported(f"it has {len(scales)} scales for {len(resized)} axes")
        if not all(0 < scale <= MAX_STEP for scale in scales):
            raise Unsupported("one of its scales is not positive, or too large")
        for axis, scale in zip(resized, scales, strict=True):
            a.builder.guard_batch(node, 0, axis, "resizes", scale == 1)
            scaled = dims[axis] * float(np.float32(scale))
            # a float32 scale such as 1/3 represents the ratio of two sizes
            is_ratio = abs(scaled - round(scaled)) < 1e-6 * scaled
            ratio = Fraction(round(scaled), dims[axis]) if is_ratio else _exact_scale(scale)
            axes[axis] = _Axis(dims[axis], floor(dims[axis] * ratio), ratio)
    if node.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":
        region = node.constant(1, "region").reshape(-1).tolist()
        for index, axis in enumerate(resized):
            axes[axis] = axes[axis]._replace(region=(region[index], region[index + len(resized)]))
    return axes


def _exact_scale(scale: float) -> Fraction:
    """Return the small ratio with the float32 value `scale`, as 7/10; midpoints of two positions then are exact."""
    stored = np.float32(scale)
    near = Fraction(float(stored)).limit_denominator(1000)
    return near if np.float32(float(near)) == stored else Fraction(float(stored))


def _coordinates(axis: _Axis, coordinates: str) -> list[Fraction]:
    n, m, scale = axis.inputs, axis.outputs, axis.scale
    step, start = 1 / scale, Fraction(0)
    if axis.region is not None:
        first, last = map(Fraction, axis.region)
        step, start = ((last - first) * (n - 1) / (m - 1), first * (n - 1)) if m > 1 else (step, (first + last) * (n - 1) / 2)
    elif coordinates == "align_corners":
        step = (n - 1) / (n * scale - 1) if n * scale != 1 else Fraction(1)
    elif coordinates == "tf_half_pixel_for_nn":
        start = _HALF / scale
    elif coordinates == "half_pixel" or (coordinates == "pytorch_half_pixel" and m > 1):
        start = _HALF / scale - _HALF
    elif coordinates == "half_pixel_symmetric":
        start = Fraction(n, 2) * (1 - m / (n * scale)) + _HALF / scale - _HALF
    elif coordinates not in ("asymmetric", "pytorch_half_pixel"):
        raise Unsupported(f"coordinate_transformation_mode={coordinates} is not supported")
    return [start + i * step for i in range(m)]


def _nearest(a: Arrays, x: Value, axes: dict[int, _Axis], places: dict[int, list[Fraction]]) -> Value:
    positions = {}
    for index, axis in axes.items():
        rounding = a.node.attribute("nearest_mode", "round_prefer_floor")
        if a.node.opset < 11:  # examples of opset 10: round down, or up along a smaller axis
            rounding = "ceil" if a.node.type == "Resize" and axis.scale < 1 else "floor"
        if rounding not in _ROUNDINGS:
            raise Unsupported(f"nearest_mode={rounding} is not supported")
        positions[index] = [min(max(_ROUNDINGS[rounding](place), 0), axis.inputs - 1) for place in places[index]]
    plain = all(
        [i * axis.inputs // axis.outputs for i in range(axis.outputs)] == positions[index] for index, axis in axes.items()
    )
    if x.image is None or len(x.dims) != 4 or not plain or not axes or min(axes) < 2:
        return a.select(x, positions)
    height, width = (axes[index].outputs if index in axes else x.dims[index] for index in (2, 3))
    return a.layer(Resize((height, width)), x, "nearest")


def _is_bilinear(a: Arrays, axes: list[_Axis], coordinates: str) -> bool:
    return (
        len(axes) == 4
        and a.node.attribute("mode") == "linear"
        and all(axis.scale == 1 for axis in axes[:2])
        and not (a.node.attribute("antialias", 0) and any(axis.scale < 1 for axis in axes))
        and coordinates in _LINEAR
        and all(axis.outputs == axis.inputs * axis.scale for axis in axes)
        and not (coordinates == "pytorch_half_pixel" and any(axis.outputs == 1 != axis.inputs for axis in axes[2:]))
    )


def _taps(a: Arrays, coordinates: list[float], axis: _Axis, mode: str) -> list[tuple[list[int], list[float]]]:
    antialias = bool(a.node.attribute("antialias", 0)) and axis.scale < 1
    factor = float(min(axis.scale, Fraction(1))) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / factor
    coefficient = float(a.node.attribute("cubic_coeff_a", -0.75))
    leaves_out = bool(a.node.attribute("exclude_outside", 0))
    result = []
    for v in coordinates:
        base = floor(v)
        taps = range(base, base + 2) if mode == "linear" else range(base - 1, base + 3)
        taps = range(ceil(v - reach), floor(v + reach) + 1) if antialias else taps
        weights = [_kernel((t - v) * factor, mode, coefficient) for t in taps]
        if leaves_out:
            weights = [w if 0 <= t < axis.inputs else 0.0 for t, w in zip(taps, weights, strict=True)]
        total = sum(weights)
        weights = [w / total for w in weights] if leaves_out or antialias else weights
        result.append(([min(max(t, 0), axis.inputs - 1) for t in taps], weights))
    return result


def _kernel(d: float, mode: str, a: float) -> float:
    d = abs(d)
    if mode == "linear":
        return max(0.0, 1 - d)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return (((d - 5) * d + 8) * d - 4) * a if d < 2 else 0.0


def _interpolate(a: Arrays, x: Value, axis: int, lines: list[tuple[list[int], list[float]]]) -> Value:
    if all(len(taps) == 1 for taps, _ in lines):
        return a.select(x, {axis: [taps[0] for taps, _ in lines]})
    most = max(len(taps) for taps, _ in lines)
    positions = tuple(tuple(taps + [taps[-1]] * (most - len(taps))) for taps, _ in lines)
    weights = tuple(tuple(w + [0.0] * (most - len(w))) for _, w in lines)
    dims = (*x.dims[:axis], len(lines), *x.dims[axis + 1 :])
    op = ArrayInterpolate(*around_axis(x.dims, axis), positions, weights)
    return a.add(op, [a.tensor(x)], dims, label="resampled")


def _extrapolate(a: Arrays, image: Value, axes: dict[int, _Axis], places: dict[int, list[Fraction]]) -> Value:
    """Set positions of a crop outside the input to the extrapolation value."""
    outside = np.zeros((1,) * len(image.dims), bool)
    for index, axis in axes.items():
        if axis.region is not None:
            beyond = np.array([not 0 <= place <= axis.inputs - 1 for place in places[index]])
            outside = outside | beyond.reshape([-1 if number == index else 1 for number in range(len(image.dims))])
    if not outside.any():
        return image
    fill = a.const(float(a.node.attribute("extrapolation_value", 0.0)), image)
    return a.map("Where", a.const(np.broadcast_to(outside, image.dims).copy()), fill, image, result=image.kind)
