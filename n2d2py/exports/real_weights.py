"""Real values of the integers of a weighted layer, for other runtimes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import FractionRescale
from n2d2py.contracts.quant.quantizer import QUANTIZERS, WeightedQuantizer, zero_point_terms
from n2d2py.graph import QuantGraph, QuantNode, Weighted


@dataclass(frozen=True)
class RealWeights:
    """Weights, bias and scales of a weighted layer: real weight = `weights * scales`, real bias = `(bias + fractions) * steps`.

    Attributes:
        weights: integers (O, ...).
        scales, steps: (O) or (1), float64.
        bias: (O), int64, without the zero points that the tool added.
        fractions: (O), fractional parts of the bias; None without.
    """

    weights: np.ndarray
    scales: np.ndarray
    bias: np.ndarray
    fractions: np.ndarray | None
    steps: np.ndarray

    @property
    def whole_bias(self) -> np.ndarray:
        """The bias rounded to whole steps, (O), int64."""
        return self.bias if self.fractions is None else self.bias + np.rint(self.fractions).astype(np.int64)

    @property
    def real_weights(self) -> np.ndarray:
        """Float weights (O, ...), float32."""
        return (self.weights * self.scales.reshape(-1, *(1,) * (self.weights.ndim - 1))).astype(np.float32)

    @property
    def real_bias(self) -> np.ndarray:
        """Float bias (O), float32."""
        return ((self.bias + (0 if self.fractions is None else self.fractions)) * self.steps).astype(np.float32)


def real_weights(graph: QuantGraph, node: QuantNode) -> RealWeights:
    """Return the real values of a layer of the form `Weighted`."""
    form, x, y = node.form_as(Weighted), graph.type(node.inputs[0]), graph.type(node.output)
    quantizer, factors = QUANTIZERS[node.op.kind], node.rescaling.effective()
    bias = form.bias.astype(np.int64)
    if x.zero_point and isinstance(quantizer, WeightedQuantizer) and quantizer.zero_point_in_bias:
        bias = bias + x.zero_point * form.weights.reshape(len(bias), -1).sum(axis=1, dtype=np.int64)
    if node.zero_in_bias:
        bias = bias - zero_point_terms(node.rescaling, y.zero_point, len(bias), 2**31)
    steps, rescale = factors * y.scale, node.rescale
    fractions = rescale.fractions.astype(np.float64) if isinstance(rescale, FractionRescale) else None
    return RealWeights(form.weights, steps / x.scale, bias, fractions, steps)
