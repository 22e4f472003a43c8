"""Rounding of weights that minimizes the error of a layer's outputs instead of the error of each weight.

The error of an output is sum_k (w_k - s q_k) x_k; its expected square is e H e^T with H the covariance of the inputs. Weights
are rounded one by one, and the error of each is compensated by the weights not yet rounded (optimal brain surgeon: B. Hassibi
and D. Stork, NIPS 1992; for quantization: E. Frantar et al., "GPTQ", ICLR 2023). Low-bit weights are then refined by coordinate
descent, and their range minimizes the error of the outputs. The result is deterministic.
"""

import numpy as np

from n2d2py.arithmetic.weights import least_level
from n2d2py.quant.observe.covariance import BLOCK, Covariance, shrinkage, shrunk_covariance
from n2d2py.quant.observe.moments import Moments

_SWEEPS = 4
_RATIOS = np.linspace(1.0, 0.3, 36)
"""Candidate ranges, relative to the largest magnitude."""
_NEARBY_RATIOS = (0.85, 0.9, 0.95, 1.05, 1.1, 1.15)
"""Candidate ranges for compensated rounding, relative to the best range of nearest rounding."""
_REFITS = 2
"""Number of times the scale is fitted to the integers."""
_MOST_INPUTS = 1024
"""With more inputs, the range is chosen from the variances alone, and compensated rounding is not tried."""


class CompensatedRounding:
    """Rounding of one layer's weights by the moments of its inputs. The last result is cached."""

    def __init__(self, moments: Moments):
        """Take the moments. A network with low-bit weights drifts so far from the float network that each layer corrects the
        error of the layers before it.
        """
        self._covariance = covariance = shrunk_covariance(moments)
        self._shift: np.ndarray | None = None
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        if moments.drift is not None:
            drift = moments.drift / moments.count * (1 - shrinkage(moments))
            self._shift = np.linalg.solve(covariance.matrix(), drift.transpose(0, 2, 1)).transpose(0, 2, 1)

    def __call__(self, rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
        """Return the integers (O, K) for float weights (O, K) with a scale (O) for each row, or (O, K) for each weight."""
        if self._last is None or not (np.array_equal(rows, self._last[0]) and np.array_equal(scales, self._last[1])):
            self._last = rows, scales, self._rounded(rows, scales, levels)
        return self._last[2]

    def _rounded(self, rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
        shape = self._shape(rows)
        steps = None if scales.ndim == 1 else scales.reshape(shape)
        target = self._target(rows / scales[:, None] if steps is None else rows)
        result = round_compensated(target, self._covariance, levels, steps)
        if self._shift is not None:
            result = descend(target, result, self._covariance.matrix(), levels, steps)
        return result.reshape(rows.shape)

    def magnitudes(self, rows: np.ndarray, largest: np.ndarray, levels: int) -> np.ndarray:
        """Return the magnitudes (O) of integer `levels` with the least error of the outputs, for weights (O, K).

        Nearest rounding gives a first range. For at most 1,024 inputs, ranges near it are tried with compensated rounding, and
        the scale of least squares for its integers is used if it reduces the error.
        """
        best = self._best_of_nearest(rows, largest, levels)
        if rows.shape[1] > _MOST_INPUTS:
            return best
        start, (least, fitted) = best, self._error_of_magnitudes(rows, best, levels)
        for share in (*_NEARBY_RATIOS, *[None] * _REFITS):
            trial = fitted if share is None else np.minimum(start * share, largest)
            cost, fit = self._error_of_magnitudes(rows, trial, levels)
            better = cost < least * (1 - 1e-9)
            best, least, fitted = np.where(better, [trial, cost, fit], [best, least, fitted])
        return best

    def _shape(self, rows: np.ndarray) -> tuple[int, int, int]:
        groups = len(self._covariance.diagonal)
        return groups, len(rows) // groups, rows.shape[1]

    def _target(self, rows: np.ndarray) -> np.ndarray:
        target = rows.reshape(self._shape(rows))
        return target if self._shift is None else target + np.matmul(target, self._shift)

    def _error_of_magnitudes(self, rows: np.ndarray, magnitudes: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the output error (O) for magnitudes (O), and those within a fifth with the least error of equal integers."""
        scales = np.maximum(magnitudes / levels, 1e-300)
        target = self._target(rows / scales[:, None])
        integers = round_compensated(target, self._covariance, levels)
        matrix, error = self._covariance.matrix(), target - integers
        cost = (np.matmul(error, matrix) * error).sum(axis=2).reshape(-1) * scales**2
        along = np.matmul(integers, matrix)
        factors = (target * along).sum(axis=2) / np.maximum((integers * along).sum(axis=2), 1e-300)
        return cost, magnitudes * np.clip(factors.reshape(-1), 0.8, 1.25)

    def _best_of_nearest(self, rows: np.ndarray, largest: np.ndarray, levels: int) -> np.ndarray:
        shaped, lowest = rows.reshape(self._shape(rows)), least_level(levels)
        best, least = largest.copy(), np.full(len(rows), np.inf)
        diagonal = self._covariance.diagonal[:, None, :]
        for ratio in _RATIOS:
            step = np.maximum(largest * ratio / levels, 1e-300).reshape(shaped.shape[:2])[..., None]
            error = shaped - np.clip(np.rint(shaped / step), lowest, levels) * step
            weighed = np.matmul(error, self._covariance.matrix()) if rows.shape[1] <= _MOST_INPUTS else error * diagonal
            cost = (weighed * error).sum(axis=2).reshape(-1)
            better = cost < least * (1 - 1e-9)
            best[better], least[better] = (largest * ratio)[better], cost[better]
        return best


def round_compensated(target: np.ndarray, covariance: Covariance, levels: int, steps: np.ndarray | None = None) -> np.ndarray:
    """Return the integers (G, O, K) near `target` with a small error over inputs of this covariance; `steps` (G, O, K) are
    their scales, else 1.

    With inputs sorted by decreasing variance, the covariance is M M^T with M upper triangular, so the error e H e^T is the sum
    over k of (sum of e_j M_jk over j <= k)^2. Each weight in turn minimizes its own square. The integers are those of GPTQ,
    which factors the inverse instead (J. Chen et al., "The geometry of LLM quantization", 2025), in a tenth of the time.
    """
    size = target.shape[2]
    groups, lowest = np.arange(len(target))[:, None], least_level(levels)
    variances = covariance.diagonal if steps is None else covariance.diagonal * np.square(steps).mean(axis=1)
    order = np.argsort(-variances, axis=1, kind="stable")
    factor = covariance.factor(order, target.shape[1])
    work = np.ascontiguousarray(target.transpose(0, 2, 1), np.float64)[groups, order]
    units = None if steps is None else steps.transpose(0, 2, 1)[groups, order]
    result = np.empty_like(work)
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        upper = factor.block(start, stop)
        across = np.einsum("gkk->gk", upper)[:, :, None]
        shares = np.ascontiguousarray((upper.transpose(0, 2, 1) / across)[:, :, None, :])
        real, rounded = work[:, start:stop], result[:, start:stop]
        wanted, errors = factor.pending(start, stop), np.empty_like(real)
        wanted /= across
        wanted += real
        for k in range(stop - start):
            best = wanted[:, k : k + 1]
            best += np.matmul(shares[:, k, :, :k], errors[:, :k])
            if units is not None:
                best /= units[:, start + k, None]
            np.rint(best, out=best)
            np.minimum(best, levels, out=best)
            np.maximum(best, lowest, out=rounded[:, k : k + 1])
            column = rounded[:, k] if units is None else rounded[:, k] * units[:, start + k]
            np.subtract(real[:, k], column, out=errors[:, k])
        factor.add(start, stop, errors)
    back = np.empty_like(result)
    back[groups, order] = result
    return back.transpose(0, 2, 1)


def descend(
    target: np.ndarray, start: np.ndarray, covariance: np.ndarray, levels: int, steps: np.ndarray | None = None
) -> np.ndarray:
    """Return the integers (G, O, K) with an error of at most that of `start`, by coordinate descent.

    With e = target - q the error e H e^T is least at q_k + (e H)_k / H_kk; rounding this never increases the error.
    """
    result, size, lowest = start.copy(), start.shape[-1], least_level(levels)
    diagonal = np.einsum("gkk->gk", covariance)
    units = np.broadcast_to(1.0, target.shape) if steps is None else steps
    for _ in range(_SWEEPS):
        slope, moved = np.matmul(target - result * units, covariance), False
        for first in range(0, size, BLOCK):
            last = min(first + BLOCK, size)
            local, before = slope[:, :, first:last].copy(), result[:, :, first:last].copy()
            for k in range(first, last):
                unit = units[:, :, k]
                wanted = result[:, :, k] + local[:, :, k - first] / diagonal[:, k][:, None] / unit
                change = np.clip(np.rint(wanted), lowest, levels) - result[:, :, k]
                if change.any():
                    result[:, :, k] += change
                    local -= (change * unit)[:, :, None] * covariance[:, None, k, first:last]
            change = (result[:, :, first:last] - before) * units[:, :, first:last]
            if change.any():
                slope, moved = slope - np.matmul(change, covariance[:, first:last]), True
        if not moved:
            break
    return result
