"""Resampling along one axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, prod
from typing import ClassVar

import numpy as np

from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.layer import Layer, cpp
from n2d2py.frontend.onnx.contract import Unsupported
from n2d2py.frontend.onnx.tensors import Value, check_lines
from n2d2py.graph import Node
from n2d2py.graph.shapes import MAX_STEP, Shape
from n2d2py.memory.access import memory_access, whole
from n2d2py.operators.arrays.base import ArrayOp
from n2d2py.operators.arrays.emitting import flat, shaped, typed
from n2d2py.operators.arrays.lowering import kernel_call
from n2d2py.operators.arrays.values import Arrays, onnx_array
from n2d2py.operators.base import register
from n2d2py.operators.resize.onnx import meant_scale
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@register
@dataclass(frozen=True)
class ArrayInterpolate(ArrayOp):
    """y[o, j, i] = sum over t of weights[j][t] * x[o, positions[j][t], i] for x of (outer, size, inner).

    Attributes:
        positions: for each result line the lines that it is made of, each result with the same number of them.
        weights: their weights.
    """

    outer: int
    size: int
    inner: int
    positions: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]
    result: str = ""
    kind: ClassVar[str] = "ArrayInterpolate"

    def operand_sizes(self) -> tuple[int, ...]:
        return (self.outer * self.size * self.inner,)

    def output_size(self) -> int:
        return self.outer * len(self.positions) * self.inner

    def macs(self, inputs: list[Shape], output: Shape, node) -> int:
        return self.output_size() * len(self.positions[0])

    def run(self, inputs: list[np.ndarray], node) -> list[np.ndarray]:
        x = inputs[0].reshape(-1, self.outer, self.size, self.inner)
        wide = x.astype(np.float64)
        total = np.zeros((len(x), self.outer, len(self.positions), self.inner))
        weights = np.asarray(self.weights, x.dtype).astype(np.float64)
        for tap in range(len(self.positions[0])):
            lines = [line[tap] for line in self.positions]
            total += wide[:, :, lines] * weights[:, tap][None, None, :, None]
        return self.typed(total, inputs)


memory_access("ArrayInterpolate")(whole)


# ---- ONNX import ---------------------------------------------------------------------------------
# Resize and Upsample along any axes: nearest, linear and cubic, with or without a filter against aliasing.
_MOST_LINES = 1 << 16
"""Positions along an axis that have weights of their own."""


@onnx_array("Resize", "Upsample")
def _resize(a: Arrays) -> None:
    x, old = a.value(0), a.node.opset < 11
    rank = len(x.dims)
    chosen = [a.node.axis_of(axis, rank) for axis in a.node.attribute("axes") or range(rank)]
    sizes, scales = _wanted(a, x, chosen, old)
    check_lines(sizes)
    coordinates = "asymmetric" if old else a.node.attribute("coordinate_transformation_mode", "half_pixel")
    mode = a.node.attribute("mode", "nearest")
    roi = _region(a, coordinates, rank, chosen)
    extrapolation = float(a.node.attribute("extrapolation_value", 0.0))
    outside = None
    for axis in range(rank):
        if sizes[axis] == x.dims[axis] and scales[axis] == 1.0 and coordinates != "tf_crop_and_resize":
            continue
        if coordinates == "tf_crop_and_resize" and axis not in chosen:
            continue
        if mode != "nearest" and sizes[axis] > _MOST_LINES:
            raise Unsupported(f"its output of {sizes[axis]:,} rows or columns exceeds the limit of {_MOST_LINES:,}")
        at = _coordinates(x.dims[axis], sizes[axis], scales[axis], coordinates, roi[axis])
        first = "ceil" if a.node.type == "Resize" and scales[axis] < 1 else "floor"  # as resize.onnx.FIRST_ROUNDING
        rounding = first if old else a.node.attribute("nearest_mode", "round_prefer_floor")
        lines = _lines(a, at, x.dims[axis], scales[axis], mode, rounding)
        if coordinates == "tf_crop_and_resize":
            beyond = (at < 0) | (at > x.dims[axis] - 1)
            if beyond.any():
                shape = [1] * rank
                shape[axis] = -1
                outside = beyond.reshape(shape) if outside is None else outside | beyond.reshape(shape)
        x = _along(a, x, axis, lines)
    if outside is not None:
        x = a.map("Where", a.const(np.broadcast_to(outside, x.dims).copy()), a.const(extrapolation, x), x, result=x.kind)
    a.bind(x)


def _wanted(a: Arrays, x: Value, chosen: list[int], old: bool) -> tuple[list[int], list[float]]:
    """Size and scale of every axis."""
    sizes, scales = list(x.dims), [1.0] * len(x.dims)
    sizes_at, scales_at = (None, 1) if old else (3, 2)
    if sizes_at is not None and a.has(sizes_at) and a.node.constant(sizes_at, "sizes").size:
        given = [int(v) for v in a.node.constant(sizes_at, "sizes").reshape(-1)]
        if len(given) != len(chosen):
            raise Unsupported(f"it has {len(given)} sizes for {len(chosen)} axes")
        if any(size < 1 for size in given):
            raise Unsupported(f"its sizes {given} are not all above 0")
        policy = a.node.attribute("keep_aspect_ratio_policy", "stretch")
        ratios = [size / x.dims[axis] for axis, size in zip(chosen, given, strict=True)]
        for axis, size, ratio in zip(chosen, given, ratios, strict=True):
            if policy == "stretch":
                sizes[axis], scales[axis] = size, ratio
            else:
                scales[axis] = min(ratios) if policy == "not_larger" else max(ratios)
                sizes[axis] = floor(scales[axis] * x.dims[axis] + 0.5)
        return sizes, scales
    given = a.node.attribute("scales")
    given = a.node.constant(scales_at, "scales").reshape(-1).tolist() if given is None else given
    if len(given) != len(chosen):
        raise Unsupported(f"it has {len(given)} scales for {len(chosen)} axes")
    if not all(0 < scale <= MAX_STEP for scale in given):
        raise Unsupported("one of its scales is not positive, or too large")
    for axis, scale in zip(chosen, given, strict=True):
        scales[axis] = float(meant_scale(scale))
        exact = x.dims[axis] * scales[axis]
        # a float32 scale such as 1/3 stands for the ratio of two sizes
        near = abs(exact - round(exact)) < 1e-6 * exact
        sizes[axis] = round(exact) if near else floor(exact)
        scales[axis] = sizes[axis] / x.dims[axis] if near else scales[axis]
    return sizes, scales


def _region(a: Arrays, coordinates: str, rank: int, chosen: list[int]) -> list[tuple[float, float]]:
    region = [(0.0, 1.0)] * rank
    if coordinates == "tf_crop_and_resize":
        values = a.node.constant(1, "region").reshape(-1).tolist()
        for index, axis in enumerate(chosen):
            region[axis] = (values[index], values[index + len(chosen)])
    return region


def _coordinates(n: int, m: int, scale: float, mode: str, region: tuple[float, float]) -> np.ndarray:
    """Where each result line lies in the input."""
    i = np.arange(m, dtype=np.float64)
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        length = n * scale
        return i * (n - 1) / (length - 1) if length != 1 else i
    if mode == "half_pixel":
        return (i + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if m > 1 else i
    if mode == "half_pixel_symmetric":
        return n / 2 * (1 - m / (n * scale)) + (i + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        first, last = region
        if m > 1:
            return first * (n - 1) + i * (last - first) * (n - 1) / (m - 1)
        return np.full(1, 0.5 * (first + last) * (n - 1))
    raise Unsupported(f"coordinate_transformation_mode={mode} is not supported")


def _lines(a: Arrays, at: np.ndarray, n: int, scale: float, mode: str, rounding: str) -> list[tuple[list[int], list[float]]]:
    """For each result line the input lines and their weights."""
    if mode == "nearest":
        rules = {
            "floor": floor,
            "ceil": ceil,
            "round_prefer_floor": lambda v: ceil(v - 0.5),
            "round_prefer_ceil": lambda v: floor(v + 0.5),
        }
        if rounding not in rules:
            raise Unsupported(f"nearest_mode={rounding} is not supported")
        return [([min(max(rules[rounding](round(float(v), 10)), 0), n - 1)], [1.0]) for v in at]
    if mode not in ("linear", "cubic"):
        raise Unsupported(f"mode={mode} is not supported")
    antialias = bool(a.node.attribute("antialias", 0)) and scale < 1
    factor = min(scale, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / factor
    coefficient = float(a.node.attribute("cubic_coeff_a", -0.75))
    leaves_out = bool(a.node.attribute("exclude_outside", 0))
    result = []
    for v in at:
        base = floor(v)
        taps = (
            range(ceil(v - reach), floor(v + reach) + 1)
            if antialias
            else (range(base, base + 2) if mode == "linear" else range(base - 1, base + 3))
        )
        weights = [_kernel((t - v) * factor, mode, coefficient) for t in taps]
        if leaves_out:
            weights = [w if 0 <= t < n else 0.0 for t, w in zip(taps, weights, strict=True)]
        total = sum(weights)
        result.append(
            ([min(max(t, 0), n - 1) for t in taps], [w / total for w in weights] if leaves_out or antialias else weights)
        )
    return result


def _kernel(d: float, mode: str, a: float) -> float:
    d = abs(d)
    if mode == "linear":
        return max(0.0, 1 - d)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return (((d - 5) * d + 8) * d - 4) * a if d < 2 else 0.0


def _along(a: Arrays, x: Value, axis: int, lines: list[tuple[list[int], list[float]]]) -> Value:
    """The axis resampled."""
    if all(len(taps) == 1 for taps, _ in lines):
        return a.axes(x, {axis: [taps[0] for taps, _ in lines]})
    most = max(len(taps) for taps, _ in lines)
    positions = tuple(tuple(taps + [taps[-1]] * (most - len(taps))) for taps, _ in lines)
    weights = tuple(tuple(w + [0.0] * (most - len(w))) for _, w in lines)
    dims = (*x.dims[:axis], len(lines), *x.dims[axis + 1 :])
    op = ArrayInterpolate(prod(x.dims[:axis]), x.dims[axis], prod(x.dims[axis + 1 :]), positions, weights, x.kind)
    return a.add(op, [a.tensor(x)], dims, label="resampled")


# ---- C++ -----------------------------------------------------------------------------------------
@cpp("ArrayInterpolate")
def _lower(layer: Layer) -> LayerCode:
    """The C++ of a resampling along an axis."""
    op = layer.op
    positions = layer.array("positions", np.array(op.positions), "std::int32_t")
    weights = layer.array("weights", np.array(op.weights).astype(layer.output.dtype), layer.output.cpp)
    sizes = (op.outer, op.size, op.inner, len(op.positions), len(op.positions[0]))
    operands = (f"n2d2::elements<{layer.input_planes[0]}>(in0)", positions, weights)
    return kernel_call(layer, "array_norm", "arrayInterpolate", sizes, operands)


# ---- ONNX, as ONNX Runtime computes it -----------------------------------------------------------
@onnx_emitter("ArrayInterpolate")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    matrix = np.zeros((1, 1, len(op.positions), op.size))
    for line, (positions, weights) in enumerate(zip(op.positions, op.weights, strict=True)):
        np.add.at(matrix[0, 0, line], list(positions), weights)
    x = shaped(writer, node.inputs[0], (op.outer, op.size, op.inner))
    flat(writer, writer.emit("MatMul", [typed(writer, matrix, ""), x]), output)
