"""Crops by content, stripes, morphology, filters, spectra and equalization: values by hand."""

import numpy as np
import pytest
from support.errors import error_line
from support.tables import every

from n2d2py.data.environment import read_environment
from n2d2py.data.pipelines import read_pipelines
from n2d2py.data.transformations import filters as kernels
from n2d2py.data.transformations.base import Inapplicable
from n2d2py.data.transformations.color import ColorSpace
from n2d2py.data.transformations.crops import CentroidCrop, StripeRemove, Trim
from n2d2py.data.transformations.filters import Filter, GradientFilter, MorphologicalReconstruction, Morphology, WallisFilter
from n2d2py.data.transformations.spectrum import DCT, DFT, fast_size
from n2d2py.data.transformations.values import Equalize


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


def test_filters_are_correlations_with_reflected_borders():
    # 2 x - right neighbour; the border of 1 5 9 reflects without repeating 9: 5
    image = _image([[1, 5, 9]])
    assert _rows(Filter(((0.0, 2.0, -1.0),)).apply(image)) == [[0, 1, 13]]
    assert _rows(Filter(((0.0, 2.0, -1.0),)).apply(image.astype(np.float32))) == [[-3, 1, 13]]
    assert _rows(Filter(((0.5, 0.5),)).apply(_image([[1, 2, 5]], np.int32))) == [[2, 2, 4]]  # 1.5, 1.5, 3.5 to even
    assert Filter(((1.0, -2.0),)).map_range((0.0, 255.0)) == (-510.0, 255.0)


@every(
    "name, size, expected",
    [
        ("Sobel", 3, 4.0),  # (1 + 2 + 1) * 2 across the step, halved: nothing down
        ("Scharr", 3, 16.0),  # (3 + 10 + 3) * 2, halved
        ("Sobel", 1, 1.0),
        ("Laplacian", 1, 2.0),  # 1 -2 1 of a square
        ("Laplacian", 3, 8.0),  # 2 0 2 in two rows
    ],
)
def test_gradients_of_a_ramp_and_of_a_square(name, size, expected):
    x = np.arange(9, dtype=np.float32)
    plane = np.tile(x * x if name == "Laplacian" else x, (9, 1))[:, :, None]
    result = GradientFilter(name, size, 0.5, 0.25).apply(plane)[4, 4, 0]
    delta = 0.25 if name == "Laplacian" else (0.25 + 0.25) / 2
    np.testing.assert_allclose(result, 0.5 * expected + delta)


def test_local_contrast():
    # 3x3 around the middle: mean 1, mean of squares 9: 9 / 9 = 1 pixel of 9; the deviation is sqrt(9 - 1)
    image = _image([[0, 0, 0], [0, 9, 0], [0, 0, 0]])
    np.testing.assert_allclose(WallisFilter(3).apply(image)[1, 1, 0], 8 / np.sqrt(8), rtol=1e-6)
    # the corner sees its own value four times, the sides twice, the middle once
    np.testing.assert_allclose(WallisFilter(3).apply(image)[0, 0, 0], -1 / np.sqrt(8), rtol=1e-6)


def test_morphology_with_each_shape():
    dot = np.zeros((5, 5, 1), np.int32)
    dot[2, 2] = 70000
    corners = {"Rectangular": 9, "Cross": 5}
    for shape, count in corners.items():
        assert np.count_nonzero(Morphology("Dilate", 3, shape).apply(dot) == 70000) == count
    assert Morphology("Erode", 5, "Elliptic").element().tolist() == [
        [0, 0, 1, 0, 0],
        [1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1],
        [0, 0, 1, 0, 0],
    ]
    assert np.count_nonzero(Morphology("Dilate", 3, iterations=2).apply(dot)) == 25


@every(
    "operation, expected",
    [
        ("Erode", [1, 1, 1, 2, 2, 2, 2]),
        ("Dilate", [3, 3, 9, 9, 9, 3, 3]),
        ("Opening", [1, 1, 2, 2, 2, 2, 2]),
        ("Closing", [3, 3, 3, 9, 3, 3, 3]),
        ("Gradient", [2, 2, 8, 7, 7, 1, 1]),
        ("TopHat", [2, 0, 1, 7, 0, 1, 0]),
        ("BlackHat", [0, 2, 0, 0, 1, 0, 1]),
    ],
)
def test_operations_of_morphology(operation, expected):
    assert _rows(Morphology(operation, 3).apply(_image([[3, 1, 3, 9, 2, 3, 2]]))) == [expected]


def test_spectra_are_those_of_numpy_and_of_the_definition():
    image = np.random.RandomState(3).rand(4, 7, 1).astype(np.float32)
    padded = np.pad(image[:, :, 0].astype(np.float64), ((0, 0), (0, 1)))  # 8 = 2^3 columns
    for two, wanted in ((True, np.fft.fft2(padded)), (False, np.fft.fft(padded, axis=1))):
        np.testing.assert_allclose(DFT(two).apply(image), np.stack([wanted.real, wanted.imag], axis=2), atol=1e-5)

    def cosines(size):
        index = np.arange(size)
        rows = np.sqrt(2 / size) * np.cos(np.pi * (2 * index + 1) * index[:, None] / (2 * size))
        return np.where(index[:, None] == 0, np.sqrt(1 / size), rows)

    rows = padded @ cosines(8).T
    np.testing.assert_allclose(DCT(False).apply(image)[:, :, 0], rows, atol=1e-5)
    np.testing.assert_allclose(DCT().apply(image)[:, :, 0], cosines(4) @ rows, atol=1e-5)
    assert DCT().apply(np.ones((1, 11, 1), np.uint8)).shape == (2, 12, 1)
    assert [fast_size(size) for size in (1, 7, 11, 13, 31, 241, 1025)] == [1, 8, 12, 15, 32, 243, 1080]


@every(
    "space, pixel, expected",
    [
        ("HSV", [0, 255, 255], [30, 255, 255]),  # yellow: 60 degrees, halved
        ("HLS", [0, 0, 255], [0, 128, 255]),
        ("YCrCb", [100, 100, 100], [100, 128, 128]),
        ("CIELab", [255, 255, 255], [255, 128, 128]),
        ("CIELuv", [0, 0, 0], [0, 96, 136]),  # u and v of black are 0: 134 * 255 / 354 = 96.5, 140 * 255 / 262 = 136.3
        ("HSV_to_RGB", [30, 255, 255], [255, 255, 0]),
        ("YCrCb_to_BGR", [100, 128, 128], [100, 100, 100]),
        ("CIELab_to_BGR", [255, 128, 128], [255, 255, 255]),
        ("RGB_to_HLS", [255, 0, 0], [0, 128, 255]),
    ],
)
def test_colour_spaces_by_hand(space, pixel, expected):
    result = ColorSpace(space).apply(np.array(pixel, np.uint8)[None, None])[0, 0]
    assert np.abs(result.astype(int) - expected).max() <= 1


def test_equalization():
    # of the 3 pixels above the least one, 1 is at most 20, 3 at most 30: 255 / 3 and 255
    assert _rows(Equalize().apply(_image([[10, 20], [30, 30]]))) == [[0, 85], [255, 255]]
    assert _rows(Equalize().apply(np.full((3, 3, 1), 7, np.uint8))) == [[7] * 3] * 3
    colours = Equalize().apply(np.array([[[10, 10, 10], [90, 90, 90]]], np.uint8))
    assert np.abs(colours.astype(int) - [[[0] * 3, [255] * 3]]).max() <= 1


def test_adaptive_equalization_of_one_tile_without_a_limit():
    # shares of the pixels that are at most 10, 20, 30: 1/4, 2/4, 4/4
    assert _rows(Equalize("CLAHE", 0.0, 1).apply(_image([[10, 20], [30, 30]]))) == [[64, 128], [255, 255]]
    with pytest.raises(Inapplicable, match="8 tiles do not fit 2x2"):
        Equalize("CLAHE").apply(_image([[10, 20], [30, 30]]))


def test_types_that_need_opencv_name_its_extra(ini, monkeypatch):
    monkeypatch.setattr("n2d2py.errors.find_spec", lambda name: None)
    line = error_line(_step, ini, "Type=EqualizeTransformation")
    assert "E320" in line and "EqualizeTransformation requires the package cv2" in line and "n2d2py[opencv]" in line
    for settings in ("ColorSpaceTransformation\nColorSpace=HSV", "ChannelExtractionTransformation\nCSChannel=Hue"):
        assert "E320" in error_line(_step, ini, f"Type={settings}")
    for settings in ("ColorSpaceTransformation\nColorSpace=RGB", "ChannelExtractionTransformation\nCSChannel=Gray"):
        assert not _step(ini, f"Type={settings}").needs_opencv
