"""Resize and Upsample of height and width: nearest neighbour in every mode, linear where weights come from sizes."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import NamedTuple

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph.shapes import MAX_STEP
from n2d2py.operators.identity import Identity
from n2d2py.operators.index_select import take
from n2d2py.operators.quantize import Quantize, grid_of
from n2d2py.operators.resize import Resize

_LINEAR = {
    "half_pixel": "HalfPixel",
    "pytorch_half_pixel": "HalfPixel",
    "half_pixel_symmetric": "HalfPixel",
    "align_corners": "AlignCorners",
    "asymmetric": "Asymmetric",
}
FIRST_ROUNDING = "ceil where smaller"
"""Which position is nearest in operator set 10, whose definition says it by examples only: the one before, in an axis that becomes
smaller the one after."""


class _Axis(NamedTuple):
    inputs: int
    outputs: int
    scale: Fraction


@onnx("Resize", images=True)
def _resize(node: OnnxNode, builder: Builder) -> None:
    _check(node)
    if node.opset < 11:
        _convert(node, builder, _axes(node, None, 1), "asymmetric", FIRST_ROUNDING)
        return
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
    _convert(node, builder, _axes(node, 3, 2), coordinates, node.attribute("nearest_mode", "round_prefer_floor"))


@onnx("Upsample", images=True)
def _upsample(node: OnnxNode, builder: Builder) -> None:
    _convert(node, builder, _axes(node, None, 1), "asymmetric", "floor")


def _check(node: OnnxNode) -> None:
    if node.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Unsupported("keep_aspect_ratio_policy is not supported", "give the sizes of the result")


def _axes(node: OnnxNode, sizes_at: int | None, scales_at: int) -> list[_Axis]:
    """Input and output size and scale of every axis."""
    shape = node.shape()
    chosen = [node.axis_of(axis, len(shape)) for axis in node.attribute("axes") or range(len(shape))]
    axes = [_Axis(size, size, Fraction(1)) for size in shape]
    if sizes_at is not None and node.has(sizes_at) and node.constant(sizes_at, "sizes").size:
        sizes = node.constant(sizes_at, "sizes").reshape(-1).tolist()
        if len(sizes) != len(chosen):
            raise Unsupported(f"it has {len(sizes)} sizes for {len(chosen)} axes")
        for axis, size in zip(chosen, sizes, strict=True):
            if axis:
                axes[axis] = _Axis(shape[axis], int(size), Fraction(int(size), shape[axis]))
        return axes
    scales = node.attribute("scales")
    if scales is None:
        scales = node.constant(scales_at, "scales").reshape(-1).tolist()
    if len(scales) != len(chosen):
        raise Unsupported(f"it has {len(scales)} scales for {len(chosen)} axes")
    if not all(0 < scale <= MAX_STEP for scale in scales):
        raise Unsupported("one of its scales is not positive, or too large")
    for axis, scale in zip(chosen, scales, strict=True):
        if axis == 0 and scale != 1:
            raise Unsupported("resizing the batch axis is not supported")
        scaled = shape[axis] * float(np.float32(scale))
        # a float32 scale such as 1/3 stands for the ratio of two sizes
        exact = abs(scaled - round(scaled)) < 1e-6 * scaled
        ratio = Fraction(round(scaled), shape[axis]) if exact else meant_scale(scale)
        axes[axis] = _Axis(shape[axis], floor(shape[axis] * ratio), ratio)
    return axes


def meant_scale(scale: float) -> Fraction:
    """The decimal or ratio of small numbers whose float32 is `scale`, as 7/10; positions in the middle of two then are exactly there."""
    stored = np.float32(scale)
    near = Fraction(float(stored)).limit_denominator(1000)
    return near if np.float32(float(near)) == stored else Fraction(float(stored))


def _convert(node: OnnxNode, builder: Builder, axes: list[_Axis], coordinates: str, nearest: str) -> None:
    if any(axis.outputs < 1 for axis in axes):
        raise Unsupported("its result has no elements")
    if all(axis.scale == 1 for axis in axes):
        builder.layer(node, Identity(), [node.tensor()])
        return
    mode = node.attribute("mode", "nearest")
    size = tuple(axis.outputs for axis in axes[2:])
    if mode == "nearest":
        _nearest(node, builder, axes, coordinates, nearest)
        return
    if mode != "linear" or len(axes) != 4 or axes[1].scale != 1:
        raise Unsupported(
            f"its mode is {mode}" if mode != "linear" else "it is linear over other axes than height and width",
            "use linear or nearest over height and width",
        )
    if node.attribute("antialias", 0) and any(axis.scale < 1 for axis in axes):
        raise Unsupported("antialias=1 is not supported", "export with antialias=0")
    if coordinates not in _LINEAR:
        raise Unsupported(f"coordinate_transformation_mode={coordinates} is not supported")
    if any(axis.outputs != axis.inputs * axis.scale for axis in axes):
        raise Unsupported("its scale differs from the ratio of its sizes", "give the sizes of the result")
    if coordinates == "pytorch_half_pixel" and any(axis.outputs == 1 != axis.inputs for axis in axes[2:]):
        raise Unsupported("pytorch_half_pixel is not supported for an output of one row or column")
    resized = Resize(size, "Bilinear", _LINEAR[coordinates])  # type: ignore[arg-type]
    grid = grid_of(builder.graph, node.tensor()) if node.inputs[0] in builder.integers else None
    if grid is None:
        builder.layer(node, resized, [node.tensor()])
    else:  # integers again, the nearest ones
        builder.layer(node, Quantize(grid), [builder.layer(node, resized, [node.tensor()], part="real")])


def _nearest(node: OnnxNode, builder: Builder, axes: list[_Axis], coordinates: str, rounding: str) -> None:
    """A Resize where the positions are floor(i n / m), else chosen positions."""
    chosen = {index: _positions(axis, coordinates, rounding) for index, axis in enumerate(axes) if axis.scale != 1}
    plain = all(
        positions == [i * axes[index].inputs // axes[index].outputs for i in range(axes[index].outputs)]
        for index, positions in chosen.items()
    )
    if plain and len(axes) == 4 and 1 not in chosen:
        builder.layer(node, Resize((axes[2].outputs, axes[3].outputs)), [node.tensor()])
    else:
        take(node, builder, chosen)


def _positions(axis: _Axis, coordinates: str, rounding: str) -> list[int]:
    """The input position nearest to each output position, in exact arithmetic."""
    half, n, m, scale = Fraction(1, 2), axis.inputs, axis.outputs, axis.scale
    if coordinates == "align_corners":
        if m != n * scale:
            raise Unsupported("its scale differs from the ratio of its sizes", "give the sizes of the result")
        step, start = (Fraction(n - 1, m - 1) if m > 1 else Fraction(0)), Fraction(0)
    elif coordinates == "asymmetric":
        step, start = 1 / scale, Fraction(0)
    elif coordinates == "tf_half_pixel_for_nn":
        step, start = 1 / scale, half / scale
    elif coordinates == "half_pixel" or (coordinates == "pytorch_half_pixel" and m > 1):
        step, start = 1 / scale, half / scale - half
    elif coordinates == "pytorch_half_pixel":
        step, start = Fraction(0), Fraction(0)
    elif coordinates == "half_pixel_symmetric":
        offset = Fraction(n, 2) * (1 - m / (n * scale))
        step, start = 1 / scale, offset + half / scale - half
    else:
        raise Unsupported(f"coordinate_transformation_mode={coordinates} is not supported")
    rules = {
        "floor": floor,
        "ceil": ceil,
        "round_prefer_floor": lambda x: ceil(x - half),
        "round_prefer_ceil": lambda x: floor(x + half),
    }
    if rounding == FIRST_ROUNDING:
        rounding = "ceil" if scale < 1 else "floor"
    if rounding not in rules:
        raise Unsupported(f"nearest_mode={rounding} is not supported")
    return [min(max(rules[rounding](start + i * step), 0), n - 1) for i in range(m)]
