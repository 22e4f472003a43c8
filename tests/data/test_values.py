"""RangeAffine, Normalize, RangeClipping, Threshold: values and ranges by hand."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.transformations import Inapplicable
from n2d2py.data.transformations.values import NormalizeTransformation, RangeAffine, RangeClipping, Threshold, otsu_threshold

VECTORS = np.load(Path(__file__).parent / "opencv_vectors.npz")


def _row(*values, dtype=np.uint8):
    return np.array(values, dtype)[None, :, None]


def test_affine_of_bytes_to_minus_one_one():
    affine = RangeAffine("Divides", (127.5,), "Minus", (1.0,))
    result = affine.apply(_row(0, 255, 51))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result[0, :, 0], np.array([-1, 1, -0.6], np.float32))
    assert affine.map_range((0.0, 255.0)) == (-1.0, 1.0)


def test_affine_per_channel_in_the_order_of_the_image():
    affine = RangeAffine("Minus", (1.0, 2.0, 3.0), "Multiplies", (10.0,))
    image = np.array([[[1, 1, 1]]], np.uint8)
    assert affine.apply(image)[0, 0].tolist() == [0, -10, -20]
    assert affine.map_range((0.0, 255.0)) == (-30.0, 2540.0)
    with pytest.raises(Inapplicable, match="3 values for 1 channels"):
        affine.apply(_row(1))


@every("operator, value, expected", [("Plus", 2.0, 7), ("Minus", 2.0, 3), ("Multiplies", -2.0, -10), ("Divides", 2.0, 2.5)])
def test_affine_operators(operator, value, expected):
    assert RangeAffine(operator, (value,)).apply(_row(5))[0, 0, 0] == expected


def test_affine_truncates_towards_zero_and_orders_its_range():
    affine = RangeAffine("Multiplies", (-0.5,), truncate=True)
    assert affine.apply(_row(5, 4))[0, :, 0].tolist() == [-2, -2]
    assert affine.map_range((0.0, 5.0)) == (-2.0, 0.0)


@pytest.mark.parametrize("norm, expected", [("L1", [-6 / 7, 8 / 7]), ("L2", [-1.2, 1.6]), ("Linf", [-1.5, 2.0])])
def test_normalize_to_a_norm_of_2(norm, expected):
    result = NormalizeTransformation(norm, 2.0).apply(_row(-3, 4, dtype=np.float32))
    np.testing.assert_allclose(result[0, :, 0], expected, rtol=1e-6)


def test_normalize_min_max():
    normalize = NormalizeTransformation("MinMax", low=-1.0, high=1.0)
    assert normalize.apply(_row(10, 20, 15))[0, :, 0].tolist() == [-1, 1, 0]
    assert normalize.apply(_row(9, 9))[0, :, 0].tolist() == [-1, -1]
    assert normalize.map_range((0.0, 255.0)) == (-1.0, 1.0)


def test_normalize_per_channel():
    image = np.array([[[0, 5], [10, 6]]], np.uint8)
    assert NormalizeTransformation(per_channel=True).apply(image).tolist() == [[[0, 0], [1, 1]]]
    np.testing.assert_allclose(NormalizeTransformation().apply(image), [[[0, 0.5], [1, 0.6]]], rtol=1e-6)


def test_normalize_of_nothing_is_zero():
    assert NormalizeTransformation("L2").apply(_row(0, 0)).tolist() == [[[0.0], [0.0]]]


def test_clipping_maps_to_the_unit_range():
    assert RangeClipping(10.0, 20.0).apply(_row(0, 15, 30))[0, :, 0].tolist() == [0, 0.5, 1]
    assert RangeClipping().apply(_row(2, 3, 6))[0, :, 0].tolist() == [0, 0.25, 1]
    assert RangeClipping().apply(_row(4, 4))[0, :, 0].tolist() == [0, 0]


@every(
    "operation, expected",
    [
        ("Binary", [0, 0, 9]),
        ("BinaryInverted", [9, 9, 0]),
        ("Truncate", [1, 5, 5]),
        ("ToZero", [0, 0, 8]),
        ("ToZeroInverted", [1, 5, 0]),
    ],
)
def test_threshold_operations(operation, expected):
    result = Threshold(5.0, operation=operation, maximum=9.0).apply(_row(1, 5, 8))
    assert result.dtype == np.uint8 and result[0, :, 0].tolist() == expected


def test_threshold_of_bytes_is_floored_that_of_reals_is_not():
    assert Threshold(5.5).apply(_row(5, 6))[0, :, 0].tolist() == [0, 1]
    assert Threshold(5.5).apply(_row(5.4, 5.6, dtype=np.float32))[0, :, 0].tolist() == [0, 1]


@every("index", range(4))
def test_otsu_finds_the_threshold_of_opencv(index):
    image = VECTORS[f"otsu_{index}_in"]
    assert otsu_threshold(image[:, :, None]) == VECTORS[f"otsu_{index}_out"]


def test_otsu_parts_two_levels_and_refuses_colours():
    result = Threshold(0.0, otsu=True, maximum=255.0).apply(_row(10, 12, 200, 210))
    assert result[0, :, 0].tolist() == [0, 0, 255, 255]
    with pytest.raises(Inapplicable, match="one channel"):
        Threshold(0.0, otsu=True).apply(np.zeros((1, 1, 3), np.uint8))
