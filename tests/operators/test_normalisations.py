"""Normalisations over channels and unpooling, element by element as their formulas say."""

import numpy as np
import pytest
from support.errors import error_line
from support.ops import LRN, Identity, Softmax, Unpool
from support.tables import every

from n2d2py.graph import Node
from n2d2py.operators.normalize.op import lp_normalize

NODE = Node("n", Identity(), ["x"], ["n"])
X = np.random.default_rng(5).normal(size=(2, 5, 2, 3))


@every("size", range(1, 12))
def test_response_normalisation(size):
    """The window of channel c begins (size - 1) // 2 before it, and ends size // 2 behind it."""
    op = LRN(size, 0.5, 0.75, 1.5)
    wanted = np.empty_like(X)
    for c in range(5):
        window = [i for i in range(c - (size - 1) // 2, c + size // 2 + 1) if 0 <= i < 5]
        wanted[:, c] = X[:, c] / (1.5 + 0.5 * sum(X[:, i] ** 2 for i in window)) ** 0.75
    np.testing.assert_allclose(op.run([X], None)[0], wanted, rtol=1e-12)
    assert op.output_shapes([X.shape], None) == [X.shape]
    assert op.macs([X.shape], (1, 5, 2, 3), None) == 30 * min(size, 5)


@pytest.mark.parametrize("power", [1, 2])
def test_positions_of_norm_1(power):
    x = X.copy()
    x[0, :, 1, 2] = 0
    found = lp_normalize(5, power).run([x], NODE)[0]
    norms = (np.abs(found) ** power).sum(axis=1)
    wanted = np.ones((2, 2, 3))
    wanted[0, 1, 2] = 0
    np.testing.assert_allclose(norms, wanted, rtol=1e-11)
    np.testing.assert_allclose(np.sign(found), np.sign(x))
    assert lp_normalize(5, power).macs([x.shape], (1, 5, 2, 3), None) == 60
    tiny = np.full((1, 5, 1, 1), 1e-15)
    np.testing.assert_allclose(lp_normalize(5, power).run([tiny], NODE)[0], tiny / 1e-12, rtol=0.01)


def unpooled(x, z, kernel, stride, pads, size):
    """Each value at the first largest element of its window."""
    result = np.zeros((*x.shape[:2], *size))
    for n, c, i, j in np.ndindex(x.shape):
        spots = [
            (i * stride[0] - pads[0] + u, j * stride[1] - pads[1] + v)
            for u in range(kernel[0])
            for v in range(kernel[1])
            if 0 <= i * stride[0] - pads[0] + u < z.shape[2] and 0 <= j * stride[1] - pads[1] + v < z.shape[3]
        ]
        line, column = max(spots, key=lambda at: (z[n, c, at[0], at[1]], -at[0], -at[1]))
        if line < size[0] and column < size[1]:
            result[n, c, line, column] += x[n, c, i, j]
    return result


@every(
    "kernel, stride, pads, image",
    [
        ((2, 2), (2, 2), (0, 0, 0, 0), (4, 6)),
        ((2, 3), (2, 3), (0, 0, 0, 0), (5, 7)),
        ((3, 2), (3, 2), (1, 0, 1, 0), (4, 6)),
        ((2, 3), (2, 3), (0, 1, 0, 2), (4, 6)),
        ((3, 3), (2, 1), (1, 1, 1, 1), (5, 4)),
        ((2, 2), (1, 1), (0, 0, 0, 0), (3, 4)),
    ],
)
@every("kind", [np.float64, np.int8])
def test_values_go_back_to_the_largest_of_their_windows(kernel, stride, pads, image, kind):
    rng = np.random.default_rng(1)
    z = rng.integers(-4, 4, (2, 3, *image)).astype(kind)
    op = Unpool(kernel, stride, pads)
    pooled = [(n + p + q - k) // s + 1 for n, p, q, k, s in zip(image, pads[:2], pads[2:], kernel, stride, strict=True)]
    x = rng.integers(1, 9, (2, 3, *pooled)).astype(kind)
    size = [(n - 1) * s + k - p - q for n, s, k, p, q in zip(pooled, stride, kernel, pads[:2], pads[2:], strict=True)]
    node = Node("n", op, ["x", "z"], ["n"])
    assert op.output_shapes([x.shape, z.shape], node) == [(2, 3, *size)]
    np.testing.assert_array_equal(op.run([x, z], node)[0], unpooled(x, z, kernel, stride, pads, size))


@every(
    "kernel, stride, overlaps",
    [((2, 3), (2, 3), False), ((2, 3), (3, 4), False), ((2, 3), (1, 3), True), ((2, 3), (2, 2), True), ((1, 1), (1, 1), False)],
)
def test_windows_that_overlap(kernel, stride, overlaps):
    assert Unpool(kernel, stride).overlaps is overlaps


@pytest.mark.parametrize(
    "x, z, text",
    [
        ((1, 3, 2, 3), (1, 4, 4, 6), ("3x2x4", "3x2x3")),
        ((1, 3, 2, 2), (1, 3, 4, 6), ("3x2x3", "2x2x3")),
        ((1, 3, 3, 3), (1, 3, 4, 6), ("3x2x3", "3x3x3")),
    ],
)
def test_what_a_pool_did_not_give(x, z, text):
    op = Unpool((2, 2), (2, 2))
    assert "E210" in error_line(lambda: op.output_shapes([x, z], Node("n", op, ["x", "z"], ["n"])))


@every("group", [0, 1, 2, 3, 6])
def test_softmax_of_groups_of_channels(group):
    x = np.random.default_rng(2).normal(size=(2, 6, 2, 3))
    found = Softmax(group).run([x], None)[0]
    parts = x.reshape(2, -1, group or 6, 2, 3)
    shares = np.exp(parts) / np.exp(parts).sum(2, keepdims=True)
    np.testing.assert_allclose(found, shares.reshape(x.shape), rtol=1e-9)
    np.testing.assert_allclose(Softmax(group, log=True).run([x], None)[0], np.log(shares).reshape(x.shape), atol=1e-9)
