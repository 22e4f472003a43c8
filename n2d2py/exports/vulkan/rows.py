"""Shaders of matrices and rows: products of two activations, softmax, normalization."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from n2d2py.exports.vulkan.dispatch import Dispatch, GpuLayer, NoShader, parameters, vulkan, words
from n2d2py.exports.vulkan.layers import slices_of
from n2d2py.graph import Exponentials, MaskedExponentials, Normalized, elements

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
    """Return a dispatch over the rows of a tensor."""
    rows, size = constants["Rows"], constants["Size"]
    slices = slices_of(1, rows, size // _ALONE)
    values = {**layer.operand(zero=layer.inputs[0].zero_point), **layer.result(), **constants, "Slices": slices}
    return [Dispatch(shader, values, 1, rows, layer.places(), slices=slices, weights=weights, parameters=rescale)]


@vulkan("Softmax", "MaskedSoftmax")
def softmax(layer: GpuLayer) -> Sequence[Dispatch]:
    """Add shares by fixed-point division."""
    if layer.node.rescale is not None:
        raise NoShader("its shares are divided in floating point")
    form, (outer, size, inner) = layer.node.form_as(Exponentials), layer.op.rows(layer.shape(0))
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
        "Rows": elements(layer.shape(0)) // layer.op.size,
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
        "InAligned": _are_words(layer.plane(0).offset, firsts[0], *left),
        "InAligned1": _are_words(layer.plane(1).offset, firsts[1], *right),
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
