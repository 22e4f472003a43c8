"""Layer-by-layer comparison of the float network with the integers, and of the integers with a compiled export."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.arithmetic import NumType

_MOST_BINS = 128


class LevelCounts:
    """Counts over the range of an integer type, in bins of whole steps; what lies beyond is in the outermost ones.

    Attributes:
        real, stored: counts (K) of the real values nearest to the integers of each bin, and of the integers.
        lowest, highest: the ends of the stored integers seen; `highest < lowest` while empty.
    """

    def __init__(self, kind: NumType):
        self.type, self.lowest, self.highest = kind, 2**62, -(2**62)
        steps = kind.qmax - kind.qmin + 1
        self.group = -(-steps // _MOST_BINS)
        bins = -(-steps // self.group)
        self.real, self.stored = np.zeros(bins, np.int64), np.zeros(bins, np.int64)

    @property
    def edges(self) -> np.ndarray:
        """Real values (K + 1) between the bins, half a step from integers."""
        first = self.type.qmin - self.type.zero_point - 0.5
        return (first + self.group * np.arange(len(self.real) + 1)) * self.type.scale

    @property
    def unused(self) -> float:
        """Share of the type's steps outside of the range seen, 0..1."""
        if self.highest < self.lowest:
            return 1.0
        return 1 - (self.highest - self.lowest) / (self.type.qmax - self.type.qmin)

    def add(self, real: np.ndarray, stored: np.ndarray) -> None:
        """Count a batch of real values and of stored ones, of any shapes."""
        stored = np.clip(stored, self.type.qmin, self.type.qmax)
        self.real += self._counted(self.type.quantize(np.asarray(real)))
        self.stored += self._counted(stored)
        self.lowest, self.highest = min(self.lowest, int(stored.min())), max(self.highest, int(stored.max()))

    def _counted(self, stored: np.ndarray) -> np.ndarray:
        bins = (stored.reshape(-1).astype(np.int64) - self.type.qmin) // self.group
        return np.bincount(bins, minlength=len(self.real))


@dataclass(frozen=True)
class Difference:
    """First element at which two stored arrays differ: index (n, c, y, x), expected and found values. `sample` describes a
    special input; the index is then (c, y, x)."""

    index: tuple[int, ...]
    expected: float
    found: float
    sample: str = ""

    @property
    def place(self) -> str:
        """The index, and the sample."""
        return f"{list(self.index)}{' of ' if self.sample else ''}{self.sample}"


@dataclass
class LayerComparison:
    """Comparison of one layer over all samples.

    Attributes:
        sqnr_db: 10 log10 of signal power over error power; inf without error.
        cosine: cosine of the angle between float and dequantized values.
        max_error: largest |float - dequantized|.
        saturated: share of stored values at an end of the range of their type, 0..1.
        identical: the compiled export equals the simulated integers; None if it was not run.
        difference: the first difference, if not identical.
        missing: elements that the compiled export does not compute, since no layer reads them.
        alone_db, alone_error: SQNR and largest error of the layer on quantized float inputs: its own loss. None if not
            computed.
        unused: share of the type's range that no stored value uses, 0..1.
        merged: later layers fused into it; their result is compared.
        exact: `identical` holds without tolerance.
        worst, worst_db: index of the sample with the lowest SQNR of this layer, and that SQNR.
        levels: float and stored values over the same steps; None for floating-point types.
    """

    layer: str
    tensor: str
    sqnr_db: float = float("inf")
    cosine: float = 1.0
    max_error: float = 0.0
    saturated: float = 0.0
    identical: bool | None = None
    difference: Difference | None = None
    alone_db: float | None = None
    alone_error: float | None = None
    unused: float = 0.0
    worst: int | None = None
    worst_db: float | None = None
    levels: LevelCounts | None = None
    missing: int = 0
    merged: tuple[str, ...] = ()
    exact: bool | None = None


def decibels(signal: float, error: float) -> float:
    """Return 10 log10 of signal power over error power; inf without error."""
    return float("inf") if error == 0 else float(10 * np.log10(max(signal, 1e-300) / error))


class Accumulator:
    """Comparison of one layer, whose output has number type `kind`, from batches."""

    def __init__(self, layer: str, tensor: str, kind: NumType, merged: tuple[str, ...] = ()):
        self.layer, self.tensor, self.type = layer, tensor, kind
        self._found = LayerComparison(layer, tensor, merged=merged)
        self._sums = np.zeros(4)
        self._alone_power = 0.0
        self._saturated = self._count = self._stimuli = 0

    @np.errstate(invalid="ignore", over="ignore")  # NaN and infinities of a network make NaN figures
    def add(
        self,
        real: np.ndarray,
        stored: np.ndarray,
        compiled: np.ndarray | None = None,
        slack: float = 0.0,
        alone: np.ndarray | None = None,
    ) -> None:
        """Add a batch (n, ...) of float values, stored values and, if run, compiled and isolated stored values."""
        found, exact = self._found, np.asarray(real, np.float64)
        restored = self.type.dequantize(stored).astype(np.float64)
        error = exact - restored
        self._sums += [np.sum(exact * exact), np.sum(restored * restored), np.sum(exact * restored), np.sum(error**2)]
        found.max_error = float(np.maximum(found.max_error, np.max(np.abs(error), initial=0.0)))
        if not (self.type.is_float or self.type.plain):
            lowest = (stored <= self.type.qmin) if self.type.signed else False
            self._saturated += int(np.count_nonzero((stored >= self.type.qmax) | lowest))
            found.levels = found.levels or LevelCounts(self.type)
            found.levels.add(real, stored)
        self._count += stored.size
        self._rate(exact, restored)
        if alone is not None:
            lost = exact - self.type.dequantize(alone)
            self._alone_power += float(np.sum(lost * lost))
            found.alone_error = max(found.alone_error or 0.0, float(np.max(np.abs(lost), initial=0.0)))
        if compiled is not None:
            found.missing = int(np.ma.count_masked(compiled[:1]))
            difference = self._check(stored, compiled, slack)
            if found.difference is None and difference is not None:
                found.difference = replace(difference, index=(difference.index[0] + self._stimuli, *difference.index[1:]))
        self._stimuli += len(stored)

    def _check(self, stored: np.ndarray, compiled: np.ndarray, slack: float = 0.0) -> Difference | None:
        """Compare a batch of compiled values with stored ones; return the first difference."""
        found = self._found
        difference = first_difference(stored, compiled, self.type, slack)
        found.identical = difference is None and found.identical is not False
        strict = first_difference(stored, compiled, self.type) if slack else difference
        found.exact = strict is None and found.exact is not False
        return difference

    def check_samples(self, stored: np.ndarray, compiled: np.ndarray, samples: Sequence[str]) -> None:
        """Compare a batch of named samples, which count in no other figure."""
        difference = self._check(stored, compiled)
        if self._found.difference is None and difference is not None:
            sample = samples[difference.index[0]]
            self._found.difference = replace(difference, index=difference.index[1:], sample=sample)

    def _rate(self, exact: np.ndarray, restored: np.ndarray) -> None:
        found, axes = self._found, tuple(range(1, exact.ndim))
        powers = np.sum(exact**2, axis=axes), np.sum((exact - restored) ** 2, axis=axes)
        for position, (signal, error) in enumerate(zip(*powers, strict=True)):
            rated = decibels(signal, error) if signal > 0 else np.inf
            if rated < (np.inf if found.worst_db is None else found.worst_db):
                found.worst, found.worst_db = self._stimuli + position, rated

    def result(self) -> LayerComparison:
        """Return the comparison over all batches."""
        found, (signal, power, cross, error) = self._found, self._sums
        found.sqnr_db = decibels(signal, error)
        with np.errstate(invalid="ignore"):
            norm = np.sqrt(signal * power)
            found.cosine = float(1.0 if error == 0 else 0.0 if norm == 0 else cross / norm)
        found.saturated = self._saturated / max(self._count, 1)
        found.alone_db = None if found.alone_error is None else decibels(signal, self._alone_power)
        found.unused = found.levels.unused if found.levels else 0.0
        return found


def first_difference(expected: np.ndarray, found: np.ndarray, kind: NumType, slack: float = 0.0) -> Difference | None:
    """Return the first element that differs, None without any; floats may differ by 1e-4 of the largest finite magnitude.

    Equal infinities are equal, and NaN equals only NaN. Masked elements of `found`, which the export does not compute, are
    ignored. `slack` is the tolerated share of the range, at least one step: after float layers, and on targets with their own
    arithmetic.
    """
    missing, found = np.ma.getmaskarray(found), np.ma.getdata(found)
    if kind.is_float:
        finite = np.isfinite(expected)
        tolerance = max(1e-4, slack) * max(float(np.max(np.abs(expected), initial=0.0, where=finite)), 1e-6)
        with np.errstate(invalid="ignore"):
            near = np.abs(expected.astype(np.float64) - found) <= tolerance
        wrong = ~(near & finite | (expected == found) | (np.isnan(expected) & np.isnan(found)))
    elif slack:
        wrong = np.abs(expected.astype(np.int64) - found) > max(1, slack * (kind.qmax - kind.qmin))
    else:
        wrong = expected != found
    wrong &= ~missing
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(index, float(expected[index]), float(found[index]))
