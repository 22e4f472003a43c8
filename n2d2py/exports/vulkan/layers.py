"""The shader of each operator: packed weights, specialization constants, sizes of the grid."""

from __future__ import annotations

from collections.abc import Sequence

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
from n2d2py.graph.forms import Aligned, Moved, Rescaled, StoredSums, Table, Weighted
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


def _output(layer: GpuLayer, groups: int = 1) -> dict[str, int]:
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
        **layer.geometry("Residual", plane, layer.shape(index), size=False),
        "ResidualKind": layer.kind(kind),
        "ResidualAligned": is_aligned(plane) and (groups == 1 or channels(layer.output_shape) // groups % 4 == 0),
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


def _slices(quads: int, positions: int, words: int) -> int:
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
    slices = _slices(quads, positions, -(-inputs // 4))
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
        **_output(layer, groups),
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
    kernel = window(weights.shape[2:], op.stride, op.pads, op.dilation)
    taps = weights.shape[2] * weights.shape[3]
    if op.is_depthwise(layer.node) and layer.node.residual is None and taps <= _EXACT_TAPS:
        return _depthwise(layer, weights[:, 0], kernel)
    return _products(layer, weights, layer.plane(0), layer.shape(0), kernel, op.groups)


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
        **_output(layer),
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
        **_output(layer),
        **window(op.kernel, op.stride, op.pads),
        **limits,
        "Mean": mean,
        "PerCount": mean and layer.node.rescaling.count > 1,
    }
    places = (source.offset, 0, layer.output_plane.offset)
    found = parameters(layer.node.rescale if mean else None)
    return [Dispatch("pool", constants, quads_of(shape), positions_of(shape), places, parameters=found)]


# ---- single elements -----------------------------------------------------------------------------
_OPERATIONS = {"Sum": 0, "Max": 1, "Min": 2, "Prod": 3}
_TABLE, _COPY = 4, 5


def _operand(layer: GpuLayer, index: int, number: int, zero: int = 0, multiplier: int = 1) -> dict[str, int]:
    """The constants of the operand that is input `index`."""
    plane = layer.plane(index)
    return {
        **layer.geometry("In", plane, layer.shape(index), str(number)),
        f"InKind{number}": layer.kind(layer.inputs[index]),
        f"InAligned{number}": is_aligned(plane),
        f"InZero{number}": zero,
        f"M{number}": multiplier,
    }


def _elements(
    layer: GpuLayer,
    operation: int,
    constants: dict[str, int],
    found: np.ndarray,
    second: int = 0,
    table: np.ndarray | None = None,
) -> Dispatch:
    """A dispatch over all elements of the output."""
    shape = layer.output_shape
    places = (layer.plane(0).offset, second, layer.output_plane.offset)
    values = {"Operation": operation, "Channels": channels(shape), **_output(layer), **constants}
    weights = np.zeros(0, np.int32) if table is None else table
    return Dispatch("elemwise", values, quads_of(shape), positions_of(shape), places, weights=weights, parameters=found)


@vulkan("ElemWise")
def elemwise(layer: GpuLayer) -> Sequence[Dispatch]:
    """Sum, product, largest and smallest of two tensors."""
    op, form, shape = layer.op, layer.node.form, layer.output_shape
    if op.operation not in _OPERATIONS or len(layer.inputs) != 2 or not isinstance(form, Aligned):
        raise NoShader(f"there is no shader for {op.operation} of {len(layer.inputs)} tensors in this arithmetic")
    for index in range(2):
        sizes = (height(layer.shape(index)), width(layer.shape(index)))
        if channels(layer.shape(index)) != channels(shape) or sizes not in ((1, 1), (height(shape), width(shape))):
            raise NoShader("an operand is repeated along channels or one axis")
    if layer.node.rescaling.count > 1:
        raise NoShader("its rescaling has a factor for each channel")
    multipliers = [int(m) for m in form.multipliers]
    constants = {"Offset": int(form.offset[0]) if op.operation == "Sum" else 0}
    for index in range(2):
        constants |= _operand(layer, index, index, layer.inputs[index].zero_point, multipliers[index])
    found = parameters(layer.node.rescale)
    return [_elements(layer, _OPERATIONS[op.operation], constants, found, layer.plane(1).offset)]


@vulkan("Activation")
def activation(layer: GpuLayer) -> Sequence[Dispatch]:
    """A table of bytes."""
    form = layer.node.form
    if not isinstance(form, Table) or layer.inputs[0].bytes != 1:
        raise NoShader("its function is not a table of bytes")
    constants = {**_operand(layer, 0, 0), "TableLow": layer.inputs[0].qmin}
    return [_elements(layer, _TABLE, constants, parameters(None), table=form.table.astype(np.int32))]


@vulkan("Resize", "Identity", "Dropout")
def resize(layer: GpuLayer) -> Sequence[Dispatch]:
    """The nearest position, unchanged."""
    if getattr(layer.op, "mode", "Nearest") != "Nearest" or not isinstance(layer.node.form, Moved):
        raise NoShader("there is no shader for bilinear interpolation")
    low, high = layer.node.clamp or type_limits(layer.output)
    limits = {"Low": low, "High": high, "Zero": 0}
    return [_elements(layer, _COPY, {**_operand(layer, 0, 0), **limits}, parameters(None))]


@vulkan("Concat")
def concat(layer: GpuLayer) -> Sequence[Dispatch]:
    """A copy of each input to its channels, rescaled where its type differs."""
    if not layer.op.concatenates_pixels(layer.output_shape):
        raise NoShader("it joins along another axis than channels")
    size, rescale, target, made, first = layer.output.bytes, layer.node.rescale, layer.output_plane, [], 0
    for index in range(len(layer.inputs)):
        shape = layer.shape(index)
        zero = layer.inputs[index].zero_point if rescale else 0
        low, high = layer.node.clamp or type_limits(layer.output)
        own = layer.output.zero_point if rescale else 0
        limits = {"Low": low - own, "High": high - own, "Zero": own}
        constants = {
            "Operation": _COPY,
            **_output(layer),
            **limits,
            **_operand(layer, index, 0, zero),
            "Channels": channels(shape),
            "OutAligned": is_aligned(target) and first * size % 4 == 0,
        }
        places = (layer.plane(index).offset, 0, target.offset + first * size)
        found = parameters(rescale.only(index) if rescale else None)
        made.append(Dispatch("elemwise", constants, quads_of(shape), positions_of(shape), places, parameters=found))
        first += channels(shape)
    return made
