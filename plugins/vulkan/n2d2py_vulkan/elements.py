"""Shaders of single elements: combined, looked up, interpolated, joined, moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from n2d2py.contracts.cpp.arrays import zero_padded
from n2d2py.graph import Shape, channels, elements, height, in_memory_order, width
from n2d2py.graph.forms import Aligned, Exponentials, MaskedExponentials, Moved, Normalized, Shifted, Table, Weighted
from n2d2py.memory.plan import Plane
from n2d2py_vulkan.dispatch import Dispatch, GpuLayer, NoShader, parameters, positions_of, quads_of, type_limits, vulkan
from n2d2py_vulkan.layers import slices_of

_OPERATIONS = {"Sum": 0, "Max": 1, "Min": 2, "Prod": 3}
_TABLE, _COPY, _GAIN, _MOVE = 4, 5, 6, 7
_NOWHERE = -(2**30)
"""The place of an element that is filled: its sum with any other is negative."""
_MOST_PLACES = 2**20
"""Places in the tables of a move."""


def words(value: int) -> tuple[int, int]:
    """Return the lower and the upper word of an integer of 64 bits, as int32."""
    low, high = np.array([value], "<i8").view("<i4").tolist()
    return low, high


def _elements(
    layer: GpuLayer,
    operation: int,
    constants: dict[str, int],
    rescale: np.ndarray,
    places: tuple[int, int, int] | None = None,
    table: np.ndarray | None = None,
) -> Dispatch:
    shape, values = layer.output_shape, {**layer.result(), **constants, "Operation": operation}
    weights = np.zeros(0, np.int32) if table is None else table.astype(np.int32)
    at = places or layer.places()
    return Dispatch("elemwise", values, quads_of(shape), positions_of(shape), at, weights=weights, parameters=rescale)


def _stored_limits(layer: GpuLayer) -> dict[str, int]:
    low, high = type_limits(layer.output)
    return {"Low": low, "High": high, "Zero": 0}


def _sum_constants(layer: GpuLayer, multipliers: Sequence[int], offset: int = 0) -> dict[str, int]:
    """M0, M1 and the offset of a sum, which is wide where its bound is. Raise NoShader for multipliers of more than 32 bits."""
    if max(map(abs, multipliers)) >= 2**31:
        raise NoShader("its multipliers have more than 32 bits")
    low, high = words(offset)
    return {"M0": multipliers[0], "M1": multipliers[1], "Offset": low, "OffsetHigh": high, "Wide": layer.node.bound >= 2**31}


@vulkan("ElemWise", is_wide=True)
def elemwise(layer: GpuLayer) -> Sequence[Dispatch]:
    """Sum, product, largest and smallest of two tensors."""
    op, form = layer.op, layer.node.form
    if op.operation not in _OPERATIONS or len(layer.inputs) != 2 or not isinstance(form, Aligned):
        raise NoShader(f"there is no shader for {op.operation} of {len(layer.inputs)} tensors in this arithmetic")
    if layer.node.rescaling.count > 1:
        raise NoShader("its rescaling has a factor for each channel")
    if layer.node.bound >= 2**31 and op.operation != "Sum":
        raise NoShader("its accumulators have more than 32 bits")
    constants = _sum_constants(layer, form.multipliers.tolist(), int(form.offset[0]) if op.operation == "Sum" else 0)
    for index, suffix in enumerate(("", "1")):
        constants |= layer.operand(index, suffix, layer.inputs[index].zero_point)
        constants[f"Repeated{suffix}"] = channels(layer.shapes[index]) < channels(layer.output_shape)
    rescale = parameters(layer.node.rescale, is_wide=True)
    return [_elements(layer, _OPERATIONS[op.operation], constants, rescale, layer.places(0, 1))]


@vulkan("AddConstants", is_wide=True)
def add_constants(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return a sum with constants, the same for each row."""
    form, zero = layer.node.form_as(Shifted), layer.inputs[0].zero_point
    size = len(form.stored)
    rows = elements(layer.output_shape) // size
    layer = replace(layer, views={name: _rows(layer, name, rows) for name in (layer.node.inputs[0], layer.node.output)})
    factors = [int(form.multiplier[0]), int(form.constant_multiplier[0])]
    constants = {**_sum_constants(layer, factors), **layer.operand(zero=zero), "Constant1": True}
    return [_elements(layer, _OPERATIONS["Sum"], constants, parameters(layer.node.rescale, is_wide=True), table=form.stored)]


@vulkan("Affine")
def affine(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return a gain and a bias for each channel."""
    form, count = layer.node.form_as(Weighted), channels(layer.output_shape)
    bias, gains = (np.broadcast_to(values, count) for values in (form.bias, form.weights))
    return [_elements(layer, _GAIN, layer.operand(), parameters(layer.node.rescale, bias, gains))]


@vulkan("Activation")
def activation(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return a table of bytes."""
    form = layer.node.form
    if not isinstance(form, Table) or layer.inputs[0].bytes != 1:
        raise NoShader("its function is not a table of bytes")
    constants = {**layer.operand(), "TableLow": layer.inputs[0].qmin}
    return [_elements(layer, _TABLE, constants, parameters(None), table=form.table)]


@vulkan("Resize", "Identity", "Dropout")
def resize(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return the nearest position, unchanged; or four weighted ones."""
    if getattr(layer.op, "mode", "Nearest") != "Nearest":
        return [_bilinear(layer)]
    if not isinstance(layer.node.form, Moved):
        raise NoShader("it rescales what it copies")
    return [_elements(layer, _COPY, {**layer.operand(), **layer.limits(0)}, parameters(None))]


def _bilinear(layer: GpuLayer) -> Dispatch:
    plane, shape, size = layer.planes[0], layer.output_shape, layer.shapes[0][2:]
    axes = zip(size, shape[2:], (plane.line_bytes, plane.stride), layer.op.integer_weights(size), strict=True)
    tables = []
    for before, after, step, weights in axes:
        first, second, _ = layer.op.taps(before, after)
        tables.append(np.stack([first * step, second * step, *weights], axis=1))
    return Dispatch(
        "resize",
        {**layer.operand(zero=layer.inputs[0].zero_point), **layer.result()},
        quads_of(shape),
        positions_of(shape),
        layer.places(),
        weights=np.concatenate(tables).astype(np.int32),
        parameters=parameters(layer.node.rescale),
    )


def _rows(layer: GpuLayer, name: str, rows: int, first: int = 0, length: int = 0) -> tuple[Plane, Shape]:
    """Return a tensor without gaps as lines of one pixel each; `length` elements of each from element `first` on, or all."""
    plane, size = layer.plan.planes[name], layer.graph.type(name).bytes
    line = elements(layer.graph.shape(name)) // rows
    offset, whole = plane.offset + first * size, line * size
    part = replace(plane, offset=offset, size=whole, stride=whole, length=1, count=rows, pitch=None)
    return part, (1, length or line, rows, 1)


@vulkan("Concat")
def concat(layer: GpuLayer) -> Sequence[Dispatch]:
    """Return a copy of each operand to its channels, or its part of each row, rescaled where its type differs."""
    op, name, copies, first = layer.op, layer.node.output, [], 0
    shapes = layer.shapes
    by_pixels = op.concatenates_pixels(layer.output_shape)
    lengths = [channels(shape) for shape in shapes] if by_pixels else op.lengths(shapes, layer.node)
    rows = elements(layer.output_shape) // sum(lengths)
    for number, (slot, length) in enumerate(zip(op.slots or range(len(shapes)), lengths, strict=True)):
        if by_pixels:
            plane = layer.output_plane
            part = replace(plane, offset=plane.offset + first * layer.output.bytes)
            views = {name: (part, (1, length, *layer.output_shape[2:]))}
        else:
            views = {name: _rows(layer, name, rows, first, length)}
            if slot >= 0:
                views[layer.node.inputs[slot]] = _rows(layer, layer.node.inputs[slot], rows)
        own = replace(layer, views=views)
        copies.append(_joined(own, slot) if slot >= 0 else _constant_rows(own, layer.node.params[f"operand{number}"]))
        first += length
    return copies


def _joined(layer: GpuLayer, index: int) -> Dispatch:
    rescale = layer.node.rescale
    own, zero = (layer.output.zero_point, layer.inputs[index].zero_point) if rescale else (0, 0)
    fields = parameters(rescale.only(index) if rescale else None)
    return _elements(layer, _COPY, {**layer.operand(index, zero=zero), **layer.limits(own)}, fields, layer.places(index))


def _constant_rows(layer: GpuLayer, stored: np.ndarray) -> Dispatch:
    shape = layer.output_shape
    rows = zero_padded(stored.reshape(height(shape), -1).astype(np.int32), height(shape), 4 * quads_of(shape))
    constants = {**_stored_limits(layer), "M0": 0, "Repeated": True, "Constant1": True, "InHeight1": height(shape)}
    return _elements(layer, _OPERATIONS["Sum"], constants, parameters(None), table=rows)


@vulkan("IndexSelect", "Reshape", "Transpose", "DepthToSpace", "SpaceToDepth", "Padding")
def move(layer: GpuLayer) -> Sequence[Dispatch]:
    """Add elements at other positions."""
    fill = layer.inputs[0].zero_point if layer.op.kind == "Padding" else 0
    op = layer.op
    if op.kind == "IndexSelect":
        fill, op = int(op.stored_fill(layer.output)), replace(op, fill=0.0)
    shape, plane = layer.shapes[0], layer.planes[0]
    c, y, x = np.ogrid[: channels(shape), : height(shape), : width(shape)]
    places = y * plane.line_bytes + x * plane.stride + c * layer.inputs[0].bytes
    moved = op.run([places.reshape(1, *shape[1:]) + 1], layer.node)[0].astype(np.int64) - 1
    outer, inner = split_places(in_memory_order(moved)[0])
    constants = {
        **_stored_limits(layer),
        "Outer": len(outer),
        "Inner": len(inner),
        "Fill": fill,
        "InKind": layer.kind(layer.inputs[0], 4),
    }
    return [_elements(layer, _MOVE, constants, parameters(None), table=np.concatenate([outer, inner]))]


def split_places(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the shortest tables (outer, inner) with places[i] = outer[i // len(inner)] + inner[i % len(inner)]; negative where
    that is. Raise NoShader where they are too long."""
    count = len(places)
    divisors = [size for size in range(1, int(count**0.5) + 1) if count % size == 0]
    for length in sorted({each for size in divisors for each in (size, count // size)}, key=lambda each: each + count // each):
        lines = places.reshape(-1, length)
        line = lines[np.argmax((lines >= 0).sum(axis=1))]
        split = int(np.argmax(line >= 0))
        outer = np.where(lines[:, split] < 0, _NOWHERE, lines[:, split])
        inner = np.where(line < 0, _NOWHERE, line - line[split])
        if length + len(outer) <= _MOST_PLACES and (np.maximum(outer[:, None] + inner, -1) == lines).all():
            return outer, inner
    raise NoShader("the places of its elements have no order")


_ROWS = 4
"""Rows of a product that an invocation computes."""
_ALONE = 8
"""Each invocation repeats the divisions of its row, which take as long as eight times as many elements."""


def _are_words(*places: int) -> bool:
    """True if four bytes that follow each other are a word of the arena, for these places and steps."""
    return all(place % 4 == 0 for place in places if place != 1)


def _by_rows(
    layer: GpuLayer, shader: str, constants: dict[str, int], weights: np.ndarray, rescale: np.ndarray
) -> list[Dispatch]:
    rows, size = constants["Rows"], constants["Size"]
    slices = slices_of(1, rows, size // _ALONE)
    values = {**layer.operand(zero=layer.inputs[0].zero_point), **layer.result(), **constants, "Slices": slices}
    return [Dispatch(shader, values, 1, rows, layer.places(), slices=slices, weights=weights, parameters=rescale)]


@vulkan("Softmax", "MaskedSoftmax")
def softmax(layer: GpuLayer) -> Sequence[Dispatch]:
    """Add shares by fixed-point division."""
    if layer.node.rescale is not None:
        raise NoShader("its shares are divided in floating point")
    form, (outer, size, inner) = layer.node.form_as(Exponentials), layer.op.rows(layer.shapes[0])
    low, high = words(int(form.numerator[0]))
    constants = {"Rows": outer * inner, "Size": size, "Inner": inner, "NumeratorLow": low, "NumeratorHigh": high}
    powers = form.powers.astype(np.int32)
    if form.powers.dtype != np.uint16:
        constants |= dict(zip(("Multiplier", "PowerShift", "Limit"), powers.tolist(), strict=True))
        powers = powers[:0]
    if isinstance(form, MaskedExponentials):
        lines = np.zeros((len(form.mask), -(-size // 32) * 4), np.uint8)
        lines[:, : form.mask.shape[1]] = form.mask
        powers = np.concatenate([powers, lines.view("<i4").reshape(-1)])
        constants["Masks"] = len(lines)
    return _by_rows(layer, "softmax", constants, powers, parameters(None))


@vulkan("Normalize", is_wide=True)
def normalize(layer: GpuLayer) -> Sequence[Dispatch]:
    """Add rows minus their mean, divided by their deviation."""
    form = layer.node.form_as(Normalized)
    gains = np.zeros((len(form.gains), 4), np.int32)
    gains[:, :2] = form.offsets.astype("<i8").view("<i4").reshape(-1, 2)
    gains[:, 2] = form.gains
    low, high = words(int(form.epsilon[0]))
    constants = {
        "Rows": elements(layer.shapes[0]) // layer.op.size,
        "Size": layer.op.size,
        "Centred": layer.op.centred,
        "EpsilonLow": low,
        "EpsilonHigh": high,
        "Fraction": int(form.fraction[0]),
        "Gains": len(gains),
    }
    return _by_rows(layer, "normalize", constants, gains, parameters(layer.node.rescale, is_wide=True))


@vulkan("ArrayMatMul")
def matrix_product(layer: GpuLayer) -> Sequence[Dispatch]:
    """Add products of pairs of matrices: a dispatch for the last axis of the batch, for each position of the others."""
    op, kinds = layer.op, [*layer.inputs, layer.output]
    if layer.node.rescale is None:
        raise NoShader("it multiplies integers without a scale")
    firsts, steps = [], []
    for view, dims, kind in zip(op.full_views(), (op.left, op.right, op.dims), kinds, strict=True):
        firsts.append(view[1] * kind.bytes)
        steps.append([0 if size == 1 else step * kind.bytes for size, step in zip(dims, view[2:], strict=True)])
    left, right, out = steps
    batch = (1, *op.batch)
    constants = {
        **layer.operand(0, "", layer.inputs[0].zero_point),
        **layer.operand(1, "1", layer.inputs[1].zero_point),
        **layer.result(),
        "InAligned": _are_words(layer.planes[0].offset, firsts[0], *left),
        "InAligned1": _are_words(layer.planes[1].offset, firsts[1], *right),
        "ByColumns": right[-1] != layer.inputs[1].bytes,
        "Batch": batch[-1],
        "Rows": op.left[-2],
        "Depth": op.left[-1],
        "Channels": op.right[-1],
        **{f"{name}Batch": own[-3] if len(own) > 2 else 0 for name, own in zip(("Left", "Right", "Out"), steps, strict=True)},
        **dict(zip(("LeftRow", "LeftDepth"), left[-2:], strict=True)),
        **dict(zip(("RightDepth", "RightColumn"), right[-2:], strict=True)),
        **dict(zip(("OutRow", "OutColumn"), out[-2:], strict=True)),
    }
    rescale, products = parameters(layer.node.rescale), []
    pixels = _ROWS if op.left[-2] >= _ROWS else 1
    blocks = batch[-1] * -(-op.left[-2] // pixels)
    for index in product(*map(range, batch[1:-1])):
        moved = (sum(i * step for i, step in zip(index, own, strict=False)) for own in steps)
        in0, in1, out0 = (sum(each) for each in zip(layer.places(0, 1), firsts, moved, strict=True))
        places = (in0, in1, out0)
        products.append(Dispatch("product", constants, -(-op.right[-1] // 4), blocks, places, pixels, parameters=rescale))
    return products
