"""Colour conversions against stored results of OpenCV, and by hand."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.transformations import Inapplicable
from n2d2py.data.transformations.color import ChannelExtraction, ColorSpace, gray, hsv, ycrcb

VECTORS = np.load(Path(__file__).parent / "opencv_vectors.npz")
PICTURE = VECTORS["picture"]


def test_gray_is_that_of_opencv():
    np.testing.assert_array_equal(gray(PICTURE)[:, :, 0], VECTORS["gray"])
    np.testing.assert_allclose(gray(PICTURE.astype(np.float32) / 255)[:, :, 0], VECTORS["gray_f32"], atol=1e-6)


def test_hsv_is_that_of_opencv():
    np.testing.assert_array_equal(hsv(PICTURE), VECTORS["hsv"])


def test_ycrcb_is_that_of_opencv():
    np.testing.assert_array_equal(ycrcb(PICTURE), VECTORS["ycrcb"])


@every(
    "space, pixel, expected",
    [
        ("RGB", [1, 2, 3], [3, 2, 1]),
        ("BGR", [1, 2, 3], [1, 2, 3]),
        ("RGB", [5], [5, 5, 5]),
        ("BGR", [5], [5, 5, 5]),
        ("RGB", [1, 2, 3, 9], [3, 2, 1]),
        ("BGR", [1, 2, 3, 9], [1, 2, 3]),
        ("RGB_to_BGR", [1, 2, 3], [3, 2, 1]),
        ("HSV", [255, 0, 0], [120, 255, 255]),
        ("RGB_to_HSV", [255, 0, 0], [0, 255, 255]),
    ],
)
def test_spaces_by_hand(space, pixel, expected):
    image = np.array(pixel, np.uint8)[None, None]
    assert ColorSpace(space).apply(image)[0, 0].tolist() == expected


@every("channel, expected", [("Blue", 10), ("Green", 20), ("Red", 30), ("Gray", 22), ("Value", 30)])
def test_channels_by_hand(channel, expected):
    image = np.array([[[10, 20, 30]]], np.uint8)  # gray: 1.14 + 11.74 + 8.97 = 21.85
    result = ChannelExtraction(channel).apply(image)
    assert result.shape == (1, 1, 1) and result[0, 0, 0] == expected


@every(
    "channel, plane, index",
    [("Hue", "hsv", 0), ("Saturation", "hsv", 1), ("Y", "ycrcb", 0), ("Cr", "ycrcb", 1), ("Cb", "ycrcb", 2)],
)
def test_channels_of_other_spaces(channel, plane, index):
    result = ChannelExtraction(channel).apply(PICTURE)
    np.testing.assert_array_equal(result[:, :, 0], VECTORS[plane][:, :, index])


def test_a_gray_image_is_gray_already():
    image = np.array([[[7]]], np.uint8)
    assert ChannelExtraction("Gray").apply(image) is image


def test_conversions_that_have_no_meaning():
    with pytest.raises(Inapplicable, match="2 channels"):
        ColorSpace("RGB").apply(np.zeros((1, 1, 2), np.uint8))
    with pytest.raises(Inapplicable, match="8-bit"):
        ColorSpace("HSV").apply(np.zeros((1, 1, 3), np.float32))
