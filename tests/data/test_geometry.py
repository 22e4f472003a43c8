"""Transformations of sizes, values and colours: by hand, and against stored results of OpenCV (make_opencv_vectors.py)."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.transformations.base import Inapplicable
from n2d2py.data.transformations.color import ChannelExtraction, ColorSpace, gray
from n2d2py.data.transformations.geometry import (
    BORDERS,
    Flip,
    PadCrop,
    RescaleTransformation,
    ReshapeTransformation,
    SliceExtraction,
    add_border,
    resize_bilinear,
)
from n2d2py.data.transformations.values import NormalizeTransformation, RangeAffine, RangeClipping, Threshold

VECTORS = np.load(Path(__file__).parent / "opencv_vectors.npz")


def _row(*values):
    return np.array(values, np.uint8)[None, :, None]


def _flat(image):
    return image.reshape(-1).tolist()


@every("border", [name for name in BORDERS if name != "MeanBorder"])
def test_borders_are_those_of_opencv(border):
    result = add_border(VECTORS["picture"][:3, :4], (2, 5, 7, 3), border, (9.0, 8.0, 7.0))
    np.testing.assert_array_equal(result, VECTORS[f"border_{border}"])


def test_the_mean_border_is_the_mean_of_each_channel_rounded_to_even():
    image = np.array([[[1, 10], [2, 20]]], np.uint8)
    assert add_border(image, (0, 0, 0, 1), "MeanBorder")[0, 2].tolist() == [2, 15]
    assert _flat(add_border(_row(1, 2, 4), (0, 0, 2, 1), "MeanBorder")) == [2, 2, 1, 2, 4, 2]


def test_a_constant_border_is_saturated_and_zero_by_default():
    assert _flat(add_border(_row(5), (0, 0, 1, 0), "ConstantBorder", (300.0,))) == [255, 5]
    assert _flat(add_border(_row(5), (0, 0, 1, 0), "ConstantBorder")) == [0, 5]


def test_a_border_value_for_each_channel_or_for_all():
    image = np.ones((1, 1, 3), np.uint8)
    with pytest.raises(Inapplicable, match="2 values for 3 channels"):
        add_border(image, (1, 0, 0, 0), "ConstantBorder", (1.0, 2.0))


@every(
    "target, expected",
    [
        (2, [2, 3]),  # d = -3: ceil(-1.5) = -1: 1 cut before, 2 after
        (4, [1, 2, 3, 4]),  # d = -1: nothing before, 1 after
        (6, [0, 1, 2, 3, 4, 5]),  # d = 1: 1 before, none after
        (8, [0, 0, 1, 2, 3, 4, 5, 0]),
    ],
)
def test_pad_crop_puts_the_larger_half_before(target, expected):
    result = PadCrop(target, 1, border="ConstantBorder").apply(_row(1, 2, 3, 4, 5))
    assert _flat(result) == expected


def test_pad_crop_crops_one_side_and_pads_the_other():
    image = np.arange(6, dtype=np.uint8).reshape(2, 3, 1)
    result = PadCrop(1, 4, border="ReplicateBorder").apply(image)
    assert _flat(result) == [1, 1, 4, 4]


def test_pad_crop_additive():
    assert PadCrop(2, -1, additive=True).apply(np.zeros((4, 4, 3), np.uint8)).shape == (3, 6, 3)
    with pytest.raises(Inapplicable, match="would be 6x0"):
        PadCrop(2, -4, additive=True).apply(np.zeros((4, 4, 3), np.uint8))


@pytest.mark.parametrize("fit, expected", [(True, (63, 85)), (False, (96, 128))])
def test_rescale_keeps_the_ratio_and_truncates(fit, expected):
    # Ratios 85/80 = 1.0625 and 96/60 = 1.6; 1.0625 * 60 = 63.75.
    assert RescaleTransformation(85, 96, True, fit).target(60, 80) == expected


def test_rescale_never_loses_a_side():
    assert RescaleTransformation(4, 4, True, True).apply(np.zeros((1, 100, 1), np.uint8)).shape == (1, 4, 1)


def test_slice_at_an_offset():
    image = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    assert _flat(SliceExtraction(2, 1, 1, 2).apply(image)) == [9, 10]
    assert SliceExtraction(0, 2).apply(image).shape == (2, 4, 1)


def test_a_slice_beyond_the_image_needs_padding():
    with pytest.raises(Inapplicable, match="3x1 at \\(2, 0\\) is not inside the 4x1 image"):
        SliceExtraction(3, 1, 2).apply(_row(1, 2, 3, 4))
    padded = SliceExtraction(3, 1, 2, padding=True, border="ConstantBorder", value=(7.0,))
    assert _flat(padded.apply(_row(1, 2, 3, 4))) == [3, 4, 7]
    assert padded.map_range((10.0, 20.0)) == (7.0, 20.0)


def test_flip():
    image = np.arange(4, dtype=np.uint8).reshape(2, 2, 1)
    assert _flat(Flip(horizontal=True).apply(image)) == [1, 0, 3, 2]
    assert _flat(Flip(vertical=True).apply(image)) == [2, 3, 0, 1]
    assert _flat(Flip(True, True).apply(image)) == [3, 2, 1, 0]
    assert _flat(Flip().apply(image)) == [0, 1, 2, 3]


def test_reshape_keeps_the_row_major_order():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert ReshapeTransformation(4).apply(image).tolist() == image.reshape(4, 1, 3).tolist()
    assert ReshapeTransformation(0, 6, 1).apply(image)[1, 0, 0] == 6
    with pytest.raises(Inapplicable, match="12 values do not make 5 rows of 3 channels"):
        ReshapeTransformation(5).apply(image)


def _values(*values, dtype=np.uint8):
    return np.array(values, dtype)[None, :, None]


def test_affine_of_bytes_to_minus_one_one():
    affine = RangeAffine("Divides", (127.5,), "Minus", (1.0,))
    result = affine.apply(_values(0, 255, 51))
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result[0, :, 0], np.array([-1, 1, -0.6], np.float32))
    assert affine.map_range((0.0, 255.0)) == (-1.0, 1.0)


def test_affine_per_channel_in_the_order_of_the_image():
    affine = RangeAffine("Minus", (1.0, 2.0, 3.0), "Multiplies", (10.0,))
    image = np.array([[[1, 1, 1]]], np.uint8)
    assert affine.apply(image)[0, 0].tolist() == [0, -10, -20]
    assert affine.map_range((0.0, 255.0)) == (-30.0, 2540.0)
    with pytest.raises(Inapplicable, match="3 values for 1 channels"):
        affine.apply(_values(1))


@every("operator, value, expected", [("Plus", 2.0, 7), ("Minus", 2.0, 3), ("Multiplies", -2.0, -10), ("Divides", 2.0, 2.5)])
def test_affine_operators(operator, value, expected):
    assert RangeAffine(operator, (value,)).apply(_values(5))[0, 0, 0] == expected


def test_affine_truncates_towards_zero_and_orders_its_range():
    affine = RangeAffine("Multiplies", (-0.5,), truncate=True)
    assert affine.apply(_values(5, 4))[0, :, 0].tolist() == [-2, -2]
    assert affine.map_range((0.0, 5.0)) == (-2.0, 0.0)


@pytest.mark.parametrize("norm, expected", [("L1", [-6 / 7, 8 / 7]), ("L2", [-1.2, 1.6]), ("Linf", [-1.5, 2.0])])
def test_normalize_to_a_norm_of_2(norm, expected):
    result = NormalizeTransformation(norm, 2.0).apply(_values(-3, 4, dtype=np.float32))
    np.testing.assert_allclose(result[0, :, 0], expected, rtol=1e-6)


def test_normalize_min_max():
    normalize = NormalizeTransformation("MinMax", low=-1.0, high=1.0)
    assert normalize.apply(_values(10, 20, 15))[0, :, 0].tolist() == [-1, 1, 0]
    assert normalize.apply(_values(9, 9))[0, :, 0].tolist() == [-1, -1]
    assert normalize.map_range((0.0, 255.0)) == (-1.0, 1.0)


def test_normalize_per_channel():
    image = np.array([[[0, 5], [10, 6]]], np.uint8)
    assert NormalizeTransformation(per_channel=True).apply(image).tolist() == [[[0, 0], [1, 1]]]
    np.testing.assert_allclose(NormalizeTransformation().apply(image), [[[0, 0.5], [1, 0.6]]], rtol=1e-6)


def test_normalize_of_nothing_is_zero():
    assert NormalizeTransformation("L2").apply(_values(0, 0)).tolist() == [[[0.0], [0.0]]]


def test_clipping_maps_to_the_unit_range():
    assert RangeClipping(10.0, 20.0).apply(_values(0, 15, 30))[0, :, 0].tolist() == [0, 0.5, 1]
    assert RangeClipping().apply(_values(2, 3, 6))[0, :, 0].tolist() == [0, 0.25, 1]
    assert RangeClipping().apply(_values(4, 4))[0, :, 0].tolist() == [0, 0]


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
    result = Threshold(5.0, operation=operation, maximum=9.0).apply(_values(1, 5, 8))
    assert result.dtype == np.uint8 and result[0, :, 0].tolist() == expected


def test_threshold_of_bytes_is_floored_that_of_reals_is_not():
    assert Threshold(5.5).apply(_values(5, 6))[0, :, 0].tolist() == [0, 1]
    assert Threshold(5.5).apply(_values(5.4, 5.6, dtype=np.float32))[0, :, 0].tolist() == [0, 1]


def test_otsu_parts_two_levels_and_refuses_colours():
    result = Threshold(0.0, otsu=True, maximum=255.0).apply(_values(10, 12, 200, 210))
    assert result[0, :, 0].tolist() == [0, 0, 255, 255]
    with pytest.raises(Inapplicable, match="one channel"):
        Threshold(0.0, otsu=True).apply(np.zeros((1, 1, 3), np.uint8))


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


def test_signed_integers_round_to_even_and_keep_their_sign():
    row = np.array([[[-3], [-4]]], np.int16)
    np.testing.assert_array_equal(resize_bilinear(row, 1, 1)[0, 0], [-4])  # -3.5


def test_the_same_size_is_the_same_image():
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert resize_bilinear(image, 2, 2) is image


PICTURE = VECTORS["picture"]


def test_gray_is_that_of_opencv():
    np.testing.assert_array_equal(gray(PICTURE)[:, :, 0], VECTORS["gray"])
    np.testing.assert_allclose(gray(PICTURE.astype(np.float32) / 255)[:, :, 0], VECTORS["gray_f32"], atol=1e-6)


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


@every(
    "channel, expected",
    [("Blue", 10), ("Green", 20), ("Red", 30), ("Gray", 22), ("Value", 30), ("Hue", 15), ("Saturation", 170), ("Y", 22)],
)
def test_channels_by_hand(channel, expected):
    image = np.array([[[10, 20, 30]]], np.uint8)  # gray: 1.14 + 11.74 + 8.97 = 21.85
    result = ChannelExtraction(channel).apply(image)
    assert result.shape == (1, 1, 1) and result[0, 0, 0] == expected


def test_a_gray_image_is_gray_already():
    image = np.array([[[7]]], np.uint8)
    assert ChannelExtraction("Gray").apply(image) is image


def test_conversions_that_have_no_meaning():
    with pytest.raises(Inapplicable, match="2 channels"):
        ColorSpace("RGB").apply(np.zeros((1, 1, 2), np.uint8))
    with pytest.raises(Inapplicable, match="8-bit"):
        ColorSpace("HSV").apply(np.zeros((1, 1, 3), np.float32))
