"""Each weight is rounded so that its own square of the error is least, in the order of the variances."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.quant.observe import covariance, moments
from n2d2py.quant.observe.covariance import DenseCovariance
from n2d2py.quant.observe.moments import products
from n2d2py.quant.weights.rounding import Remembered, round_compensated


@every("levels", [127, 3])
@every("size", [1, 7, 32, 33, 70])
def test_every_weight_makes_its_own_square_least(size, levels):
    rng = np.random.default_rng(size)
    x = rng.normal(size=(2, 200, size)) * np.geomspace(0.3, 3, size)[rng.permutation(size)]
    matrix = np.einsum("gnk,gnl->gkl", x, x) / 200 + 0.01 * np.eye(size)
    target = rng.normal(0, levels / 3, (2, 3, size))
    found = round_compensated(target, DenseCovariance(matrix), levels)
    assert np.array_equal(found, np.rint(found)) and np.abs(found).max() <= levels
    for group in range(2):
        order = np.argsort(-np.diag(matrix[group]), kind="stable")
        back = order[::-1]
        upper = np.linalg.cholesky(matrix[group][np.ix_(back, back)])[::-1, ::-1]
        error = (target - found)[group][:, order]
        for k in range(size):
            before = error[:, :k] @ upper[:k, k]
            here = np.abs(before + error[:, k] * upper[k, k])
            q = found[group][:, order[k]]
            for step in (-1, 1):
                beside = np.abs(before + (error[:, k] - step) * upper[k, k])
                assert ((here <= beside + 1e-9) | (np.abs(q + step) > levels)).all()


@pytest.mark.parametrize("size", [97, 200, 331])
def test_two_threads_make_the_same_triangles_and_products(size, monkeypatch):
    rng = np.random.default_rng(size)
    columns = rng.integers(-128, 128, (2, 50, size)).astype(np.float32)
    order = np.stack([rng.permutation(size) for _ in range(2)])
    square = products(columns)
    alone = DenseCovariance(square + 1e3 * np.eye(size)).factor(order)
    monkeypatch.setattr(covariance, "_SHARED", 1)
    monkeypatch.setattr(moments, "_SHARED", 1)
    assert np.array_equal(products(columns), square) and np.array_equal(square, np.einsum("gnk,gnl->gkl", columns, columns))
    shared = DenseCovariance(square + 1e3 * np.eye(size)).factor(order)
    for start in range(0, size, covariance.BLOCK):
        stop = min(start + covariance.BLOCK, size)
        assert np.allclose(alone.block(start, stop), shared.block(start, stop), rtol=1e-12, atol=1e-9)
    errors = rng.normal(size=(2, size, 3))
    found = []
    for factor in (alone, shared):
        sums = factor.sums(3)
        sums.add(0, size - 1, errors[:, : size - 1])
        found.append(sums.pending(size - 1, size))
    assert np.allclose(*found, rtol=1e-9, atol=1e-9)


def test_a_remembered_rounding_is_computed_again_for_other_weights():
    calls: list[int] = []

    def rounding(rows, scales, levels):
        calls.append(levels)
        return np.rint(rows / scales[:, None])

    remembered, rows, scales = Remembered(rounding), np.ones((2, 3)), np.array([0.5, 0.25])
    for given in ((rows, scales), (rows.copy(), scales.copy()), (rows * 2, scales), (rows * 2, scales * 2)):
        found = remembered(*given, 127)
        assert np.array_equal(found, np.rint(given[0] / given[1][:, None]))
    assert len(calls) == 3
