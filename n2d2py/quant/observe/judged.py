"""Rating of quantized outputs: row by row, without constant parts, and by their decisions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.exact import BLOCK

_LEAST_DB = 15.0
"""Required SQNR of all rows of an output together, in dB."""
_FLATTERED_DB = 3.0
"""Additional dB on the calibration samples: what ten networks of docs/lab/networks.md lose on others."""
_ENOUGH = 64
"""Independent decisions that outweigh the margin if at most half of `_CHANGED` change (resnet18: 97 % at 16.5 dB)."""
_LEAST_ROW_DB = 3.0
"""Required SQNR of each row: below it, the error is half of the signal."""
_CHANGED = 0.05
"""Share of decisions that may change, beyond two standard deviations of their number."""
_CLEAR = 0.1
"""Margin, relative to the deviation, below which a largest value, or a score near one half, decides nothing."""
_SCORE_STEP = 1 / 128
"""Errors of scores in [0, 1] that never count."""
_CONSTANT = 1e-12
"""Variance / mean square below which a row is constant and errors are relative to the value; float32 gives 1e-15."""
_VALUES = 8
"""Fewest values of a row for a variance."""


@dataclass(frozen=True)
class OutputFigure:
    """Rating of one output over some samples.

    Attributes:
        decibels: variance of the float values around their row means, over the error power; all rows together.
        row, row_decibels: the worst row (-1 if there is only one) and its figure.
        changed: share of clear decisions that change; None without any.
        detections: decisions are scores above one half, otherwise the largest value of a vector.
        decisions: number of independent decisions.
        least: required dB.
        weights: (1, ...) factors that make squared errors comparable: 1 / variance, for the failing rows if only some rows
            fail.
    """

    output: str
    decibels: float
    row: int
    row_decibels: float
    changed: float | None
    detections: bool
    decisions: int
    least: float
    weights: np.ndarray

    @property
    def shortfall(self) -> float:
        """The worst error as a multiple of the allowed one: above 1 the output fails."""
        ratios = [10 ** ((self.least - self.decibels) / 10), 10 ** ((_LEAST_ROW_DB - self.row_decibels) / 10)]
        if self.changed is not None:
            count = self.changed * self.decisions
            ratios.append(max(0.0, count - 2 * count**0.5) / (_CHANGED * self.decisions))
        return max(ratios)

    @property
    def alone(self) -> bool:
        """True if a single row fails, which other rows may hide."""
        return self.row >= 0 and self.row_decibels < _LEAST_ROW_DB

    def __str__(self) -> str:
        text = f"{self.row_decibels if self.alone else self.decibels:.1f} dB"
        if self.changed is not None:
            text += (
                f" and {100 * (1 - self.changed):.0f} % of {'its detections' if self.detections else 'the largest values'} kept"
            )
        return text


def worst_output(
    real: Mapping[str, np.ndarray], restored: Mapping[str, np.ndarray], unseen: bool, noise: bool, states: Collection[str] = ()
) -> OutputFigure | None:
    """Return the figure of the output that is furthest from floating point, by the values (N, ...) in `restored`; None without
    any.

    `unseen`: the samples were not used for calibration. `noise`: the samples are synthetic, so outputs may be almost constant;
    constant values then count, and no single row. The same applies to `states`.
    """
    least = _LEAST_DB + (0 if unseen else _FLATTERED_DB)
    figures = [
        _figure(name, real[name], values, least, noise, name in states) for name, values in restored.items() if values.size
    ]
    return max(figures, key=lambda figure: figure.shortfall, default=None)


@np.errstate(invalid="ignore", over="ignore", divide="ignore")  # NaN and infinities of a network
def _figure(name: str, real: np.ndarray, restored: np.ndarray, least: float, noise: bool, is_state: bool) -> OutputFigure:
    together = noise or is_state
    axis = _row_axis(real.shape)
    rows, restored_rows = in_rows(np.asarray(real)), in_rows(restored)
    step = max(1, BLOCK // rows[0].size)
    parts = [_row_figures(rows[k : k + step], restored_rows[k : k + step]) for k in range(0, len(rows), step)]
    variance, power, error, low, high = np.concatenate(parts, axis=1)
    variance = np.where(together | (variance < _CONSTANT * power), power, variance)
    scored = (low >= 0) & (low < _CLEAR) & (high <= 1)
    error = np.maximum(0, error - _SCORE_STEP**2 * scored) * (rows[0].size >= _VALUES)
    ratios = np.where((error > 0) & (not together), variance / error, np.inf)
    worst = int(ratios.argmin())
    short = ratios < 10 ** (_LEAST_ROW_DB / 10)
    weights = np.where(short | ~short.any(), 1 / np.maximum(variance, 1e-30), 0)
    detections = bool(scored.any() and not scored.all() and rows.shape[2] > 1)
    if is_state:
        decided: tuple[float | None, bool, int] = None, False, 0
    elif detections:
        decided = _detections(rows[scored], restored_rows[scored])
    else:
        decided = _largest(rows, restored_rows, bool(scored.all()))
    if decided[0] is not None and decided[0] <= _CHANGED / 2 and decided[2] >= _ENOUGH:
        least = min(least, _LEAST_DB)
    return OutputFigure(
        name,
        _decibels(variance.sum() / error.sum() if error.sum() > 0 else np.inf),
        worst if len(rows) > 1 else -1,
        _decibels(ratios[worst]),
        *decided,
        least,
        weights.reshape([1] * axis + [-1] + [1] * (real.ndim - axis - 1)),
    )


def _row_figures(rows: np.ndarray, restored: np.ndarray) -> np.ndarray:
    """Return variance, mean square, mean squared error, smallest and largest value of each row: float64 (5, rows)."""
    rows, axes = rows.astype(np.float64), (1, 2)
    error = np.square(rows - restored).mean(axis=axes)
    return np.stack([rows.var(axis=axes), np.square(rows).mean(axis=axes), error, rows.min(axis=axes), rows.max(axis=axes)])


def relative_errors(real: Mapping[str, np.ndarray], restored: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Return each output's squared error (N, ...) relative to its variance: of all rows together, and the mean over rows."""
    errors = {}
    for name, values in restored.items():
        exact = np.asarray(real[name], np.float64)
        error = np.square(in_rows(exact) - in_rows(values.astype(np.float64))).mean(axis=(1, 2))
        total = max(float(in_rows(exact).var(axis=(1, 2)).mean()), 1e-30)
        errors[name] = float(error.mean()) / total, float((error * row_weights(exact).reshape(-1)).mean())
    return errors


def row_weights(real: np.ndarray) -> np.ndarray:
    """Return factors (1, ...) that make squared errors of an output (N, ...) comparable: 1 / variance of each row. A nearly
    constant row counts as one that deviates by 1e-4 of the largest row, or as scores whose errors count."""
    axis, rows = _row_axis(real.shape), in_rows(real.astype(np.float64))
    variance = rows.var(axis=(1, 2))
    scored = (rows.min(axis=(1, 2)) >= 0) & (rows.max(axis=(1, 2)) <= 1)
    floor = np.maximum(_SCORE_STEP**2 * scored, 1e-8 * np.square(rows).mean(axis=(1, 2)).max(initial=0))
    shape = [1] * axis + [-1] + [1] * (real.ndim - axis - 1)
    return (1 / np.maximum(np.maximum(variance, floor), 1e-30)).reshape(shape)


def in_rows(values: np.ndarray) -> np.ndarray:
    """Return the values (N, ...) by row: (rows, N, positions)."""
    axis = _row_axis(values.shape)
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], len(values), -1)


def _decibels(ratio: float) -> float:
    return float(10 * np.log10(max(ratio, 1e-30)))


def _row_axis(shape: tuple[int, ...]) -> int:
    """Return the axis of an output (N, ...) whose elements are rows: channels of feature maps, the shorter axis of arrays."""
    last = len(shape) - 1
    if last == 1 or (last == 3 and shape[1] > 1) or 1 < shape[1] <= shape[last]:
        return 1
    return last


def _detections(rows: np.ndarray, restored: np.ndarray) -> tuple[float | None, bool, int]:
    """Return the share of scores above one half that fall below it."""
    above, clear = rows > 0.5, np.abs(rows - 0.5) > _CLEAR
    count = int(np.count_nonzero(above & clear))
    wrong = np.count_nonzero(((restored > 0.5) != above) & clear)
    return (float(wrong / count) if count else None), True, min(count, rows.shape[1])


def _largest(rows: np.ndarray, restored: np.ndarray, scores: bool) -> tuple[float | None, bool, int]:
    """Return the share of positions at which another, clearly smaller row becomes the largest."""
    if len(rows) < 2:
        return None, False, 0
    wrong = 0
    for exact, values in zip(rows.swapaxes(0, 1), restored.swapaxes(0, 1), strict=True):  # one stimulus after the other
        exact = exact.astype(np.float64)
        chosen = np.take_along_axis(exact, values.argmax(axis=0)[None], 0)[0]
        clear = np.maximum(_CLEAR * exact.std(axis=0), _SCORE_STEP * scores)
        wrong += np.count_nonzero(exact.max(axis=0) - chosen > clear)
    return wrong / rows[0].size, False, rows.shape[1]
