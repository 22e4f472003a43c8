"""What the pipeline makes of a byte, found from outside."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.data.pixels import find_pixels
from n2d2py.errors import N2D2Error

LIKE = np.zeros((5, 7, 3), np.uint8)


def chw(image: np.ndarray) -> np.ndarray:
    return np.moveaxis(image.astype(np.float32), 2, 0)


def test_mean_and_deviation_of_each_channel_and_the_order_of_colours():
    mean, deviation = np.array([0.4, 0.5, 0.6])[:, None, None], np.array([0.2, 0.25, 0.3])[:, None, None]
    found = find_pixels(lambda image: (chw(image[:, :, ::-1]) / 255 - mean) / deviation, LIKE)
    assert found is not None and found.order == (0, 1, 2)
    np.testing.assert_allclose(found.factors, 1 / 255 / deviation[:, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(found.offsets, -(mean / deviation)[:, 0, 0], rtol=1e-5)
    unchanged = find_pixels(chw, LIKE)
    assert unchanged is not None and unchanged.order == (2, 1, 0) and unchanged.factors == (1, 1, 1)


def test_gray_pictures_and_gray_values_of_colours():
    inverted = find_pixels(lambda image: 1 - chw(image)[:1] / 255, LIKE[:, :, :1])
    assert inverted is not None and inverted.order == (0,) and inverted.offsets == (1,)
    np.testing.assert_allclose(inverted.factors, [-1 / 255], rtol=1e-5)
    mixed = find_pixels(lambda image: np.tensordot([0.114, 0.587, 0.299], chw(image), 1)[None], LIKE)
    assert mixed is not None and mixed.order == (0,)
    np.testing.assert_allclose(mixed.factors, [1], rtol=1e-5)


def fail(image: np.ndarray) -> np.ndarray:
    raise N2D2Error("E408", "no", remedy="none")


@every(
    "run, like",
    [
        (lambda image: chw(image) ** 2, LIKE),
        (lambda image: chw(image) - np.arange(7, dtype=np.float32), LIKE),
        (lambda image: chw(image) * 0, LIKE),
        (lambda image: chw(image).mean(0, keepdims=True), LIKE),
        (lambda image: chw(image)[:2], LIKE),
        (lambda image: chw(image).ravel(), LIKE),
        (chw, LIKE.astype(np.float32)),
        (fail, LIKE),
    ],
    ids=["curve", "place", "nothing", "mean of colours", "two channels", "vector", "real values", "refused"],
)
def test_what_has_no_such_map(run, like):
    assert find_pixels(run, like) is None
