"""Resizing against stored results of OpenCV (make_opencv_vectors.py), and by hand."""

from pathlib import Path

import numpy as np
from support.tables import every

from n2d2py.data.transformations.resize import resize_bilinear

VECTORS = np.load(Path(__file__).parent / "opencv_vectors.npz")
CASES = [tuple(int(size) for size in case) for case in VECTORS["resizes"]]
SMALL = [index for index, case in enumerate(CASES) if f"resize_{index}_f32_in" in VECTORS]


def _case(index, kind):
    return (VECTORS[f"resize_{index}_{kind}_in"], VECTORS[f"resize_{index}_{kind}_out"], CASES[index][3:])


@every("index", range(len(CASES)), ids=[str(case) for case in CASES])
def test_bytes_are_those_of_opencv(index):
    image, expected, size = _case(index, "u8")
    result = resize_bilinear(image, *size)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result, expected)


@every("index", SMALL)
def test_real_values_are_close_to_opencv(index):
    image, expected, size = _case(index, "f32")
    result = resize_bilinear(image, *size)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=0, atol=5e-6)


@every("index", SMALL)
def test_16_bits_are_within_one_of_opencv(index):
    image, expected, size = _case(index, "u16")
    result = resize_bilinear(image, *size)
    assert result.dtype == np.uint16
    assert np.abs(result.astype(int) - expected).max() <= 1


def test_there_are_vectors_of_each_kind():
    assert len(CASES) >= 12 and len(SMALL) >= 4


def test_half_pixel_centres_by_hand():
    row = np.array([[[0.0], [10.0]]], np.float32)
    # Centres 1/4, 3/4, 5/4, 7/4 of the input minus 1/2: -1/4 (clamped), 1/4, 3/4, 5/4 (clamped).
    np.testing.assert_array_equal(resize_bilinear(row, 1, 4)[0, :, 0], [0, 2.5, 7.5, 10])


def test_no_antialiasing():
    row = np.zeros((1, 9, 1), np.float32)
    row[0, [0, 2, 3, 5, 6, 8]] = 100  # columns 1, 4, 7 are the only ones read
    np.testing.assert_array_equal(resize_bilinear(row, 1, 3), np.zeros((1, 3, 1)))


def test_signed_integers_round_to_even_and_keep_their_sign():
    row = np.array([[[-3], [-4]]], np.int16)
    np.testing.assert_array_equal(resize_bilinear(row, 1, 1)[0, 0], [-4])  # -3.5


def test_the_same_size_is_the_same_image():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert resize_bilinear(image, 2, 2) is image
