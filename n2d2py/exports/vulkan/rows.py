"""Shaders of matrices and rows: products of two activations, softmax, normalization."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from n2d2py.exports.vulkan.dispatch import Dispatch, GpuLayer, NoShader, parameters, vulkan, words
from n2d2py.exports.vulkan.layers import slices_of
from n2d2py.graph.forms import Exponentials, MaskedExponentials, Normalized
from n2d2py.graph.shapes import elements

_ROWS = 4
"""Rows of a product that an invocation computes."""


def _kinds(layer: GpuLayer) -> dict[str, int]:
    return {
        "InKind": layer.kind(layer.inputs[0]),
        "InZero": layer.inputs[0].zero_point,
        "OutKind": layer.kind(layer.output, 4),
        **layer.limits(),
    }


def _by_rows(layer: GpuLayer, shader: str, constants: dict[str, int], weights: np.ndarray, found: np.ndarray) -> list[Dispatch]:
    """A dispatch over the rows of a tensor."""
    rows, size = constants["Rows"], constants["Size"]
    slices = slices_of(1, rows, size)
    places = (layer.plane(0).offset, 0, layer.output_plane.offset)
    values = {**_kinds(layer), **constants, "Slices": slices}
    return [Dispatch(shader, values, 1, rows, places, slices=slices, weights=weights, parameters=found)]


@vulkan("Softmax", "MaskedSoftmax")
def softmax(layer: GpuLayer) -> Sequence[Dispatch]:
    """Shares by fixed-point division."""
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
    """Rows less their mean, over their deviation."""
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
    """Products of pairs of matrices; a dispatch for the last axis of the batch, for each position of those before it."""
    op, kinds = layer.op, [*layer.inputs, layer.output]
    if layer.node.rescale is None:
        raise NoShader("it multiplies integers without a scale")
    firsts, steps = [], []
    for view, dims, kind in zip(op.placed(), (op.left, op.right, op.dims), kinds, strict=True):
        firsts.append(view[1] * kind.bytes)
        steps.append([0 if size == 1 else step * kind.bytes for size, step in zip(dims, view[2:], strict=True)])
    left, right, out = steps
    batch = (1, *op.batch)
    constants = {
        **_kinds(layer),
        "InKind1": layer.kind(layer.inputs[1]),
        "InZero1": layer.inputs[1].zero_point,
        "Batch": batch[-1],
        "Rows": op.left[-2],
        "Depth": op.left[-1],
        "Channels": op.right[-1],
        **{f"{name}Batch": own[-3] if len(own) > 2 else 0 for name, own in zip(("Left", "Right", "Out"), steps, strict=True)},
        "LeftRow": left[-2],
        "LeftDepth": left[-1],
        "RightDepth": right[-2],
        "RightColumn": right[-1],
        "OutRow": out[-2],
        "OutColumn": out[-1],
    }
    planes, found, made = (layer.plane(0), layer.plane(1), layer.output_plane), parameters(layer.node.rescale), []
    pixels = _ROWS if op.left[-2] >= _ROWS else 1
    blocks = batch[-1] * -(-op.left[-2] // pixels)
    for at in product(*map(range, batch[1:-1])):
        moved = (sum(i * step for i, step in zip(at, own, strict=False)) for own in steps)
        offsets = [plane.offset + first + by for plane, first, by in zip(planes, firsts, moved, strict=True)]
        places = (offsets[0], offsets[1], offsets[2])
        made.append(Dispatch("product", constants, -(-op.right[-1] // 4), blocks, places, pixels, parameters=found))
    return made
