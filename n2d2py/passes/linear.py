"""The algebra of per-channel gains and shifts around Conv and Fc, computed in float64."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Graph, Node
from n2d2py.graph.shapes import elements
from n2d2py.operators.affine import Affine
from n2d2py.operators.batchnorm import BatchNorm
from n2d2py.operators.conv import Conv
from n2d2py.operators.fc import Fc

_TINY = 1e-12
_LEAST_GAIN = 1e-30
"""A gain below it makes numbers of float32 without precision; nothing is left of what it multiplies."""


def like(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """`values` as new contiguous array in the floating-point type of `reference`."""
    return np.ascontiguousarray(values, reference.dtype)


def gain_and_shift(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """(g, s) in float64, each (C), of an Affine or BatchNorm: y = g * x + s.

    A BatchNorm channel whose variance plus epsilon is below 1e-12 takes the mean of the variances that
    are not (n2d2 does so for any tiny variance; here epsilon counts, so that the result stays exact).
    """
    if isinstance(node.op, Affine):
        return node.params["weights"].astype(np.float64), node.params["bias"].astype(np.float64)
    assert isinstance(node.op, BatchNorm)
    p = {role: array.astype(np.float64) for role, array in node.params.items()}
    variance = p["variance"]
    tiny = variance + node.op.epsilon < _TINY
    if tiny.any():
        variance = np.where(tiny, variance[~tiny].mean() if not tiny.all() else 1.0, variance)
    gain = p["scale"] / np.sqrt(variance + node.op.epsilon)
    return gain, p["bias"] - p["mean"] * gain


def scale_outputs(node: Node, gain: np.ndarray, shift: np.ndarray) -> None:
    """Conv, Deconv or Fc followed by g * y + s: W' = g W, b' = g b + s, per output."""
    weights, bias = node.params["weights"], node.params["bias"]
    if "weight_scales" in node.params:
        gain = np.where(np.abs(gain) < _LEAST_GAIN, 0.0, gain)
    per_output = gain.reshape(-1, *(1,) * (weights.ndim - 1))
    node.params = {
        **node.params,
        "weights": like(weights.astype(np.float64) * per_output, weights),
        "bias": like(bias.astype(np.float64) * gain + shift, bias),
    }
    node.unbiased = False
    if "weight_scales" in node.params:
        scales = np.broadcast_to(node.params["weight_scales"], gain.shape)
        node.params["weight_scales"] = like(np.where(gain == 0, 1, np.abs(gain)) * scales, scales)


def scale_inputs(graph: Graph, node: Node, gain: np.ndarray, shift: np.ndarray) -> None:
    """Conv or Fc preceded by g * x + s: W' = W g, b' = b + sum of W s, per input channel.

    A Conv that pads must have s = 0.
    """
    weights, bias = node.params["weights"], node.params["bias"]
    wide = weights.astype(np.float64)
    if isinstance(node.op, Fc):
        positions = elements(graph.shape(node.inputs[0])) // len(gain)
        gains, shifts = np.repeat(gain, positions)[None], np.repeat(shift, positions)[None]
    else:
        assert isinstance(node.op, Conv)
        outputs, per_group = wide.shape[:2]
        group = np.arange(outputs) // (outputs // node.op.groups)
        channel = group[:, None] * per_group + np.arange(per_group)
        gains, shifts = gain[channel][..., None, None], shift[channel][..., None, None]
    added = (wide * shifts).sum(axis=tuple(range(1, wide.ndim)))
    node.params = {**node.params, "weights": like(wide * gains, weights), "bias": like(bias.astype(np.float64) + added, bias)}
    node.unbiased = False
