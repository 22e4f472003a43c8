"""Covariances of a layer's inputs, and their triangular factors.

With few samples, correlations are unreliable, so the covariance is shrunk towards its diagonal. For P samples much fewer than K
inputs, it is a diagonal plus a product of rank P, whose factor takes 4 K P^2 operations instead of K^3 / 3.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from n2d2py.concurrency import run_both
from n2d2py.quant.observe.moments import Moments

BLOCK = 32
"""Inputs that are rounded between two matrix products; factors are read in such blocks, in order."""
_LINES = 96
"""Rows of a triangle that are computed together."""
_SHARED = 1024
"""Number of inputs from which two threads compute a triangle."""
_DAMPING = 0.01


def shrinkage(moments: Moments) -> float:
    """Return the share by which the covariance is shrunk towards its diagonal, 0 to 1."""
    sums = moments.square if moments.square is not None else moments.columns
    assert sums is not None
    return sums.shape[-1] / (sums.shape[-1] + moments.count)


def shrunk_covariance(moments: Moments) -> Covariance:
    """Return the shrunk and damped covariance of the samples."""
    share = shrinkage(moments)
    if moments.columns is not None:
        columns = moments.columns.astype(np.float64)
        own = np.square(columns).sum(axis=1) / moments.count
        added = share * own + _damping(own, moments.mixed)
        return ThinCovariance(columns * np.sqrt((1 - share) / moments.count), added, own * (1 - share) + added)
    assert moments.square is not None
    matrix = np.divide(moments.square, moments.count, dtype=np.float64)
    own = np.einsum("gkk->gk", matrix).copy()
    matrix *= 1 - share
    matrix[:, np.arange(own.shape[1]), np.arange(own.shape[1])] += share * own + _damping(own, moments.mixed)
    return DenseCovariance(matrix)


def _damping(diagonal: np.ndarray, mixed: bool) -> np.ndarray:
    return _DAMPING * (diagonal if mixed else diagonal.mean(axis=1, keepdims=True)) + 1e-9


class DenseCovariance:
    """Covariance of K inputs in G groups, stored as a full matrix; its `diagonal` is (G, K)."""

    def __init__(self, matrix: np.ndarray):
        """`matrix` (G, K, K), symmetric and positive definite."""
        self._matrix = matrix
        self.diagonal = np.einsum("gkk->gk", matrix)

    def matrix(self) -> np.ndarray:
        """Return all of it (G, K, K)."""
        return self._matrix

    def factor(self, order: np.ndarray, outputs: int) -> _DenseFactor:
        """Return the factor of the inputs in that order (G, K), for errors of so many outputs."""
        upper = _upper_factor(self._matrix, order[:, ::-1])
        return _DenseFactor(upper[:, ::-1, ::-1].transpose(0, 2, 1), outputs)


def _upper_factor(matrix: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the upper triangular U (G, K, K) with U^T U the permuted matrix, computed by blocks of rows.

    Nearly all work is matrix products, which are faster than NumPy's factorization of a large matrix.
    """
    groups, size = np.arange(len(order))[:, None], order.shape[1]
    result = np.zeros_like(matrix)

    def fill(lines: np.ndarray, rows: np.ndarray, start: int, first: int, last: int) -> None:
        """Compute the columns [first, last) of the rows that begin at `start`, less the part of the rows before them."""
        part = lines[:, :, first - start : last - start]
        part[:] = np.take_along_axis(rows, order[:, None, first:last], axis=2)
        if start:
            part -= np.matmul(
                result[:, :start, start : start + lines.shape[1]].transpose(0, 2, 1), result[:, :start, first:last]
            )

    for start in range(0, size, _LINES):
        stop = min(start + _LINES, size)
        lines, rows = np.empty((len(order), stop - start, size - start)), matrix[groups, order[:, start:stop]]
        middle = (start + size) // 2 if size >= _SHARED else size
        run_both(
            partial(fill, lines, rows, start, start, middle), partial(fill, lines, rows, start, middle, size), middle < size
        )
        square = np.linalg.cholesky(lines[:, :, : stop - start])
        result[:, start:stop, start:stop] = square.transpose(0, 2, 1)
        if stop < size:
            np.matmul(np.linalg.inv(square), lines[:, :, stop - start :], out=result[:, start:stop, stop:])
    return result


class _DenseFactor:
    """M (G, K, K), upper triangular, M M^T the covariance of ordered inputs; and errors e (G, K, O), weighted by M."""

    def __init__(self, upper: np.ndarray, outputs: int):
        self._upper, self._errors = upper, np.zeros((*upper.shape[:2], outputs))

    def block(self, start: int, stop: int) -> np.ndarray:
        """Return the square (G, B, B) of M on its diagonal from `start` to `stop`."""
        return self._upper[:, start:stop, start:stop]

    def pending(self, start: int, stop: int) -> np.ndarray:
        """Return the sums of e_j M_jk over the errors j added so far, for k from `start` to `stop` (G, B, O)."""
        return np.matmul(self._upper[:, :start, start:stop].transpose(0, 2, 1), self._errors[:, :start])

    def add(self, start: int, stop: int, errors: np.ndarray) -> None:
        """Add the errors (G, B, O) of the inputs from `start` to `stop`."""
        self._errors[:, start:stop] = errors


class ThinCovariance:
    """Covariance X^T X + D with few samples X and a diagonal D; the interface of `DenseCovariance`."""

    def __init__(self, samples: np.ndarray, own: np.ndarray, diagonal: np.ndarray):
        """X is `samples` (G, P, K), D has the diagonal `own` (G, K) > 0; `diagonal` (G, K) is that of the sum, given exactly so
        that inputs of equal variance keep their order."""
        self._samples, self._own = samples, own
        self.diagonal = diagonal

    def matrix(self) -> np.ndarray:
        result = np.matmul(self._samples.transpose(0, 2, 1), self._samples)
        inputs = np.arange(self._own.shape[1])
        result[:, inputs, inputs] += self._own
        return result

    def factor(self, order: np.ndarray, outputs: int) -> _ThinFactor:
        samples = np.take_along_axis(self._samples, order[:, None, :], axis=2)
        return _ThinFactor(samples, np.take_along_axis(self._own, order, axis=1), outputs)


Covariance = DenseCovariance | ThinCovariance


class _ThinFactor:
    """The factor as of `_DenseFactor`, block by block from the last one. With S the inverse of I + X D^-1 X^T over the inputs
    after block b, the covariance after their elimination is D + X^T S X (Woodbury). Its columns of b are X^T S X_b. With U the
    triangle of the block and Z = S X_b U^-T, those of M are X^T Z, and the next S is S - Z Z^T."""

    def __init__(self, samples: np.ndarray, own: np.ndarray, outputs: int):
        groups, count, size = samples.shape
        self._samples, self._across = samples, np.empty_like(samples)
        self._triangles: dict[int, np.ndarray] = {}
        self._sums = np.zeros((groups, count, outputs))
        left = np.tile(np.eye(count), (groups, 1, 1))
        for start in reversed(range(0, size, BLOCK)):
            block = samples[:, :, start : start + BLOCK]
            seen = np.matmul(left, block)
            square = np.matmul(block.transpose(0, 2, 1), seen)
            inputs = np.arange(square.shape[1])
            square[:, inputs, inputs] += own[:, start : start + BLOCK]
            upper = np.linalg.cholesky(square[:, ::-1, ::-1])[:, ::-1, ::-1]
            across = np.linalg.solve(upper, seen.transpose(0, 2, 1)).transpose(0, 2, 1)
            left -= np.matmul(across, across.transpose(0, 2, 1))
            self._triangles[start], self._across[:, :, start : start + BLOCK] = upper, across

    def block(self, start: int, stop: int) -> np.ndarray:
        return self._triangles[start]

    def pending(self, start: int, stop: int) -> np.ndarray:
        return np.matmul(self._across[:, :, start:stop].transpose(0, 2, 1), self._sums)

    def add(self, start: int, stop: int, errors: np.ndarray) -> None:
        self._sums += np.matmul(self._samples[:, :, start:stop], errors)
