"""What the integers of a weighted layer stand for, as other runtimes want to know it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import FractionRescale
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.forms import Weighted


@dataclass(frozen=True)
class RealWeights:
    """Weights, bias and scales of a weighted layer: a real weight is `weights * scales`, the bias `(bias + fractions) * steps`."""

    weights: np.ndarray
    scales: np.ndarray
    bias: np.ndarray
    fractions: np.ndarray | None
    steps: np.ndarray


def real_weights(graph: QuantGraph, node: QuantNode, zero_point_in_bias: bool) -> RealWeights:
    """What the integers of a layer stand for: its bias without the zero points that the tool added to it."""
    form, x, y = node.form_as(Weighted), graph.type(node.inputs[0]), graph.type(node.output)
    factors = node.rescaling.effective()
    bias = form.bias.astype(np.int64)
    if x.zero_point and zero_point_in_bias:
        bias = bias + x.zero_point * form.weights.reshape(len(bias), -1).sum(axis=1, dtype=np.int64)
    if node.zero_in_bias:
        bias = bias - np.rint(y.zero_point / np.broadcast_to(factors, len(bias))).astype(np.int64)
    steps = factors * y.scale
    fractions = node.rescale.fractions.astype(np.float64) if isinstance(node.rescale, FractionRescale) else None
    return RealWeights(form.weights, steps / x.scale, bias, fractions, steps)
