"""Filters, gradients, morphology, spectra, colour spaces, equalization: as OpenCV computes them."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.transformations.color import ColorSpace
from n2d2py.data.transformations.equalize import Equalize, clahe, equalize
from n2d2py.data.transformations.filters import Filter, GradientFilter, WallisFilter
from n2d2py.data.transformations.morphology import Morphology, element
from n2d2py.data.transformations.spectrum import DCT, DFT, fast_size

VECTORS = np.load(Path(__file__).parent / "opencv_filters.npz")
SCENE, REAL = VECTORS["scene"], VECTORS["real"][:, :, None]
PLANE = SCENE[:, :, 1:2]
KERNEL = tuple(map(tuple, VECTORS["kernel"]))


def _keys(start):
    return sorted(key for key in VECTORS.files if key.startswith(start))


def test_filter():
    np.testing.assert_array_equal(Filter(KERNEL).apply(SCENE), VECTORS["filter_u8"])
    result = Filter(KERNEL).apply(REAL)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result[:, :, 0], VECTORS["filter_f32"], atol=3e-6)


@every("key", _keys("gradient_"))
def test_gradients(key):
    _, name, size = key.split("_")
    result = GradientFilter(name, int(size), 0.5, 0.1).apply(PLANE)
    np.testing.assert_allclose(result[:, :, 0], VECTORS[key], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [3, 4])
def test_local_wallis_filter(size):
    result = WallisFilter(size).apply(PLANE)
    np.testing.assert_allclose(result[:, :, 0], VECTORS[f"wallis_{size}"], rtol=1e-3, atol=2e-3)


@every("key", _keys("element_"))
def test_structuring_elements(key):
    _, shape, size = key.split("_")
    np.testing.assert_array_equal(element(shape, int(size)), VECTORS[key].astype(bool))


@every("key", _keys("morphology_"))
def test_morphology(key):
    _, operation, shape, size, iterations = key.split("_")
    result = Morphology(operation, int(size), shape, int(iterations)).apply(PLANE)
    assert result.dtype == np.uint8
    np.testing.assert_array_equal(result[:, :, 0], VECTORS[key])


@pytest.mark.parametrize("two, name", [(True, "2d"), (False, "rows")])
def test_spectra(two, name):
    np.testing.assert_allclose(DFT(two).apply(REAL), VECTORS[f"dft_{name}"], atol=1e-4)
    np.testing.assert_allclose(DCT(two).apply(REAL)[:, :, 0], VECTORS[f"dct_{name}"], atol=1e-5)


def test_sizes_of_spectra():
    assert [fast_size(size) for size in range(1, 1200)] == VECTORS["optimal"].tolist()


@every("space, there, back", [("HSV", 0, 1), ("HLS", 1, 1), ("YCrCb", 0, 0), ("CIELab", 0, 1), ("CIELuv", 1, 2)])
def test_colour_spaces_within_units(space, there, back):
    colors = VECTORS["colors"]
    for key, name, source, units in (
        (f"to_{space}", space, colors, there),
        (f"from_{space}", f"{space}_to_BGR", VECTORS[f"to_{space}"], back),
    ):
        result = ColorSpace(name).apply(source)
        assert result.dtype == np.uint8
        difference = np.abs(result.astype(int) - VECTORS[key])
        if space in ("HSV", "HLS") and key.startswith("to_"):
            difference[:, :, 0] = np.minimum(difference[:, :, 0], 180 - difference[:, :, 0])
        assert difference.max() <= units, (key, difference.max())


@every("space", ["HSV", "HLS", "YCrCb", "CIELab", "CIELuv"])
def test_colour_spaces_of_red_green_blue(space):
    colors = VECTORS["colors"]
    np.testing.assert_array_equal(ColorSpace(f"RGB_to_{space}").apply(colors[:, :, ::-1]), ColorSpace(space).apply(colors))
    converted = VECTORS[f"to_{space}"]
    np.testing.assert_array_equal(
        ColorSpace(f"{space}_to_RGB").apply(converted)[:, :, ::-1], ColorSpace(f"{space}_to_BGR").apply(converted)
    )


def test_equalization():
    np.testing.assert_array_equal(equalize(VECTORS["large"]), VECTORS["equalized"])
    assert equalize(np.full((3, 3), 7, np.uint8)).tolist() == [[7] * 3] * 3
    colours = Equalize().apply(SCENE)
    assert np.abs(colours.astype(int) - VECTORS["equalized_scene"]).max() <= 1


@every("key", _keys("clahe_"))
def test_adaptive_equalization(key):
    if key == "clahe_even":
        result = clahe(VECTORS["large"][:48, :64], 3.0, 8)
    else:
        _, clip, grid = key.split("_")
        result = clahe(VECTORS["large"], float(clip), int(grid))
    np.testing.assert_array_equal(result, VECTORS[key])
