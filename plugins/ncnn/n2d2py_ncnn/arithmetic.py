"""Quantized network with the arithmetic of ncnn on x86-64 processors with fused multiply-adds.

=====================  ==============================================================================================
convolution            v = fma(float32(sum), 1 / (i w), bias), then the activation; i, w: the scales of input and weights that
                       the file has, float32, 1 / those of the tool; the bias in float32
depthwise convolution  the same with AVX-512; on processors without it, rounded after the product too
fully connected        rounded after the product too
requantization         v times the scale of the result that the file has, rounded, a half away from zero
what such layers read  the same of the values read
=====================  ==============================================================================================

All else is computed in float32 there as here. Depthwise convolutions of packed channels are not described: they multiply by a
reciprocal of 12 bits, which processors compute differently, so the runner and the README turn packing off for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import FloatRescale
from n2d2py.exports.model_file import real_weights
from n2d2py.graph import Node, QuantGraph, QuantNode, Weighted
from n2d2py.operators.quantize import Convert

_HALF = np.float32(0.5)


def with_ncnn(graph: QuantGraph) -> QuantGraph:
    """Return the network with int8 layers that compute ncnn's results."""
    return replace(graph, nodes=[_layer(graph, node) for node in graph.nodes])


def is_integer_layer(node: Node | QuantNode) -> bool:
    """True if ncnn can compute a layer in 8-bit integers; a grouped convolution needs one output for each group."""
    if node.op.kind == "Conv":
        return len(node.inputs) == 1 and (node.op.groups == 1 or node.op.groups == len(node.params["weights"]))
    return node.op.kind == "Fc"


def inverse_scales(scales: np.ndarray) -> np.ndarray:
    """Return 1 / scale as float32; 0 stays 0, which ncnn interprets as a channel of zeros."""
    return np.divide(1.0, scales, out=np.zeros(len(scales)), where=scales != 0).astype(np.float32)


def _layer(graph: QuantGraph, node: QuantNode) -> QuantNode:
    x, kind = graph.type(node.inputs[0]), graph.type(node.output)
    if isinstance(node.form, Weighted) and is_integer_layer(node) and not x.zero_point and not kind.zero_point:
        real = real_weights(graph, node)
        weights = inverse_scales(np.broadcast_to(real.scales, len(real.bias))) * inverse_scales(np.array([x.scale]))
        steps = np.divide(np.float32(1), weights, out=np.zeros_like(weights), where=weights != 0)
        ends = float(inverse_scales(np.array([kind.scale]))[0]), real.bias, steps, real.real_bias
        return replace(node, rescale=SummedRescale(node.rescaling.effective(), *ends, fused=node.op.kind == "Conv"))
    if isinstance(node.op, Convert) and x.is_float and not kind.is_float:
        return replace(node, rescale=AwayRescale(inverse_scales(np.array([kind.scale]))))
    return node


@dataclass(frozen=True, eq=False)
class AwayRescale(FloatRescale):
    """float32(real) * factor, ties rounded away from zero."""

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        return _round_away(self.real(acc, axis), low, high)


@dataclass(frozen=True, eq=False)
class SummedRescale(FloatRescale):
    """The real result float32(acc - bias) * step + real bias, times `scale`, ties rounded away from zero.

    Attributes:
        biases, steps, real_biases: (O), int64 and float32.
        fused: True if the product is not rounded before the bias is added.
    """

    scale: float
    biases: np.ndarray
    steps: np.ndarray
    real_biases: np.ndarray
    fused: bool = True

    def real(self, acc: np.ndarray, axis: int = 1) -> np.ndarray:
        biases, steps, shifts = (
            values.astype(np.float64).reshape(-1, *(1,) * (acc.ndim - 1 - axis))
            for values in (self.biases, self.steps, self.real_biases)
        )
        sums = (acc.astype(np.float64) - biases).astype(np.float32)
        products = sums.astype(np.float64) * steps
        return ((products if self.fused else products.astype(np.float32)) + shifts).astype(np.float32)

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        return _round_away(self.real(acc, axis) * np.float32(self.scale), low, high)


def _round_away(real: np.ndarray, low: int, high: int) -> np.ndarray:
    whole = np.where(real < 0, np.ceil(real - _HALF), np.floor(real + _HALF))
    return np.clip(whole, low, high).astype(np.int64)
