"""Crops by content, stripes, reconstruction and filters: values by hand, and as OpenCV computes them."""

from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from n2d2py.data.environment import read_environment
from n2d2py.data.pipelines import read_pipelines
from n2d2py.data.transformations import Inapplicable
from n2d2py.data.transformations import filters as kernels
from n2d2py.data.transformations.color import ColorSpace
from n2d2py.data.transformations.crops import CentroidCrop, StripeRemove, Trim
from n2d2py.data.transformations.equalize import Equalize, clahe, equalize
from n2d2py.data.transformations.filters import Filter, GradientFilter, WallisFilter
from n2d2py.data.transformations.morphology import MorphologicalReconstruction, Morphology, element
from n2d2py.data.transformations.spectrum import DCT, DFT, fast_size


def _image(rows, dtype=np.uint8):
    return np.array(rows, dtype)[:, :, None]


def _rows(image):
    return image[:, :, 0].tolist()


def test_the_centre_of_mass_goes_to_the_middle():
    # Masses 0 0 0 2 2 at x = 3.5 -> 3: half = min(3, 2) = 2: columns 1 to 4.
    image = _image([[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [9, 9, 9, 9, 9]])
    assert CentroidCrop(0).apply(image[:2]).shape == (2, 4, 1)
    assert _rows(CentroidCrop(0).apply(image[:2])) == [[0, 0, 1, 1]] * 2
    # Rows 2 2 45 at y = 92/49 -> 1: half = min(1, 2) = 1: rows 0 to 1.
    assert _rows(CentroidCrop(1).apply(image)) == _rows(image[:2])
    assert CentroidCrop().apply(image).shape == (2, 4, 1)


def test_images_without_a_centre():
    with pytest.raises(Inapplicable, match="sum to 0"):
        CentroidCrop().apply(_image([[0, 0]]))
    with pytest.raises(Inapplicable, match="at the border"):
        CentroidCrop().apply(_image([[9, 0, 0]]))
    with pytest.raises(Inapplicable, match="one channel"):
        CentroidCrop().apply(np.ones((2, 2, 3), np.uint8))


def test_stripes():
    image = _image([list(range(10))])
    assert _rows(StripeRemove(0, 2, 3).apply(image)) == [[0, 1, 5, 6, 7, 8, 9]]
    assert _rows(StripeRemove(0, 2, 1, 3, 2).apply(image)) == [[0, 1, 3, 4, 6, 7, 9]]
    assert _rows(StripeRemove(1, 0, 1).apply(_image([[1], [2], [3]]))) == [[2], [3]]
    with pytest.raises(Inapplicable, match="a stripe of 3 at 8 is not inside what is left, 10"):
        StripeRemove(0, 8, 3).apply(image)


def test_trim_cuts_the_uniform_border():
    image = _image([[7, 7, 7, 7, 7], [7, 7, 9, 7, 7], [7, 7, 7, 3, 7], [7, 7, 7, 7, 7]])
    assert _rows(Trim(0).apply(image)) == [[9, 7], [7, 3]]
    assert _rows(Trim(2).apply(_image([[0, 10, 9], [2, 200, 0], [1, 0, 250]]))) == [[200, 0], [0, 250]]
    with pytest.raises(Inapplicable, match="all of one value"):
        Trim(2).apply(_image([[1, 2], [3, 4]]))
    with pytest.raises(Inapplicable, match="8-bit"):
        Trim(0).apply(_image([[1.0, 2.0]], np.float32))


def test_trim_keeps_the_colours():
    image = np.zeros((3, 3, 3), np.uint8)
    image[1, 1] = [1, 2, 3]
    assert Trim(0).apply(image).tolist() == [[[1, 2, 3]]]


def test_opening_by_reconstruction_keeps_shapes():
    image = _image([[5, 0, 5, 5, 5, 0], [0, 0, 5, 5, 5, 5], [0, 0, 5, 5, 5, 0]])
    opened = MorphologicalReconstruction("OpeningByReconstruction", 3).apply(image)
    expected = image.copy()
    expected[0, 0] = 0
    np.testing.assert_array_equal(opened, expected)
    closed = MorphologicalReconstruction("ClosingByReconstruction", 3).apply(5 - image)
    np.testing.assert_array_equal(closed, 5 - expected)
    for operation in ("ReconstructionByErosion", "ReconstructionByDilation"):
        same = MorphologicalReconstruction(operation, 3).apply(image)
        np.testing.assert_array_equal(same, image)


def test_morphology_of_reals_and_ranges():
    image = _image([[-1.5, 2.5, 0.0]], np.float32)
    assert _rows(Morphology("Dilate", 3).apply(image)) == [[2.5, 2.5, 2.5]]
    assert _rows(Morphology("Gradient", 3).apply(image)) == [[4, 4, 2.5]]
    assert Morphology("Erode", 3).map_range((1.0, 9.0)) == (1.0, 9.0)
    assert Morphology("Gradient", 3).map_range((1.0, 9.0)) == (-8.0, 8.0)


def test_global_contrast():
    image = np.random.RandomState(1).randint(0, 256, (5, 6, 3)).astype(np.uint8)
    result = WallisFilter(0, 2.0, 3.0).apply(image)
    np.testing.assert_allclose([result.mean(), result.std()], [2, 3], rtol=1e-5)
    each = WallisFilter(0, 2.0, 3.0, True).apply(image)
    np.testing.assert_allclose(each.mean(axis=(0, 1)), [2] * 3, rtol=1e-5)
    np.testing.assert_allclose(each.std(axis=(0, 1)), [3] * 3, rtol=1e-5)
    with pytest.raises(Inapplicable, match="no contrast"):
        WallisFilter(0).apply(np.ones((2, 2, 1), np.uint8))


def test_the_gradient_is_of_values_over_the_largest_of_their_type():
    image = _image([[0, 255, 0, 0]])
    assert _rows(GradientFilter("Sobel", 1).apply(image)) == [[0, 0, 0.5, 0]]
    reals = GradientFilter("Sobel", 1).apply(image.astype(np.float32))
    assert _rows(reals) == [[0, 0, 127.5, 0]]


# --- kernels


def test_kernels_sum_to_what_they_should():
    for kernel in (
        kernels.laplacian_of_gaussian(7, 5, 1.2),
        kernels.difference_of_gaussians(7, 7, 2.0, 1.0),
        kernels.gabor(9, 7, 0.3, 1.4, 10.0, np.pi / 2, 0.5),
    ):
        np.testing.assert_allclose([kernel[kernel > 0].sum(), kernel[kernel < 0].sum()], [1, -1])
    assert kernels.gaussian(31, 31, 2.0).sum() == pytest.approx(1, abs=1e-6)
    assert kernels.gaussian(3, 1, 1.0)[0, 0] == pytest.approx(np.exp(-0.5) / (2 * np.pi))
    assert kernels.laplacian_of_gaussian(5, 5, 1.0)[2, 2] < 0
    assert kernels.difference_of_gaussians(5, 5, 2.0, 1.0)[2, 2] < 0


def test_a_gabor_kernel_is_odd_along_its_wave():
    kernel = kernels.gabor(5, 5, 0.0, 1.4, 10.0, np.pi / 2, 0.5)
    np.testing.assert_allclose(kernel, -kernel[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(kernel, kernel[::-1], atol=1e-12)


SP = "[sp]\nSizeX=2\nSizeY=2\n[sp.Transformation]\n"


def _step(ini, text):
    document = ini(SP + text)
    pipelines = read_pipelines(document, read_environment(document)).by_set
    return pipelines["Test"].steps[0].transformation


@every(
    "keys, expected",
    [
        ("Kernel=*\nKernel.Mat=1 2 3 4", [[1, 2], [3, 4]]),
        ("Kernel=*\nKernel.Mat=1 2 3 4\nKernel.SizeX=4", [[1, 2, 3, 4]]),
        ("Kernel=*\nKernel.Mat=1 2\nKernel.SizeY=2", [[1], [2]]),
        ("Kernel=Gaussian\nKernel.SizeX=3\nKernel.SizeY=1\nKernel.Positive=0", -kernels.gaussian(3, 1, 2**0.5)),
        ("Kernel=DoG\nKernel.SizeX=3\nKernel.SizeY=3", kernels.difference_of_gaussians(3, 3, 2.0, 1.0)),
        ("Kernel=LoG\nKernel.SizeX=3\nKernel.SizeY=3\nKernel.Sigma=1", kernels.laplacian_of_gaussian(3, 3, 1.0)),
        (
            "Kernel=Gabor\nKernel.SizeX=3\nKernel.SizeY=3\nKernel.Theta=90",
            kernels.gabor(3, 3, np.pi / 2, 2**0.5, 10.0, np.pi / 2, 0.5),
        ),
    ],
)
def test_the_keys_of_kernels(ini, keys, expected):
    step = _step(ini, f"Type=FilterTransformation\n{keys}\n")
    np.testing.assert_allclose(np.array(step.kernel), expected)
    assert str(step) == f"Filter({keys.split()[0][7:]}, {len(expected[0])}x{len(expected)})"


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
    assert Filter(((1.0, -2.0),)).map_range((0.0, 255.0)) == (-510.0, 255.0)


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
