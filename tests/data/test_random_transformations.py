"""Transformations that draw anew for each image that is learned: what they draw, and what they do with it."""

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py.data.transformations.base import read_transformation
from n2d2py.data.transformations.filters import gaussian
from n2d2py.data.transformations.geometry import Flip, RotatedSlice, SliceExtraction, resize_bilinear
from n2d2py.data.transformations.random import Distortion, _Displacement

IMAGE = np.random.RandomState(1).randint(0, 256, (9, 12, 3)).astype(np.uint8)


@pytest.fixture
def learned(ini):
    """A function from the keys of a section to its transformation, as learning reads it."""

    def make(text: str):
        section = ini(f"[t]\n{text}\nApplyTo=LearnOnly\n").section("t")
        return read_transformation(section, inference=False, learning=True)

    return make


def results(transformation, count: int, image: np.ndarray = IMAGE) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [transformation.draw_parameters(image, random).apply(image) for _ in range(count)]


def test_flips_are_drawn_evenly_and_on_their_axes(learned):
    found = results(learned("Type=FlipTransformation\nRandomHorizontalFlip=1\nRandomVerticalFlip=1"), 400)
    ways = [Flip(across, down).apply(IMAGE) for across in (False, True) for down in (False, True)]
    counts = [sum(np.array_equal(each, way) for each in found) for way in ways]
    assert sum(counts) == 400 and min(counts) > 70
    fixed = learned("Type=FlipTransformation\nRandomHorizontalFlip=1\nVerticalFlip=1")
    assert {int(np.array_equal(each[::-1], IMAGE)) for each in results(fixed, 40)} == {0, 1}
    assert all(np.array_equal(each[::-1], IMAGE) or np.array_equal(each[::-1, ::-1], IMAGE) for each in results(fixed, 40))


def test_slices_begin_anywhere_inside(learned):
    random = np.random.default_rng(3)
    part = learned("Type=SliceExtractionTransformation\nWidth=10\nHeight=4\nRandomOffsetX=1\nOffsetY=2")
    drawn = [part.draw_parameters(IMAGE, random) for _ in range(100)]
    assert {(each.offset_x, each.offset_y) for each in drawn} == {(x, 2) for x in range(3)}
    assert all(np.array_equal(each.apply(IMAGE), IMAGE[2:6, each.offset_x : each.offset_x + 10]) for each in drawn)


@pytest.mark.parametrize("angle, turned", [(90.0, lambda x: np.rot90(x, -1)), (180.0, lambda x: x[::-1, ::-1])])
def test_slices_turn_clockwise_about_their_centre(angle, turned):
    part = SliceExtraction(5, 5, 4, 2)
    assert np.array_equal(RotatedSlice(part, angle, 5, 5).apply(IMAGE), turned(part.apply(IMAGE)))


def test_slices_are_taken_larger_and_rescaled(learned):
    part = learned(
        "Type=SliceExtractionTransformation\nWidth=4\nHeight=3\nRandomScaling=1\nRandomScalingRange=2 2\nOffsetX=1\nOffsetY=1"
    )
    assert all(np.array_equal(each, resize_bilinear(IMAGE[1:7, 1:9], 3, 4)) for each in results(part, 3))


def test_pixels_are_read_between_others_and_at_the_border_outside():
    moved = _Displacement(np.zeros((1, 4)), np.full((1, 4), 0.5))
    row = np.array([0, 10, 20, 30], np.float32)[None, :, None]
    assert moved.apply(row)[0, :, 0].tolist() == [0, 5, 15, 25]
    moved = _Displacement(np.zeros((1, 4)), np.full((1, 4), 1.0))
    labels = np.array([[5, 6, 7, 8]])
    assert moved.apply_to_map(labels).tolist() == [[-1, 5, 6, 7]]
    assert _Displacement(moved.down, moved.across, unlabelled=False).apply_to_map(labels).tolist() == [[5, 5, 6, 7]]


def test_borders_of_turned_slices():
    part = SliceExtraction(3, 1, 1, 0, padding=True, border="ConstantBorder", value=(7.0, 8.0))
    image = np.array([[[1, 2]] * 5], np.uint8)
    assert RotatedSlice(part, 90.0, 3, 1).apply(image)[0].tolist() == [[7, 8], [1, 2], [7, 8]]
    mean = SliceExtraction(3, 1, 1, 0, padding=True, border="MeanBorder")
    assert RotatedSlice(mean, 90.0, 3, 1).apply(np.arange(5.0)[None, :, None])[0, :, 0].tolist() == [2, 2, 2]
    assert RotatedSlice(part, 90.0, 3, 1).apply_to_map(np.arange(5)[None]).tolist() == [[-1, 2, -1]]


def test_a_distortion_without_strength_changes_nothing_and_a_turn_is_one(learned):
    assert all(np.array_equal(each, IMAGE) for each in results(learned("Type=DistortionTransformation"), 3))
    ramp = np.mgrid[:21, :21].transpose(1, 2, 0).astype(np.float64)
    random = np.random.default_rng(2)
    found = Distortion(turn=20.0).draw_parameters(ramp, random).apply(ramp)[5:16, 5:16] - 10
    at = ramp[5:16, 5:16] - 10
    # the image of positions shows where each pixel is read: its place less that of the turned point, and its place again
    turn = np.arcsin(found[5, 10, 0] / 5)
    assert 0 < abs(turn) < np.deg2rad(20)
    turned = np.stack(
        [np.cos(turn) * at[..., 0] - np.sin(turn) * at[..., 1], np.sin(turn) * at[..., 0] + np.cos(turn) * at[..., 1]], axis=-1
    )
    np.testing.assert_allclose(found, 2 * at - turned, atol=1 / 16)  # OpenCV rounds positions to 1/32


def test_elastic_noise_is_smoothed_by_the_gaussian():
    point = np.zeros((13, 17))
    point[6, 8] = 1
    found = Distortion(5, 3.0, 1.0)._smooth(point)
    np.testing.assert_allclose(found[4:9, 6:11], gaussian(5, 5, 3.0), atol=1e-12)
    assert np.count_nonzero(found) == 25
    ends = Distortion(40, 3.0, 1.0)._smooth(np.ones((13, 17)))
    assert ends.shape == (13, 17) and ends[0, 0] < ends[6, 8] < 1  # nothing comes from outside


def test_gain_bias_and_gamma_of_each_channel(learned):
    keys = "GainRange[0]=0.5 0.5\nGainRange[1]=1 1\nBiasRange=0.1 0.1\nGammaRange=2 2\nGammaVarProb=0 1 0"
    (found,) = results(learned(f"Type=RandomAffineTransformation\n{keys}"), 1)
    wide = IMAGE.astype(np.float64)
    wanted = np.stack([0.5 * wide[..., 0], (wide[..., 1] / 255) ** 2 * 255, wide[..., 2]], axis=-1) + 25.5
    assert np.array_equal(found, np.clip(np.rint(wanted), 0, 255))


def test_gamma_alone_where_it_varies_and_masked_channels_as_they_are(learned):
    keys = "GainRange=0.5 0.5\nGammaRange=2 2\nGammaVarProb=0.5\nDisjointGamma=1\nChannelsMask=1 0 1"
    found = results(learned(f"Type=RandomAffineTransformation\n{keys}"), 60)
    assert all(np.array_equal(each[..., 1], IMAGE[..., 1]) for each in found)
    wide = IMAGE[..., ::2].astype(np.float64)
    ways = [np.rint(0.5 * wide), np.rint((wide / 255) ** 2 * 255)]
    counts = [sum(np.array_equal(each[..., ::2], way) for each in found) for way in ways]
    assert sum(counts) == 60 and min(counts) > 15


def test_parts_have_the_drawn_share_and_ratio(learned):
    crop = learned(
        "Type=RandomResizeCropTransformation\nWidth=5\nHeight=4\nScaleMin=0.2\nScaleMax=0.6\nRatioMin=0.5\nRatioMax=2"
    )
    image, random = np.zeros((90, 120, 1), np.uint8), np.random.default_rng(6)
    drawn = [crop.draw_parameters(image, random) for _ in range(200)]
    parts = [each.part for each in drawn]
    shares = np.array([each.height * each.width / 10800 for each in parts])
    ratios = np.array([each.width / each.height for each in parts])
    assert shares.min() > 0.18 and shares.max() < 0.62 and shares.std() > 0.08
    assert ratios.min() > 0.48 and ratios.max() < 2.1 and 80 < (ratios < 1).sum() < 140
    assert all(each.offset_y + each.height <= 90 and each.offset_x + each.width <= 120 for each in parts)
    assert len({each.offset_y for each in parts}) > 20 and drawn[0].apply(image).shape == (4, 5, 1)
    whole = learned("Type=RandomResizeCropTransformation\nWidth=5\nHeight=4\nRatioMin=1.3334\nRatioMax=1.3334")
    assert np.array_equal(results(whole, 1)[0], resize_bilinear(IMAGE, 4, 5))


def test_compression_leaves_more_noise_the_stronger_it_is(learned):
    smooth = resize_bilinear(IMAGE, 64, 64)
    noise = [
        float(abs(each.astype(int) - smooth).mean())
        for level in ("0 0", "50 50", "95 95")
        for each in results(learned(f"Type=CompressionNoiseTransformation\nCompressionRange={level}"), 1, smooth)
    ]
    assert noise[0] < noise[1] < noise[2] and noise[0] < 3
    assert results(learned("Type=CompressionNoiseTransformation"), 1, smooth[..., :1])[0].shape == (64, 64, 1)


def test_stripes_begin_anywhere_inside(learned):
    stripes = learned(
        "Type=StripeRemoveTransformation\nAxis=0\nOffset=0\nLength=2\nNbIterations=2\nStepOffset=3\nRandomOffset=1"
    )
    found = results(stripes, 60)
    assert {each.shape for each in found} == {(9, 8, 3)}
    assert len({each.tobytes() for each in found}) == 6  # 12 - 4 columns, the second stripe 3 further: 0 to 5


@every(
    "text, message",
    [
        ("Type=SliceExtractionTransformation\nWidth=1\nHeight=1\nRandomScaling=1\nRandomScalingRange=1.2 0.8", "interval"),
        ("Type=RandomResizeCropTransformation\nWidth=1\nHeight=1\nScaleMin=0", "interval"),
        ("Type=RandomAffineTransformation\nGainRange=1", "interval"),
        ("Type=RandomAffineTransformation\nGainRange[1]=1 1", "GainRange[1]"),
        ("Type=RandomAffineTransformation\nBiasVarProb=2", "probability"),
        ("Type=DistortionTransformation\nElasticSigma=0", "not positive"),
    ],
)
def test_keys_without_meaning(text, message, learned):
    line = error_line(learned, text)
    assert "E417" in line and message in line
