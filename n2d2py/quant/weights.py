"""Integer weights and biases with a scale for each output channel or for the layer."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import numpy as np

from n2d2py.quant.histogram import Histogram
from n2d2py.quant.thresholds import kl_threshold

__all__ = ["QuantizedWeights", "Rounding", "round_nearest", "quantize_weights"]

MAX_ACCUMULATOR = 2 ** 31 - 1


Rounding = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""(weights (O, K), scales (O), levels) -> integers (O, K) in +-levels."""


def round_nearest(rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
    """Each weight to the nearest integer, ties to even."""
    return np.clip(np.rint(rows / scales[:, None]), -levels, levels)


@dataclass(frozen=True)
class QuantizedWeights:
    """weights (as given, integers), bias (O) int64 in the accumulator's scale, scales (O) float64.

    `bound` is the largest magnitude that any partial sum of any output can reach; `widened` counts
    the outputs whose scale was enlarged to keep the accumulator within 32 bits.
    """

    weights: np.ndarray
    bias: np.ndarray
    scales: np.ndarray
    bound: int
    widened: int


def _clip_magnitudes(rows: np.ndarray, mode: str, levels: int) -> np.ndarray:
    """Threshold of each row (O, K) of weights for `-wt-clipping-mode`."""
    largest = np.abs(rows).max(axis=1)
    if mode == "None":
        return largest
    if mode == "KL-Divergence":
        histogram = Histogram()
        histogram.add(rows)
        if histogram.largest == 0:
            return largest
        counts, edges = histogram.magnitudes()
        return np.minimum(largest, kl_threshold(counts, edges, levels))
    best, best_error = largest.copy(), np.full(len(rows), np.inf)
    for ratio in np.linspace(1.0, 0.5, 51):
        step = np.maximum(largest * ratio / levels, 1e-300)[:, None]
        error = ((rows - np.clip(np.rint(rows / step), -levels, levels) * step) ** 2).sum(axis=1)
        better = error < best_error * (1 - 1e-9)
        best[better], best_error[better] = (largest * ratio)[better], error[better]
    return best


def quantize_weights(weights: np.ndarray, bias: np.ndarray, input_scale: float, input_peak: int, *, bits: int,
                     per_output: bool, clipping: str = "None", limit: int = MAX_ACCUMULATOR,
                     gain: np.ndarray | None = None, rounding: Rounding = round_nearest) -> QuantizedWeights:
    """Quantizes weights (O, ...) and bias (O) of a layer whose input integers are at most `input_peak`.

    w_q = round(gain * w / s_w), s_w = max|w| / (2^(bits-1) - 1) per output (or for the layer);
    b_q = round(gain * b / (input_scale * s_w)). A scale is enlarged where the accumulator could
    otherwise pass `limit`; `gain` (O) carries what a shift rescale cannot represent.
    """
    rows = weights.reshape(len(weights), -1).astype(np.float64)
    bias = bias.astype(np.float64)
    levels = 2 ** (bits - 1) - 1
    magnitude = _clip_magnitudes(rows, clipping, levels)
    if not per_output:
        magnitude = np.full(len(rows), magnitude.max())
    scales = np.where(magnitude > 0, magnitude, max(float(magnitude.max()), 1.0)) / levels
    gain = np.ones(len(rows)) if gain is None else gain
    widened = np.zeros(len(rows), bool)
    while True:
        real = rows * gain[:, None]
        quantized = rounding(real, scales, levels)
        quantized_bias = np.rint(bias * gain / (input_scale * scales))
        bounds = np.abs(quantized).sum(axis=1) * input_peak + np.abs(quantized_bias)
        over = bounds > limit
        if not over.any():
            break
        widened |= over
        growth = np.where(over, np.maximum(bounds / limit * 1.01, 1.01), 1.0)
        scales = scales * (growth if per_output else growth.max())
    dtype = np.int8 if bits == 8 else np.int16
    return QuantizedWeights(quantized.reshape(weights.shape).astype(dtype), quantized_bias.astype(np.int64),
                            scales, int(bounds.max()), int(widened.sum()))
