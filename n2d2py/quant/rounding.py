"""Rounding of weights that keeps the outputs of a layer, instead of each weight, close to the real ones.

The error of an output is sum_k (w_k - s q_k) x_k; its expected square is e H e^T with H the covariance
of the inputs. Weights are rounded one after the other, and what rounding one of them does to the
outputs is made up for by those still to be rounded (optimal brain surgeon: B. Hassibi and D. Stork,
NIPS 1992; for quantization: E. Frantar et al., "GPTQ", ICLR 2023). All is closed form: no seeds, no
iterations.
"""

from __future__ import annotations

import numpy as np

from n2d2py.quant.moments import Moments
from n2d2py.quant.weights import Rounding

__all__ = ["CompensatedRounding", "round_compensated"]

_DAMPING = 0.01
_BLOCK = 32


class CompensatedRounding:
    """Rounds the weights of one layer together, by the moments of its inputs."""

    def __init__(self, moments: Moments):
        hessian = moments.square / moments.count
        size = hessian.shape[-1]
        diagonal = np.einsum("gkk->gk", hessian).copy()
        # few samples say little about correlations: the matrix is shrunk towards its diagonal
        shrink = size / (size + moments.count)
        hessian *= 1 - shrink
        damping = _DAMPING * diagonal.mean(axis=1, keepdims=True) + 1e-9
        hessian[:, np.arange(size), np.arange(size)] += shrink * diagonal + damping
        self._hessian = hessian

    def __call__(self, rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
        """Integers (O, K) in +-levels for real weights (O, K) with a scale (O) for each row."""
        groups = len(self._hessian)
        target = (rows / scales[:, None]).reshape(groups, len(rows) // groups, -1)
        return round_compensated(target, self._hessian, levels).reshape(rows.shape)


class Remembered:
    """A rounding that is computed once for the same weights and scales."""

    def __init__(self, rounding: Rounding):
        self._rounding = rounding
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def __call__(self, rows: np.ndarray, scales: np.ndarray, levels: int) -> np.ndarray:
        if self._last is None or not (np.array_equal(rows, self._last[0]) and np.array_equal(scales, self._last[1])):
            self._last = rows, scales, self._rounding(rows, scales, levels)
        return self._last[2]


def round_compensated(target: np.ndarray, covariance: np.ndarray, levels: int) -> np.ndarray:
    """Integers (G, O, K) near `target` (in steps) with a small error over inputs of this covariance (G, K, K)."""
    size = target.shape[-1]
    order = np.argsort(-np.einsum("gkk->gk", covariance), axis=1, kind="stable")
    work = np.take_along_axis(target, order[:, None, :], axis=2).astype(np.float64)
    sorted_rows = np.take_along_axis(covariance, order[:, :, None], axis=1)
    sorted_both = np.take_along_axis(sorted_rows, order[:, None, :], axis=2)
    upper = np.linalg.cholesky(np.linalg.inv(sorted_both)).transpose(0, 2, 1)
    result = np.empty_like(work)
    for start in range(0, size, _BLOCK):
        stop = min(start + _BLOCK, size)
        errors = np.empty((*work.shape[:2], stop - start))
        for k in range(start, stop):
            result[:, :, k] = np.clip(np.rint(work[:, :, k]), -levels, levels)
            error = (work[:, :, k] - result[:, :, k]) / upper[:, k, k][:, None]
            work[:, :, k:stop] -= error[:, :, None] * upper[:, None, k, k:stop]
            errors[:, :, k - start] = error
        work[:, :, stop:] -= np.matmul(errors, upper[:, start:stop, stop:])
    inverse = np.argsort(order, axis=1, kind="stable")
    return np.take_along_axis(result, inverse[:, None, :], axis=2)
