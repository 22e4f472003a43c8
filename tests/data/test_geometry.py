"""Rescale, PadCrop, SliceExtraction, Flip, Reshape: values by hand, borders as OpenCV's."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.transformations import Inapplicable
from n2d2py.data.transformations.borders import BORDERS, add_border
from n2d2py.data.transformations.geometry import Flip, PadCrop, RescaleTransformation, ReshapeTransformation, SliceExtraction

VECTORS = np.load(Path(__file__).parent / "opencv_vectors.npz")


def _row(*values):
    return np.array(values, np.uint8)[None, :, None]


def _flat(image):
    return image.reshape(-1).tolist()


@every("border", [name for name in BORDERS if name != "MeanBorder"])
def test_borders_are_those_of_opencv(border):
    result = add_border(VECTORS["picture"][:3, :4], (2, 5, 7, 3), border, (9.0, 8.0, 7.0))
    np.testing.assert_array_equal(result, VECTORS[f"border_{border}"])


@every(
    "border, expected",
    [
        ("ConstantBorder", [9, 9, 1, 2, 4, 9]),
        ("ReplicateBorder", [1, 1, 1, 2, 4, 4]),
        ("ReflectBorder", [2, 1, 1, 2, 4, 4]),
        ("WrapBorder", [2, 4, 1, 2, 4, 1]),
        ("MinusOneReflectBorder", [4, 2, 1, 2, 4, 2]),
        ("MeanBorder", [2, 2, 1, 2, 4, 2]),
    ],
)
def test_borders_by_hand(border, expected):
    assert _flat(add_border(_row(1, 2, 4), (0, 0, 2, 1), border, (9.0,))) == expected


def test_the_mean_border_is_the_mean_of_each_channel_rounded_to_even():
    image = np.array([[[1, 10], [2, 20]]], np.uint8)
    assert add_border(image, (0, 0, 0, 1), "MeanBorder")[0, 2].tolist() == [2, 15]


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


def test_rescale_to_the_short_side():
    assert RescaleTransformation(256, 256, True, False).target(375, 500) == (256, 341)


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
