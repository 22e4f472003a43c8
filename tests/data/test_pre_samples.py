"""-pre-samples: pictures and arrays of one stimulus after each step."""

import numpy as np
import pytest
from PIL import Image
from support.errors import error_line
from support.tables import every

from n2d2py.data import build_provider
from n2d2py.data.preprocessing import find_pixels
from n2d2py.data.provider import write_pre_samples
from n2d2py.errors import N2D2Error

RGB = [[[10, 20, 30], [40, 50, 60]], [[70, 80, 90], [100, 110, 255]]]
TEXT = (
    "[database]\nType=DIR_Database\nDataPath=data\nRandomPartitioning=0\n"
    "[sp]\nSizeX=2\nSizeY=2\nNbChannels=3\n"
    "[sp.Transformation-1]\nType=FlipTransformation\nHorizontalFlip=1\n"
    "[sp.Transformation-2]\nType=ColorSpaceTransformation\nColorSpace=RGB\n"
    "[sp.Transformation-3]\nType=RangeAffineTransformation\nFirstOperator=Minus\n"
    "FirstValue=128\n"
)


@pytest.fixture
def provider(ini, picture):
    picture("data/a/0.png", np.zeros((2, 2, 3)))
    picture("data/a/1.png", RGB)
    return build_provider(ini(TEXT))


def test_files_of_each_step(provider, tmp_path):
    written = write_pre_samples(provider, 1, tmp_path / "out")
    assert [path.name for path in written] == [
        *"1_00_as_read.png 1_01_Flip.png 1_02_ColorSpace.png 1_03_RangeAffine.npy 1_03_RangeAffine.png".split()
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    flipped = np.array(RGB)[:, ::-1]
    np.testing.assert_array_equal(np.asarray(Image.open(written[0])), RGB)
    for path in written[1:3]:  # true colours whatever the order in memory
        np.testing.assert_array_equal(np.asarray(Image.open(path)), flipped)
    np.testing.assert_array_equal(np.load(written[3]), flipped - 128.0)
    stretched = np.rint((flipped - 10) * (255 / 245))
    np.testing.assert_array_equal(np.asarray(Image.open(written[4])), stretched)


def test_channels_and_spectra(ini, picture, tmp_path):
    picture("data/a/0.png", RGB)
    provider = build_provider(
        ini(
            TEXT[: TEXT.index("[sp.")].replace("NbChannels=3", "NbChannels=2")
            + "[sp.ChannelTransformation]\nType=ChannelExtractionTransformation\nCSChannel=Gray\n"
            "[sp.ChannelsTransformation]\nType=DFTTransformation\n"
        )
    )
    written = write_pre_samples(provider, 0, tmp_path / "out")
    assert [path.name for path in written] == [
        *"0_00_as_read.png 0_01_channel_0_ChannelExtraction.png 0_02_channel_0_DFT.npy".split(),
        *"0_03_channels_together.npy".split(),
    ]
    assert np.load(written[2]).shape == (2, 2, 2)


@pytest.mark.parametrize("position", [-1, 2])
def test_a_stimulus_that_is_not_there(provider, tmp_path, position):
    assert f"E416: stimulus {position} " in error_line(write_pre_samples, provider, position, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_option(request, tmp_path, capsys):
    from n2d2py.cli import main

    network = str(request.config.rootpath / "models" / "LeNet.ini")
    assert main([network, "-w", "/dev/null", "-pre-samples", "2", "-o", str(tmp_path)]) == 0
    assert "pipeline: as read: 8x8x1 uint8" in capsys.readouterr().err
    picture = np.asarray(Image.open(tmp_path / "pre_samples" / "2_01_Rescale.png"))
    assert picture.shape == (32, 32)
    assert main([network, "-w", "/dev/null", "-pre-samples", "99999", "-o", str(tmp_path)]) == 1


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
