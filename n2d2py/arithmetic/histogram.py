"""Histograms of tensors that grow with the data and merge exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

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
        factor = flat.dtype.type(BINS / self.limit)
        size = min(_BLOCK, flat.size)
        scaled, index = np.empty(size, flat.dtype), np.empty(size, np.intp)
        counts = np.zeros(2 * BINS if signed else BINS, np.int64)
        zeros = 0
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            part, bins = scaled[: block.size], index[: block.size]
            np.multiply(block, factor, out=part)
            if signed:
                np.floor(part, out=part)
            np.copyto(bins, part, casting="unsafe")
            if signed:
                bins += BINS
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
        if any(array.shape != (BINS,) or array.dtype.kind not in "iu" or array.min() < 0 for array in bins):
            raise ValueError("a histogram's counts are damaged")
        peaks = arrays["peaks"].astype(np.float64)
        if not 0 <= limit < np.inf or not 0 <= zeros <= count or np.isnan([minimum, maximum]).any():
            raise ValueError("a histogram's limits are damaged")
        if peaks.ndim != 1 or not ((peaks >= 0) & (peaks < np.inf)).all():
            raise ValueError("a histogram's largest magnitudes are damaged")
        positive, negative = (array.astype(np.int64) for array in bins)
        return Histogram(limit, minimum, maximum, count, zeros, positive, negative, peaks)
