"""Integer weights and biases, with a scale for each output channel or for the whole layer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import PLACE_LIMIT, largest_place
from n2d2py.arithmetic.histogram import LEAST_RANGE, Histogram, kl_threshold

MAX_ACCUMULATOR = 2**31 - 1

_NARROW = 8
"""Clipping thresholds of low-bit weights, relative to the largest magnitude: with few steps, clipping costs less than a coarser
step."""


Rounding = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""(weights (O, K), scales (O) of rows or (O, K) of all weights, levels) -> integers (O, K) of least_level(levels) to levels."""

Ranging = Callable[[np.ndarray, np.ndarray, int], np.ndarray]
"""(weights (O, K), largest magnitudes (O), levels) -> magnitudes (O) that `levels` stands for."""


def least_level(levels: int) -> int:
    """Return the smallest integer of weights whose largest is `levels`: below 8 bits one more on the negative side."""
    return -levels if levels >= 127 else -levels - 1


def round_nearest(rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
    """Round each weight to the nearest integer, ties to even."""
    return np.clip(np.rint(rows / (scales[:, None] if scales.ndim == 1 else scales)), least_level(levels), levels)


@dataclass(frozen=True)
class QuantizedWeights:
    """Integer weights of a layer.

    Attributes:
        weights: integers in the shape of the float weights.
        bias: (O), int64, in the scale of the accumulator.
        scales: (O), float64.
        bound: largest magnitude of any partial sum of any output.
        widened: number of outputs with an enlarged scale to keep the accumulator within 32 bits.
        reduced: largest factor by which a scale was enlarged so that two 8-bit products fit 16 bits.
    """

    weights: np.ndarray
    bias: np.ndarray
    scales: np.ndarray
    bound: int
    widened: int
    reduced: float = 1.0


def _clip_magnitudes(rows: np.ndarray, mode: str, levels: int) -> np.ndarray:
    largest = np.abs(rows).max(axis=1)
    if mode == "None":
        return largest
    if mode == "KL-Divergence":
        histogram = Histogram()
        histogram.add(rows)
        counts, edges = histogram.magnitudes()
        return np.minimum(largest, kl_threshold(counts, edges, levels))
    return range_nearest(rows, largest, levels)


def range_nearest(rows: np.ndarray, largest: np.ndarray, levels: int) -> np.ndarray:
    """Return the magnitudes (O), at least half of the largest, with the least squared error of weights (O, K)."""
    best, best_error = largest.copy(), np.full(len(rows), np.inf)
    for ratio in np.linspace(1.0, 0.5, 51):
        step = np.maximum(largest * ratio / levels, 1e-300)[:, None]
        error = ((rows - np.clip(np.rint(rows / step), least_level(levels), levels) * step) ** 2).sum(axis=1)
        better = error < best_error * (1 - 1e-9)
        best[better], best_error[better] = (largest * ratio)[better], error[better]
    return best


def stored_steps(rows: np.ndarray, largest: np.ndarray, levels: int) -> np.ndarray:
    """Return the steps (O) of weights (O, K): the one whose multiples, up to 127, they are, else largest / levels."""
    steps = np.zeros(len(rows))
    for count in range(127, 0, -1):
        left = np.flatnonzero((steps == 0) & (largest > 0))
        for columns in (rows[:, :16], rows):  # a few weights exclude most counts
            multiples = columns[left] * (count / largest[left, None])
            left = left[(np.abs(multiples - np.rint(multiples)) < 1e-3).all(axis=1)]
        steps[left] = largest[left] / count
    return np.where(steps > 0, steps, largest / levels)


_COARSER = 2.0
"""Largest increase of the scales (root mean square over the outputs) for 8-bit products that fit 16 bits: that of 7-bit
weights."""


def _excess_over_16_bits(integers: np.ndarray, order: np.ndarray, words: int) -> np.ndarray:
    """Return the factor by which each output's weights exceed the range whose products fit 16 bits; 1 if they fit."""
    return np.maximum(largest_place(integers[:, order], words) / PLACE_LIMIT, 1.0)


def _growth_for_16_bits(
    real: np.ndarray, scales: np.ndarray, levels: int, order: np.ndarray, per_output: bool
) -> tuple[np.ndarray, int]:
    """Return the growth of the scales (O) for 8-bit products in 16 bits, and the words: two, unless 7 bits would cost less."""
    for words in (2, 1):
        grown = np.ones(len(real))
        while (excess := _excess_over_16_bits(round_nearest(real, scales * grown, levels), order, words)).max() > 1:
            grown = grown * _growth(excess, per_output)
        if words == 1 or np.mean(grown**2) <= _COARSER**2:
            break
    return grown, words


def _growth(excess: np.ndarray, per_output: bool) -> np.ndarray:
    growth = np.where(excess > 1, np.maximum(excess * 1.004, 1.008), 1.0)
    return growth if per_output else np.full(len(growth), growth.max())


@dataclass(frozen=True)
class LayerWeights:
    """The float weights (O, ...) and biases (O) of a layer whose input integers are at most `input_peak`, and their quantization.

    w_q = round(gain * w / s_w) with s_w = max|w| / (2^(bits-1) - 1) per output or for the layer; below 8 bits `ranging` may
    choose less than max|w|. b_q = round(gain * b / (input_scale * s_w)).
    """

    weights: np.ndarray
    bias: np.ndarray
    input_scale: float
    input_peak: int
    bits: int = 8
    per_output: bool = True
    clipping: str = "None"
    rounding: Rounding = round_nearest
    ranging: Ranging = range_nearest

    @property
    def levels(self) -> int:
        return 2 ** (self.bits - 1) - 1

    @property
    def rows(self) -> np.ndarray:
        """The weights (O, K), float64."""
        return self.weights.reshape(len(self.weights), -1).astype(np.float64)

    def _scales(self, rows: np.ndarray) -> np.ndarray:
        if self.bits < _NARROW and self.clipping == "None":
            magnitude = self.ranging(rows, np.abs(rows).max(axis=1), self.levels)
        else:
            magnitude = _clip_magnitudes(rows, self.clipping, self.levels)
        if not self.per_output:
            magnitude = np.full(len(rows), magnitude.max())
        return np.asarray(np.where(magnitude >= LEAST_RANGE, magnitude, max(float(magnitude.max()), 1.0)) / self.levels)

    def quantize(
        self,
        limit: int = MAX_ACCUMULATOR,
        gain: np.ndarray | None = None,
        scales: np.ndarray | None = None,
        reduced_order: np.ndarray | None = None,
    ) -> QuantizedWeights:
        """Return the integers; scales, by default those of the range, are enlarged until accumulators are within `limit`.

        `gain`: (O), the part of the factor that a shift cannot represent. `reduced_order`: position of each weight of an
        output in the kernel's order: scales are enlarged until 8-bit products fit 16 bits.
        """
        real = self.rows if gain is None else self.rows * gain[:, None]
        bias = self.bias.astype(np.float64) * (1.0 if gain is None else gain)
        scales = self._scales(self.rows) if scales is None else scales
        widened, reduced, words = np.zeros(len(real), bool), np.ones(len(real)), 0
        method = self.rounding if reduced_order is None else round_nearest
        while True:
            quantized = method(real, scales, self.levels)
            quantized_bias = np.rint(bias / (self.input_scale * scales))
            bounds = np.abs(quantized).sum(axis=1) * self.input_peak + np.abs(quantized_bias)
            over = bounds > limit
            if over.any():
                widened |= over
                growth = np.where(over, np.maximum(bounds / limit * 1.01, 1.01), 1.0)
                scales = scales * (growth if self.per_output else float(growth.max()))
                continue
            if reduced_order is None:
                break
            if not words:  # the scales for the accumulator come first
                reduced, words = _growth_for_16_bits(real, scales, self.levels, reduced_order, self.per_output)
                scales, method = scales * reduced, self.rounding
                continue
            excess = _excess_over_16_bits(quantized, reduced_order, words)
            if excess.max() <= 1:
                break
            growth = _growth(excess, self.per_output)
            scales, reduced = scales * growth, reduced * growth
        weights = quantized.reshape(self.weights.shape).astype(np.int8 if self.bits <= 8 else np.int16)
        counts = int(bounds.max()), int(widened.sum()), float(reduced.max())
        return QuantizedWeights(weights, quantized_bias.astype(np.int64), scales, *counts)
