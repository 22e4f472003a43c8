"""Shaders of windows: convolutions, fully connected layers, pools; packed weights, specialization constants, sizes of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import gcd

import numpy as np

from n2d2py.arithmetic import round_up
from n2d2py.contracts.cpp import window, zero_padded
from n2d2py.graph import Rescaled, Shape, StoredSums, Weighted, channels, height, width
from n2d2py.memory.plan import Plane
from n2d2py_vulkan.dispatch import Dispatch, GpuLayer, NoShader, fixed_point, parameters, positions_of, quads_of, vulkan

_EXACT_TAPS = 512
"""Taps of 8-bit multiplications whose sum is exact in float32."""
_PIXELS = 4
_SLICES = 16
"""Most invocations that share the sums of an output."""
_ENOUGH = 4096
"""Invocations of a dispatch from which on sums are not shared."""


def _bytes(layer: GpuLayer) -> np.ndarray:
    weights = layer.node.form_as(Weighted).weights
    if weights.min() < -128 or weights.max() > 127:
        raise NoShader("its weights have more than 8 bits")
    if layer.inputs[0].bytes != 1:
        raise NoShader(f"its input has {layer.inputs[0].bits} bits")
    return weights.astype(np.int8)


def _residual(layer: GpuLayer) -> dict[str, int]:
    added = layer.node.residual
    if added is None:
        return {}
    index = len(layer.node.inputs) - 1
    own_zero = 0 if layer.node.zero_in_bias else added.type.zero_point
    multipliers, shifts = fixed_point(added.rescale, 1)
    zero = layer.output.zero_point
    return {
        "Residual": 1,
        **layer.limits(own_zero),
        **layer.operand(index, "1"),
        "OwnMultiplier": added.multiplier,
        "ResidualMultiplier": added.residual_multiplier,
        "ResidualOffset": added.stored_offset(layer.inputs[index]),
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
    grouped = weights.reshape(groups, each, inputs, lines, columns)
    filled = zero_padded(grouped, groups, round_up(each, 4), quads * 4, lines, columns)
    filled = filled.reshape(groups, -1, 4, quads, 4, lines, columns).transpose(0, 1, 5, 6, 3, 2, 4)
    return np.ascontiguousarray(filled).view("<i4").reshape(-1)


def _channel_parameters(layer: GpuLayer, weights: np.ndarray, groups: int) -> np.ndarray:
    """Return the parameters of the outputs, those of each group filled up to quads."""
    addend = weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64) * 128
    rows = parameters(layer.node.rescale, layer.node.form_as(Weighted).bias, addend)
    each = len(weights) // groups
    return zero_padded(rows.reshape(groups, each, 4), groups, round_up(each, 4), 4).reshape(-1, 4)


def slices_of(quads: int, positions: int, words: int) -> int:
    """Return the invocations that share the sums of an output, where there are few outputs."""
    slices = 1
    while slices < _SLICES and quads * positions * slices < _ENOUGH and words // (2 * slices) >= 8:
        slices *= 2
    return slices


def _products(layer: GpuLayer, weights: np.ndarray, kernel: dict[str, int], groups: int = 1) -> list[Dispatch]:
    """Return the sums of products of `weights` (O, C / groups, KH, KW) with windows of the input."""
    kind, inputs, outputs = layer.inputs[0], weights.shape[1], len(weights) // groups
    quads, positions = groups * -(-outputs // 4), positions_of(layer.output_shape)
    slices = slices_of(quads, positions, -(-inputs // 4))
    pixels = 1 if slices > 1 or positions < _PIXELS else _PIXELS
    constants = {
        "Slices": slices,
        "Groups": groups,
        "GroupOutputs": outputs,
        "GroupInputs": inputs,
        "InputQuads": -(-inputs // 4),
        **layer.operand(),
        "PadWord": int(np.full(4, kind.zero_point).astype(kind.dtype).view("<i4")[0]),
        **layer.result(),
        **kernel,
        **_residual(layer),
    }
    for key, size in {"InAligned": inputs, "OutAligned": outputs, "InAligned1": outputs}.items():
        if groups > 1 and size % 4 and key in constants:
            constants[key] = False
    places = layer.places(0, len(layer.node.inputs) - 1)
    packed, rescale = packed_weights(weights, groups), _channel_parameters(layer, weights, groups)
    return [Dispatch("conv", constants, quads, -(-positions // pixels), places, pixels, slices, packed, rescale)]


@vulkan("Conv")
def convolution(layer: GpuLayer) -> Sequence[Dispatch]:
    """Dense, grouped and depthwise convolutions."""
    weights = _bytes(layer)
    op = layer.op
    return _convolved(layer, weights, window(weights.shape[2:], op.stride, op.pads, op.dilation))


def _convolved(layer: GpuLayer, weights: np.ndarray, kernel: dict[str, int]) -> list[Dispatch]:
    taps = weights.shape[2] * weights.shape[3]
    if layer.op.is_depthwise(layer.node) and layer.node.residual is None and taps <= _EXACT_TAPS:
        return _depthwise(layer, weights[:, 0], kernel)
    return _products(layer, weights, kernel, layer.op.groups)


@vulkan("Deconv")
def transposed_convolution(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return a convolution for each phase of the stride, with the taps that reach it."""
    weights = _bytes(layer)
    op, shape, bias, steps = layer.op, layer.output_shape, layer.node.form_as(Weighted).bias, []
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
        steps += _convolved(replace(layer, node=node, views=views), part, kernel)
    return steps


def _phases(kernel: int, stride: int, pad: int, dilation: int, size: int) -> list[tuple[int, list[int], int, int]]:
    """(position, taps in the order of the inputs, pad and dilation of their convolution) of the phases of an axis."""
    phases = []
    for position in range(min(stride, size)):
        taps = [tap for tap in range(kernel) if (position + pad - tap * dilation) % stride == 0][::-1]
        first = (position + pad - taps[0] * dilation) // stride if taps else 0
        phases.append((position, taps, -first, dilation // gcd(stride, dilation)))
    return phases


def _phase(plane: Plane, shape: Shape, position: tuple[int, int], stride: tuple[int, int]) -> tuple[Plane, Shape]:
    """Return the positions of a tensor from `position` on, `stride` apart."""
    count, length = (-(-(size - first) // step) for size, first, step in zip(shape[2:], position, stride, strict=True))
    part = replace(
        plane,
        offset=plane.offset + position[0] * plane.line_bytes + position[1] * plane.stride,
        stride=plane.stride * stride[1],
        pitch=plane.line_bytes * stride[0],
        length=length,
        count=count,
    )
    return part, (*shape[:2], count, length)


def _depthwise(layer: GpuLayer, weights: np.ndarray, kernel: dict[str, int]) -> list[Dispatch]:
    count, lines, columns = weights.shape
    quads, shape = -(-count // 4), layer.output_shape
    filled = zero_padded(weights, quads * 4, lines, columns)
    packed = np.ascontiguousarray(filled.reshape(quads, 4, lines, columns).transpose(2, 3, 0, 1)).view("<i4").reshape(-1)
    constants = {**layer.operand(zero=layer.inputs[0].zero_point), **layer.result(), **kernel}
    pixels = _PIXELS if width(shape) >= _PIXELS else 1
    blocks = height(shape) * -(-width(shape) // pixels)
    rescale = _channel_parameters(layer, weights, 1)
    return [Dispatch("depthwise", constants, quads, blocks, layer.places(), pixels, 1, packed, rescale)]


@vulkan("Fc")
def fully_connected(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return a convolution whose window is the whole input; of one position where the lines of the input follow each other."""
    weights = _bytes(layer)
    shape, source = layer.shapes[0], layer.planes[0]
    size = (channels(shape), height(shape), width(shape))
    images = weights.reshape(len(weights), *size)
    if source.line_bytes != source.stride * size[2]:
        return _products(layer, images, {"KernelHeight": size[1], "KernelWidth": size[2]})
    rows = zero_padded(images.transpose(0, 2, 3, 1), len(weights), size[1], size[2], source.stride)
    vector = replace(layer, views={layer.node.inputs[0]: (source, (1, rows[0].size, 1, 1))})
    return _products(vector, rows.reshape(len(weights), -1, 1, 1), {})


@vulkan("Pool")
def pool(layer: GpuLayer) -> Sequence[Dispatch]:
    """Maximum, and mean of integers."""
    op, form, mean = layer.op, layer.node.form, layer.op.mode == "Average"
    if mean and not isinstance(form, Rescaled):
        raise NoShader("its mean is computed in floating point")
    zero = layer.inputs[0].zero_point if mean else 0
    limits = {} if mean else layer.limits(0)
    if isinstance(form, StoredSums):
        zero = int(form.origin[0])
        limits = layer.limits(zero)
    constants = {
        **layer.operand(zero=zero),
        **layer.result(),
        **window(op.kernel, op.stride, op.pads),
        **limits,
        "Mean": mean,
        "PerCount": mean and layer.node.rescaling.count > 1,
    }
    rescale, shape = parameters(layer.node.rescale if mean else None), layer.output_shape
    return [Dispatch("pool", constants, quads_of(shape), positions_of(shape), layer.places(), parameters=rescale)]
