"""Pictures of each kind as arrays."""

import numpy as np
import pytest
from PIL import Image
from support.tables import every

from n2d2py.data.decode import read_stimulus, register_reader
from n2d2py.errors import InternalError, N2D2Error


@every(
    "name, image, expected",
    [
        ("a.png", Image.new("RGB", (2, 1), (1, 2, 3)), [[[3, 2, 1], [3, 2, 1]]]),  # blue, green, red
        ("a.ppm", Image.new("RGB", (2, 1), (1, 2, 3)), [[[3, 2, 1], [3, 2, 1]]]),
        ("a.png", Image.new("RGBA", (1, 1), (1, 2, 3, 4)), [[[3, 2, 1, 4]]]),
        ("a.png", Image.new("L", (1, 1), 9), [[[9]]]),
        ("a.pgm", Image.new("L", (1, 1), 9), [[[9]]]),
        ("a.png", Image.new("1", (1, 1), 1), [[[255]]]),
        ("a.png", Image.new("RGB", (1, 1), (10, 200, 30)).quantize(2), [[[30, 200, 10]]]),  # a palette
        ("a.png", Image.fromarray(np.array([[1000, 65535]], np.uint16)), np.array([[[1000], [65535]]], np.uint16)),
        ("a.tif", Image.fromarray(np.array([[0.5]], np.float32)), np.array([[[0.5]]], np.float32)),
        ("a.jpg", Image.new("CMYK", (8, 8)), np.full((8, 8, 3), 255, np.uint8)),
    ],
)
def test_kinds_of_pictures(tmp_path, name, image, expected):
    image.save(tmp_path / name)
    result = read_stimulus(tmp_path / name)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == getattr(expected, "dtype", np.uint8)


@pytest.mark.parametrize("shape, image", [((3, 1, 2), (1, 2, 3)), ((4, 5), (4, 5, 1)), ((6,), (1, 6, 1))])
def test_arrays_are_channels_first(tmp_path, shape, image):
    np.save(tmp_path / "a.npy", np.zeros(shape, ">f8"))
    result = read_stimulus(tmp_path / "a.npy")
    assert result.shape == image and result.dtype == np.float32


@every(
    "name, content, message",
    [
        ("a.png", b"", "N2D2-E403: a.png "),
        ("a.jpg", b"\xff\xd8\xff\xe0 nothing", "N2D2-E403: "),
        ("a.npy", b"\x93NUMPY", "N2D2-E402: a.npy "),
        ("a.xyz", b"x", "N2D2-E406: "),
    ],
)
def test_damages(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(N2D2Error) as caught:
        read_stimulus(tmp_path / name, name)
    assert caught.value.line().startswith(message)


def test_pictures_too_large_to_be_meant(tmp_path, monkeypatch):
    Image.new("L", (100, 100)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(N2D2Error, match="E403: a.png cannot be decoded"):
        read_stimulus(tmp_path / "a.png", "a.png")


def test_one_reader_per_extension():
    with pytest.raises(InternalError, match="two readers for .png"):
        register_reader(".png", lambda path, name: np.zeros((1, 1, 1)))
