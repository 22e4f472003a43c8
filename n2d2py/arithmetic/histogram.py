"""Histograms of tensors that grow with the data and merge exactly, and where to clip a tensor: the largest magnitude that its
integers shall represent. Clipping modes are those of N2D2 (`-act-clipping-mode`): None, MSE, KL-Divergence, Quantile."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.errors import InternalError

BINS = 16384
"""Bins over [0, limit]; a power of two, so that doubling the limit merges pairs of bins."""

LEAST_RANGE = 2.0**-100
"""Smaller ranges count as zero: the scale, or its inverse, would leave float32."""
_BLOCK = 1 << 17

_FACTORS = np.linspace(-2, 2, 5)
_WEIGHTS = np.exp(-np.square(_FACTORS) / 2) / np.exp(-np.square(_FACTORS) / 2).sum()
"""Nodes of a normal distribution, in standard deviations, and their shares."""
_DEVIATIONS = 8
"""Deviations of the logarithm that other samples do not exceed."""
_BANDWIDTH, _TAIL = 2.3, 2.4
"""Deviations of one value and one sample, of which N leave N^(-1/2); in units of the tail index for samples."""
_ASSUMED_TAIL, _HEAVIEST_TAIL = 0.2, 0.5
"""Tail index that counts as one more sample, and its upper limit."""


@dataclass
class Histogram:
    """Counts of |x| in BINS bins over [0, limit), separately for positive and negative values.

    `limit` is a power of two and doubles as needed; counts then fold pairwise, so the result depends neither on the order of
    the data nor on shards. `minimum`, `maximum`: exact extremes; +inf and -inf while empty. `count`: number of values;
    `zeros` of them are exactly 0. `positive`, `negative`: counts (BINS) by magnitude. `peaks`: largest magnitude of each
    sample; empty if the samples are unknown.
    """

    limit: float = 0.0
    minimum: float = np.inf
    maximum: float = -np.inf
    count: int = 0
    zeros: int = 0
    positive: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    negative: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    peaks: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def largest(self) -> float:
        """Largest magnitude seen."""
        return max(abs(self.minimum), abs(self.maximum)) if self.count else 0.0

    @property
    def mean(self) -> float:
        """Mean of all values, each at the center of its bin."""
        return float(np.dot(self.positive - self.negative, self._middles())) / self.count if self.count else 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of all values, each at the center of its bin."""
        if not self.count:
            return 0.0
        square = float(np.dot(self.positive + self.negative, self._middles() ** 2)) / self.count
        return float(np.sqrt(max(square - self.mean**2, 0.0)))

    def _middles(self) -> np.ndarray:
        return (np.arange(BINS) + 0.5) * (self.limit / BINS)

    def _grow(self, limit: float) -> None:
        if self.limit == 0.0:
            self.limit = limit
        while self.limit < limit:
            for counts in (self.positive, self.negative):
                counts[: BINS // 2] = counts[0::2] + counts[1::2]
                counts[BINS // 2 :] = 0
            self.limit *= 2

    def add(self, values: np.ndarray) -> None:
        """Count the elements of n samples (n, ...), or of unknown samples (n,); raise ValueError if one is not finite."""
        flat = values.reshape(-1)
        if not flat.size:
            return
        rows = values.reshape(len(values) if values.ndim > 1 else 1, -1)
        lows, highs = rows.min(axis=1), rows.max(axis=1)
        low, high = float(lows.min()), float(highs.max())
        if values.ndim > 1:
            self.peaks = np.append(self.peaks, np.maximum(-lows.astype(np.float64), highs))
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError("values that are not finite")
        largest = max(abs(low), abs(high))
        if largest < LEAST_RANGE:
            low = high = largest = 0.0
        self.minimum, self.maximum = min(self.minimum, low), max(self.maximum, high)
        self.count += flat.size
        if largest > 0:
            self._grow(float(2.0 ** (np.floor(np.log2(largest)) + 1)))  # the next power of two
            self._count_blocks(flat, low < 0)
        else:
            self.zeros += flat.size

    def _count_blocks(self, flat: np.ndarray, signed: bool) -> None:
        factor, first, zeros = flat.dtype.type(BINS / self.limit), BINS if signed else 0, 0
        counts = np.zeros(first + BINS, np.int64)
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            bins = np.floor(block * factor).astype(np.intp) + first
            counts += np.bincount(bins, minlength=counts.size)
            zeros += int(np.count_nonzero(block == 0))  # of truth values, which are counted by vectors
        if signed:
            self.negative += counts[:BINS][::-1]
        self.positive += counts[-BINS:]
        self.positive[0] -= zeros
        self.zeros += zeros

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        if other.limit:
            self._grow(other.limit)
            theirs = Histogram(other.limit, positive=other.positive.copy(), negative=other.negative.copy())
            theirs._grow(self.limit)
            self.positive += theirs.positive
            self.negative += theirs.negative
        self.minimum, self.maximum = min(self.minimum, other.minimum), max(self.maximum, other.maximum)
        self.count += other.count
        self.zeros += other.zeros
        self.peaks = np.append(self.peaks, other.peaks)

    def expected(self, limit: float = np.inf) -> Histogram:
        """Return the counts to expect of other samples: those of each value times log-normal factors, up to `limit`.

        Few values and samples whose largest magnitudes differ spread them more. Samples with small values only tell nothing.
        """
        if not (self.peaks.size and self.largest):
            return self
        factors = np.exp(self._spread() * _FACTORS)
        low, high = (max(min(end * factors[-1], limit), abs(end)) for end in (-min(self.minimum, 0.0), max(self.maximum, 0.0)))
        result = Histogram(self.limit, min(-low, self.minimum), max(high, self.maximum), self.count, self.zeros)
        result._grow(float(2.0 ** (np.floor(np.log2(max(low, high))) + 1)))

        def spread(counts: np.ndarray, end: float) -> np.ndarray:
            used, last = np.flatnonzero(counts), int(end / result.limit * BINS)
            places, counts = (used + 0.5) * (self.limit / result.limit), counts[used]
            moved = [np.minimum((places * factor).astype(np.intp), last) for factor in factors]
            parts = [np.bincount(each, counts * weight, BINS) for each, weight in zip(moved, _WEIGHTS, strict=True)]
            return np.sum(parts, axis=0)

        result.positive, result.negative = spread(self.positive, high), spread(self.negative, low)
        return result

    def headroom(self, most: float) -> float:
        """Return the factor by which values of other samples may exceed the largest one: eight deviations, `most` at most."""
        return min(most, float(np.exp(_DEVIATIONS * self._spread()))) if self.peaks.any() else most

    def _spread(self) -> float:
        """Return the deviation of the logarithm of a value on other samples.

        It joins the bandwidth for the number of values, as of a kernel density estimate, and that for the number of samples,
        which grows with the tail index of the upper half of their largest magnitudes (B. Hill, 1975).
        """
        peaks = np.sort(self.peaks[self.peaks > 0])
        upper = peaks[peaks.size // 2 :]
        tail = (float(np.log(upper / upper[0]).sum()) + _ASSUMED_TAIL) / (upper.size + 1)
        values = max(self.count - self.zeros, 1)
        return float(np.hypot(_BANDWIDTH / values**0.5, _TAIL * min(tail, _HEAVIEST_TAIL) / self.peaks.size**0.5))

    def magnitudes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (BINS) of |x| with zeros in the first bin, and their BINS + 1 edges."""
        counts = self.positive + self.negative
        counts[0] += self.zeros
        return counts, np.linspace(0.0, self.limit or 1.0, BINS + 1)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the histogram as arrays for storage."""
        numbers = np.array([self.limit, self.minimum, self.maximum], np.float64)
        return {
            "numbers": numbers,
            "counts": np.array([self.count, self.zeros], np.int64),
            "positive": self.positive,
            "negative": self.negative,
            "peaks": np.sort(self.peaks),
        }

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray]) -> Histogram:
        """Return the histogram of `to_arrays`. Raises ValueError for arrays that are not a histogram."""
        limit, minimum, maximum = (float(v) for v in arrays["numbers"])
        count, zeros = (int(v) for v in arrays["counts"])
        bins = [arrays["positive"], arrays["negative"]]
        peaks = arrays["peaks"].astype(np.float64)
        damaged = any(array.shape != (BINS,) or array.dtype.kind not in "iu" or array.min() < 0 for array in bins)
        damaged |= not 0 <= limit < np.inf or not 0 <= zeros <= count or bool(np.isnan([minimum, maximum]).any())
        if damaged or peaks.ndim != 1 or not ((peaks >= 0) & (peaks < np.inf)).all():
            raise ValueError("a histogram is damaged")
        positive, negative = (array.astype(np.int64) for array in bins)
        return Histogram(limit, minimum, maximum, count, zeros, positive, negative, peaks)


CLIPPING_MODES = ("None", "MSE", "KL-Divergence", "Quantile")
WEIGHT_CLIPPING_MODES = ("None", "MSE", "KL-Divergence")
_COARSE = 96
_FINE = 24
_KL_BINS = 2048


def activation_threshold(histogram: Histogram, mode: str, levels: int, quantile: float = 0.9999) -> float:
    """Return the clipping threshold of a tensor; `levels` is the largest stored value (127, 255, ...).

    "MSE" has the least error on other samples for the histogram expected of these. 1 for a tensor that is always zero.
    """
    if histogram.largest == 0.0:
        return 1.0
    if mode == "None":
        return histogram.largest
    counts, edges = histogram.magnitudes()
    if mode == "MSE":
        threshold = mse_threshold(counts, edges, histogram.largest, levels)
    elif mode == "KL-Divergence":
        counts[0] -= histogram.zeros  # every scale represents zero exactly
        threshold = kl_threshold(counts, edges, levels)
    elif mode == "Quantile":
        threshold = quantile_threshold(counts, edges, quantile)
    else:
        raise InternalError(f"clipping mode {mode}")
    return min(threshold, histogram.largest)


def _quantization_error(x: np.ndarray, p: np.ndarray, threshold: float, levels: int) -> float:
    step = threshold / levels
    error = x / step
    np.minimum(np.rint(error, out=error), levels, out=error)
    error *= step
    np.subtract(x, error, out=error)
    return float(np.dot(p, np.square(error, out=error)))


def mse_threshold(counts: np.ndarray, edges: np.ndarray, largest: float, levels: int) -> float:
    """Return the threshold with the least expected squared error of quantized magnitudes.

    A coarse scan of [largest / 32, largest] on a logarithmic grid, then a fine one around the best; ties go to the larger.
    """
    used = np.flatnonzero(counts)
    x = np.minimum((edges[used] + edges[used + 1]) / 2, largest)
    p = counts[used].astype(np.float64)
    if used[0] == 0:
        x[0] = 0.0 if used.size > 1 else x[0]

    def best(candidates: np.ndarray) -> int:
        return int(np.argmin([_quantization_error(x, p, t, levels) for t in candidates]))

    coarse = largest * np.geomspace(1.0, 1.0 / 32, _COARSE)
    k = best(coarse)
    fine = np.linspace(coarse[max(k - 1, 0)], coarse[min(k + 1, _COARSE - 1)], _FINE)
    return float(fine[best(fine)])


def kl_threshold(counts: np.ndarray, edges: np.ndarray, levels: int) -> float:
    """Return the threshold that minimises KL(p || q) between the clipped histogram and its quantized form.

    The method of S. Migacz, "8-bit inference with TensorRT", GTC 2017, on 2,048 bins: clipped mass
    goes to the last bin kept of p; q spreads each level's mass evenly over the non-empty bins it covers.
    """
    p_all = counts.reshape(_KL_BINS, BINS // _KL_BINS).sum(axis=1).astype(np.float64)
    last = int(np.flatnonzero(p_all)[-1]) + 1
    best, best_divergence = last, np.inf
    step = max(1, (last - levels) // 128) if last > levels else 1
    for bins in range(last, min(levels, last) - 1, -step):
        p = p_all[:bins].copy()
        q_source = p.copy()
        p[-1] += p_all[bins:].sum()
        level = np.minimum((np.arange(bins) * levels) // bins, levels - 1)
        filled = (q_source > 0).astype(np.float64)
        mass = np.bincount(level, weights=q_source, minlength=levels)
        members = np.bincount(level, weights=filled, minlength=levels)
        q = np.divide(mass, members, out=np.zeros(levels), where=members > 0)[level] * filled
        valid = p > 0
        total_q = q.sum()
        if total_q == 0:
            continue
        ratio = (p[valid] / p.sum()) / np.maximum(q[valid] / total_q, 1e-12)
        divergence = float(np.sum(p[valid] / p.sum() * np.log(ratio)))
        if divergence < best_divergence - 1e-12:
            best, best_divergence = bins, divergence
    return float(edges[best * (BINS // _KL_BINS)])


def quantile_threshold(counts: np.ndarray, edges: np.ndarray, quantile: float) -> float:
    """Return the upper edge of the first bin at which the cumulated share of values reaches `quantile`."""
    share = np.cumsum(counts) / counts.sum()
    return float(edges[int(np.searchsorted(share, quantile)) + 1]) if quantile < 1 else float(edges[-1])
