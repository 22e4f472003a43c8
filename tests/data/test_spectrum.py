"""Windows, magnitude and phase: values by hand and by other formulas."""

import numpy as np
import pytest
from support.tables import every

from n2d2py.data import build_provider
from n2d2py.data.transformations import Inapplicable
from n2d2py.data.transformations.spectrum import DCT, DFT, WINDOWS, Apodization, MagnitudePhase, window
from n2d2py.errors import N2D2Error


@every(
    "name, expected",
    [
        ("Rectangular", [1, 1, 1, 1, 1]),
        ("Hann", [0, 0.5, 1, 0.5, 0]),
        ("Hamming", [0.08, 0.54, 1, 0.54, 0.08]),
        ("Cosine", [0, 0.5**0.5, 1, 0.5**0.5, 0]),
        ("Gaussian", np.exp([-3.125, -0.78125, 0, -0.78125, -3.125])),
        ("Blackman", [0, 0.34, 1, 0.34, 0]),
        ("Kaiser", np.kaiser(5, 5.0)),
    ],
)
def test_windows_of_five_samples(name, expected):
    np.testing.assert_allclose(window(name, 5), expected, atol=1e-12)
    assert window(name, 1).tolist() == [1]


def test_the_parameters_of_windows(ini):
    assert window("Blackman", 5, 0.0)[1] == pytest.approx(0.5)
    np.testing.assert_allclose(window("Gaussian", 3, 1.0), np.exp([-0.5, 0, -0.5]))
    np.testing.assert_allclose(window("Kaiser", 7, 0.0), np.ones(7))


def _read(ini, text):
    return (
        build_provider(ini("[sp]\nSize=4\n[sp.Transformation]\nType=ApodizationTransformation\n" + text))
        ._pipelines["Test"]
        .steps[0]
        .transformation
    )


def test_the_keys_of_windows(ini):
    assert _read(ini, "Size=4\nWindowName=Kaiser\nWindowName.Beta=2") == Apodization(4, "Kaiser", 2)
    assert _read(ini, "Size=4\nWindowName=Hann\nWindowName.Beta=2") == Apodization(4, "Hann")
    with pytest.raises(N2D2Error, match="WindowName.Sigma=0 is not positive"):
        _read(ini, "Size=4\nWindowName=Gaussian\nWindowName.Sigma=0")


@every("name", WINDOWS)
def test_each_row_and_channel_is_windowed(name):
    image = np.random.RandomState(1).rand(3, 8, 2).astype(np.float32)
    result = Apodization(8, name).apply(image)
    np.testing.assert_allclose(result[2, :, 1], image[2, :, 1] * window(name, 8), rtol=1e-6)
    assert result.dtype == np.float32


def test_integers_are_cut_and_ranges_hold_zero():
    result = Apodization(3, "Hamming").apply(np.full((1, 3, 1), 100, np.uint8))
    assert result.dtype == np.uint8 and result.reshape(-1).tolist() == [8, 100, 8]
    assert Apodization(3, "Hamming").map_range((10.0, 255.0)) == (0.0, 255.0)
    with pytest.raises(Inapplicable, match="the window has 4 samples, the image is 3 wide"):
        Apodization(4).apply(np.zeros((1, 3, 1)))


def test_transforms_of_rows_extend_to_fast_sizes():
    image = np.random.RandomState(2).rand(7, 11, 1)
    result = DFT(False).apply(image)
    assert result.shape == (8, 12, 2)
    expected = np.fft.fft(np.pad(image[:, :, 0], ((0, 1), (0, 1))), axis=1)
    np.testing.assert_allclose(result[:, :, 0] + 1j * result[:, :, 1], expected, atol=1e-5)
    assert DCT(False).apply(image).shape == (8, 12, 1)


def test_cosine_transforms_keep_the_energy():
    image = np.random.RandomState(3).rand(6, 10, 1)
    for two in (True, False):
        assert (DCT(two).apply(image) ** 2).sum() == pytest.approx((image**2).sum(), rel=1e-6)
    assert DCT().apply(np.ones((2, 8, 1)))[:, :, 0].round(5).tolist()[0][0] == 4


def test_magnitude_and_phase():
    image = np.array([[[3, 4], [-1, 0], [0, -2]]], np.float32)
    result = MagnitudePhase().apply(image)
    np.testing.assert_allclose(result[0], [[5, np.arctan2(4, 3)], [1, np.pi], [2, -np.pi / 2]], rtol=1e-6)
    np.testing.assert_allclose(MagnitudePhase(True).apply(image)[0, :, 0], np.log([6, 2, 3]), rtol=1e-6)


@pytest.mark.parametrize(
    "transformation, channels, message",
    [
        (DFT(), 3, "it needs one channel, the image has 3"),
        (DCT(), 2, "it needs one channel"),
        (MagnitudePhase(), 1, "it needs the real and the imaginary part"),
    ],
)
def test_numbers_of_channels(transformation, channels, message):
    with pytest.raises(Inapplicable, match=message):
        transformation.apply(np.zeros((2, 2, channels)))
