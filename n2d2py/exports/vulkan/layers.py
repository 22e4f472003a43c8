"""Shaders of windows: convolutions, fully connected layers, pools; packed weights, specialization constants, sizes of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import gcd

import numpy as np

from n2d2py.exports.cpp.layer import window
from n2d2py.exports.vulkan.dispatch import (
    Dispatch,
    GpuLayer,
    NoShader,
    fixed_point,
    is_aligned,
    parameters,
    positions_of,
    quads_of,
    type_limits,
    vulkan,
)
from n2d2py.graph.forms import Rescaled, StoredSums, Weighted
from n2d2py.graph.shapes import Shape, channels, height, width
from n2d2py.memory.plan import Plane

_EXACT_TAPS = 512
"""Taps of 8-bit multiplications whose sum is exact in float32."""
_PIXELS = 4
_SLICES = 16
"""Most invocations that share the sums of an output."""
_ENOUGH = 4096
"""Invocations of a dispatch from which on sums are not shared."""


# ---- products ------------------------------------------------------------------------------------
def _bytes(layer: GpuLayer) -> tuple[np.ndarray, int]:
    """Weights of bytes, and the kind of the input."""
    form = layer.node.form_as(Weighted)
    if form.weights.min() < -128 or form.weights.max() > 127:
        raise NoShader("its weights have more than 8 bits")
    if layer.inputs[0].bytes != 1:
        raise NoShader(f"its input has {layer.inputs[0].bits} bits")
    return form.weights.astype(np.int8), layer.kind(layer.inputs[0])


def output_constants(layer: GpuLayer, groups: int = 1) -> dict[str, int]:
    plane, shape = layer.output_plane, layer.output_shape
    whole = groups == 1 or channels(shape) // groups % 4 == 0
    return {
        **layer.geometry("Out", plane, shape),
        "OutKind": layer.kind(layer.output, 4),
        "OutAligned": is_aligned(plane) and whole,
        **layer.limits(),
    }


def _residual(layer: GpuLayer) -> dict[str, int]:
    """The constants of a sum with the last input."""
    added = layer.node.residual
    if added is None:
        return {}
    index = len(layer.node.inputs) - 1
    kind, plane, groups = layer.inputs[index], layer.plane(index), getattr(layer.op, "groups", 1)
    low, high = layer.node.limits
    own_zero = 0 if layer.node.zero_in_bias else added.type.zero_point
    multipliers, shifts = fixed_point(added.rescale, 1)
    zero = layer.output.zero_point
    return {
        "Residual": 1,
        "Low": low - own_zero,
        "High": high - own_zero,
        "Zero": own_zero,
        **layer.geometry("In", plane, layer.shape(index), "1", size=False),
        "InKind1": layer.kind(kind),
        "InAligned1": is_aligned(plane) and (groups == 1 or channels(layer.output_shape) // groups % 4 == 0),
        "OwnMultiplier": added.multiplier,
        "ResidualMultiplier": added.residual_multiplier,
        "ResidualOffset": added.stored_offset(kind),
        "SumMultiplier": int(multipliers[0]),
        "SumShift": int(shifts[0]),
        "SumLow": added.clamp[0] - zero,
        "SumHigh": added.clamp[1] - zero,
        "SumZero": zero,
    }


def packed_weights(weights: np.ndarray, groups: int) -> np.ndarray:
    """int8 (O, C / groups, KH, KW) as int32 words [group, quad of outputs, line, column, quad of inputs, output]: four inputs each."""
    outputs, inputs, lines, columns = weights.shape
    each, quads = outputs // groups, -(-inputs // 4)
    filled = np.zeros((groups, -(-each // 4) * 4, quads * 4, lines, columns), np.int8)
    filled[:, :each, :inputs] = weights.reshape(groups, each, inputs, lines, columns)
    filled = filled.reshape(groups, -1, 4, quads, 4, lines, columns).transpose(0, 1, 5, 6, 3, 2, 4)
    return np.ascontiguousarray(filled).view("<i4").reshape(-1)


def _channel_parameters(layer: GpuLayer, weights: np.ndarray, groups: int) -> np.ndarray:
    """The parameters of the outputs, those of each group filled up to quads."""
    addend = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64) * 128
    found = parameters(layer.node.rescale, layer.node.form_as(Weighted).bias, addend)
    each = len(weights) // groups
    filled = np.zeros((groups, -(-each // 4) * 4, 4), np.int32)
    filled[:, :each] = found.reshape(groups, each, 4)
    return filled.reshape(-1, 4)


def slices_of(quads: int, positions: int, words: int) -> int:
    """Invocations that share the sums of an output, where there are few outputs."""
    slices = 1
    while slices < _SLICES and quads * positions * slices < _ENOUGH and words // (2 * slices) >= 8:
        slices *= 2
    return slices


def _products(
    layer: GpuLayer, weights: np.ndarray, source: Plane, shape: Shape, kernel: dict[str, int], groups: int = 1
) -> list[Dispatch]:
    """Sums of products of `weights` (O, C / groups, KH, KW) with windows of an input of `shape`."""
    kind, zero = layer.inputs[0], layer.inputs[0].zero_point
    inputs, quads = weights.shape[1], groups * -(-(len(weights) // groups) // 4)
    positions = positions_of(layer.output_shape)
    slices = slices_of(quads, positions, -(-inputs // 4))
    pixels = 1 if slices > 1 or positions < _PIXELS else _PIXELS
    constants = {
        "Slices": slices,
        "Groups": groups,
        "GroupOutputs": len(weights) // groups,
        "GroupInputs": inputs,
        "InputQuads": -(-inputs // 4),
        **layer.geometry("In", source, shape),
        "InKind": layer.kind(kind),
        "InAligned": is_aligned(source) and (groups == 1 or inputs % 4 == 0),
        "PadWord": int(np.full(4, zero).astype(kind.dtype).view("<i4")[0]),
        **output_constants(layer, groups),
        **kernel,
        **_residual(layer),
    }
    second = layer.plane(len(layer.node.inputs) - 1).offset
    places = (source.offset, second, layer.output_plane.offset)
    packed, found = packed_weights(weights, groups), _channel_parameters(layer, weights, groups)
    return [Dispatch("conv", constants, quads, -(-positions // pixels), places, pixels, slices, packed, found)]


@vulkan("Conv")
def convolution(layer: GpuLayer) -> Sequence[Dispatch]:
    """Dense, grouped and depthwise convolutions."""
    weights, _ = _bytes(layer)
    op = layer.op
    return _convolved(layer, weights, window(weights.shape[2:], op.stride, op.pads, op.dilation))


def _convolved(layer: GpuLayer, weights: np.ndarray, kernel: dict[str, int]) -> list[Dispatch]:
    taps = weights.shape[2] * weights.shape[3]
    if layer.op.is_depthwise(layer.node) and layer.node.residual is None and taps <= _EXACT_TAPS:
        return _depthwise(layer, weights[:, 0], kernel)
    return _products(layer, weights, layer.plane(0), layer.shape(0), kernel, layer.op.groups)


@vulkan("Deconv")
def transposed_convolution(layer: GpuLayer) -> Sequence[Dispatch]:
    """A convolution for each phase of the stride, with the taps that reach it."""
    weights, _ = _bytes(layer)
    op, shape, bias, made = layer.op, layer.output_shape, layer.node.form_as(Weighted).bias, []
    lines, columns = (
        _phases(*each) for each in zip(weights.shape[2:], op.stride, op.pads[:2], op.dilation, shape[2:], strict=True)
    )
    for (y, rows, top, down), (x, pixels, left, right) in product(lines, columns):
        part = weights[:, :, rows][..., pixels] if rows and pixels else np.zeros((*weights.shape[:2], 1, 1), np.int8)
        moved = layer.inputs[0].zero_point * part.reshape(len(part), -1).sum(axis=1, dtype=np.int64)
        node = replace(layer.node, form=Weighted(part, bias - moved))
        names = [layer.node.output, *([layer.node.inputs[-1]] if layer.node.residual else [])]
        views = {name: _phase(layer.plan.planes[name], shape, (y, x), op.stride) for name in names}
        kernel = window(part.shape[2:], (1, 1), (top, left), (down, right))
        made += _convolved(replace(layer, node=node, views=views), part, kernel)
    return made


def _phases(kernel: int, stride: int, pad: int, dilation: int, size: int) -> list[tuple[int, list[int], int, int]]:
    """(position, taps in the order of the inputs, pad and dilation of their convolution) of the phases of an axis."""
    made = []
    for position in range(min(stride, size)):
        taps = [tap for tap in range(kernel) if (position + pad - tap * dilation) % stride == 0][::-1]
        first = (position + pad - taps[0] * dilation) // stride if taps else 0
        made.append((position, taps, -first, dilation // gcd(stride, dilation)))
    return made


def _phase(plane: Plane, shape: Shape, at: tuple[int, int], stride: tuple[int, int]) -> tuple[Plane, Shape]:
    """The positions of a tensor from `at` on, `stride` apart."""
    count, length = (-(-(size - first) // step) for size, first, step in zip(shape[2:], at, stride, strict=True))
    part = replace(
        plane,
        offset=plane.offset + at[0] * plane.line_bytes + at[1] * plane.stride,
        stride=plane.stride * stride[1],
        pitch=plane.line_bytes * stride[0],
        length=length,
        count=count,
    )
    return part, (*shape[:2], count, length)


def _depthwise(layer: GpuLayer, weights: np.ndarray, kernel: dict[str, int]) -> list[Dispatch]:
    """Weights (C, KH, KW)."""
    count, lines, columns = weights.shape
    quads, shape = -(-count // 4), layer.output_shape
    filled = np.zeros((quads * 4, lines, columns), np.int8)
    filled[:count] = weights
    packed = np.ascontiguousarray(filled.reshape(quads, 4, lines, columns).transpose(2, 3, 0, 1)).view("<i4").reshape(-1)
    constants = {
        "Channels": count,
        **layer.geometry("In", layer.plane(0), layer.shape(0)),
        "InKind": layer.kind(layer.inputs[0]),
        "InAligned": is_aligned(layer.plane(0)),
        "InZero": layer.inputs[0].zero_point,
        **output_constants(layer),
        **kernel,
    }
    pixels = _PIXELS if width(shape) >= _PIXELS else 1
    blocks = height(shape) * -(-width(shape) // pixels)
    places = (layer.plane(0).offset, 0, layer.output_plane.offset)
    found = _channel_parameters(layer, weights, 1)
    return [Dispatch("depthwise", constants, quads, blocks, places, pixels, 1, packed, found)]


@vulkan("Fc")
def fully_connected(layer: GpuLayer) -> Sequence[Dispatch]:
    """A convolution whose window is the whole input; of one position where the lines of the input follow each other."""
    weights, _ = _bytes(layer)
    shape, source = layer.shape(0), layer.plane(0)
    size = (channels(shape), height(shape), width(shape))
    images = weights.reshape(len(weights), *size)
    if source.line_bytes != source.stride * size[2]:
        kernel = {"KernelHeight": size[1], "KernelWidth": size[2]}
        return _products(layer, images, source, shape, kernel)
    rows = np.zeros((len(weights), size[1], size[2], source.stride), np.int8)
    rows[..., : size[0]] = images.transpose(0, 2, 3, 1)
    return _products(layer, rows.reshape(len(weights), -1, 1, 1), source, (1, rows[0].size, 1, 1), {})


# ---- windows of single channels ------------------------------------------------------------------
@vulkan("Pool")
def pool(layer: GpuLayer) -> Sequence[Dispatch]:
    """Maximum, and mean of integers."""
    op, form, mean = layer.op, layer.node.form, layer.op.mode == "Average"
    if mean and not isinstance(form, Rescaled):
        raise NoShader("its mean is computed in floating point")
    zero, limits = layer.inputs[0].zero_point if mean else 0, layer.limits()
    if not mean:
        low, high = layer.node.clamp or type_limits(layer.output)
        limits = {"Low": low, "High": high, "Zero": 0}
    elif isinstance(form, StoredSums):
        zero = int(form.origin[0])
        low, high = layer.node.limits
        limits = {"Low": low - zero, "High": high - zero, "Zero": zero}
    source, shape = layer.plane(0), layer.output_shape
    constants = {
        "Channels": channels(shape),
        **layer.geometry("In", source, layer.shape(0)),
        "InKind": layer.kind(layer.inputs[0]),
        "InAligned": is_aligned(source),
        "InZero": zero,
        **output_constants(layer),
        **window(op.kernel, op.stride, op.pads),
        **limits,
        "Mean": mean,
        "PerCount": mean and layer.node.rescaling.count > 1,
    }
    places = (source.offset, 0, layer.output_plane.offset)
    found = parameters(layer.node.rescale if mean else None)
    return [Dispatch("pool", constants, quads_of(shape), positions_of(shape), places, parameters=found)]
