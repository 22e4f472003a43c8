"""Frames of a camera to the bytes of an input: the definition against Pillow, OpenCV and real numbers, the kernels against the definition."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.errors import refused
from support.frame_cases import frame_cases, program
from support.kernel_harness import each_compiler, printed_by

from n2d2py.arithmetic.frame import FILTERS, FLIPS, Axis, FrameSource, axis_weights
from n2d2py.arithmetic.pixel_formats import FORMATS, luminance
from n2d2py.data.preprocessing import Preprocessing
from n2d2py.errors import N2D2Error


@pytest.mark.parametrize(
    "form, line, pixels",
    [
        ("rgb", [1, 2, 3, 4, 5, 6], [[1, 2, 3], [4, 5, 6]]),
        ("bgr", [1, 2, 3, 4, 5, 6], [[3, 2, 1], [6, 5, 4]]),
        ("rgba", [1, 2, 3, 99, 4, 5, 6, 98], [[1, 2, 3], [4, 5, 6]]),
        ("gray", [7, 8], [[7], [8]]),
        ("rgb565", [0x00, 0xF8, 0xE0, 0x07], [[255, 0, 0], [0, 255, 0]]),
        ("rgb565be", [0x08, 0x21, 0x00, 0x1F], [[8, 4, 8], [0, 0, 255]]),
        ("yuyv", [235, 128, 16, 128], [[255, 255, 255], [0, 0, 0]]),
        ("yuyv", [81, 90, 81, 240], [[254, 0, 0], [254, 0, 0]]),  # red of BT.601: Y 81.5, U 90, V 240
        ("uyvy", [90, 81, 240, 81], [[254, 0, 0], [254, 0, 0]]),
    ],
)
def test_pixels_by_hand(form, line, pixels):
    assert FORMATS[form].decode(np.array([[*line, 77]], np.uint8), 2).tolist() == [pixels]


def test_a_square_of_bayer_by_hand():
    """Mirrored at all sides: red and blue spread over the square, green is its own or the mean of both."""
    for form, line in (("rggb", [10, 20, 31, 40]), ("grbg", [20, 10, 40, 31]), ("gbrg", [31, 40, 10, 20])):
        made = FORMATS[form].decode(np.reshape(line, (2, 2)).astype(np.uint8), 2)
        assert (made[:, :, 0] == 10).all() and (made[:, :, 2] == 40).all(), form
        assert sorted(made[:, :, 1].ravel().tolist()) == [20, 26, 26, 31]
    with pytest.raises(N2D2Error, match=r"E407.* is 1x9, but the sides of bggr have 2 to 16384 pixels"):
        FrameSource("bggr").convert(np.zeros((9, 1), np.uint8), 1, (3, 4, 4))


def test_a_format_comes_back_within_what_it_holds():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (5, 7, 3)).astype(np.uint8)
    for form, lost in (("rgb", 0), ("bgr", 0), ("rgba", 0), ("rgb565", 7), ("rgb565be", 7)):
        assert np.ptp(FORMATS[form].decode(FORMATS[form].encode(pixels), 7).astype(int) - pixels) <= 2 * lost
    assert (FORMATS["gray"].decode(FORMATS["gray"].encode(pixels), 7) == luminance(pixels)).all()
    flat = np.broadcast_to(pixels[:, :1], pixels.shape)  # the two pixels of a pair share their colour
    for form in ("yuyv", "uyvy"):
        assert abs(FORMATS[form].decode(FORMATS[form].encode(flat), 7).astype(int) - flat).max() <= 3
    flat = np.broadcast_to(pixels[:1, :1], pixels.shape)  # a plain area keeps its colour in all formats
    assert all(
        abs(FORMATS[form].decode(FORMATS[form].encode(flat), 7).astype(int) - flat).max() <= 7
        for form in FORMATS
        if form != "gray"
    )


def test_weights_by_hand():
    """Five pixels to two: each covers two and a half; the triangle has its top at pixel 0.75 and reaches 2.5 pixels; position 0.75."""
    axis = Axis(0, 5, 2, 0)
    assert axis_weights(axis, 2, "area").tolist() == [[2, 2, 1, 0, 0], [0, 0, 1, 2, 2]]
    assert axis_weights(axis, 2, "nearest").tolist() == [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert axis_weights(axis, 2, "bilinear").tolist() == [[1, 3, 0, 0, 0], [0, 0, 0, 3, 1]]
    assert axis_weights(axis, 2, "antialias").tolist() == [[7, 9, 5, 1, 0], [0, 1, 5, 9, 7]]


def drawn(seed: int, count: int):
    """Images, and the size that they get."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        height, width, high, wide = (int(one) for one in (*rng.integers(1, 300, 2), *rng.integers(1, 130, 2)))
        yield rng.integers(0, 256, (height, width, 3)).astype(np.uint8), high, wide


def converted(pixels: np.ndarray, high: int, wide: int, name: str, **more: Any) -> np.ndarray:
    return FrameSource("rgb", name, **more).convert(FORMATS["rgb"].encode(pixels), pixels.shape[1], (3, high, wide)).astype(int)


@pytest.mark.parametrize("name", FILTERS)
def test_real_numbers(name):
    """The exact quotient is at most 0.51 away: of the 8 bits after the point, rounding costs 1/512."""
    for pixels, high, wide in drawn(1, 12):
        down, across = (
            axis_weights(Axis(0, size, target, 0), target, name)
            for size, target in zip(pixels.shape, (high, wide), strict=False)
        )
        exact = np.einsum("hy,yxc,wx->hwc", down / down.sum(1)[:, None], pixels, across / across.sum(1)[:, None], optimize=True)
        assert abs(converted(pixels, high, wide, name) - exact).max() <= 0.5 + 1 / 256


def test_pillow():
    """At most one level from Pillow, which rounds between the two directions."""
    from PIL import Image

    for pixels, high, wide in drawn(2, 20):
        image = Image.fromarray(pixels)
        pillow = np.asarray(image.resize((wide, high), Image.Resampling.BILINEAR)).astype(int)
        assert abs(converted(pixels, high, wide, "antialias") - pillow).max() <= 1
    pixels = np.random.default_rng(3).integers(0, 256, (60, 90, 3)).astype(np.uint8)
    reduced = np.asarray(Image.fromarray(pixels).reduce(3)).astype(int)
    assert abs(converted(pixels, 20, 30, "area") - reduced).max() <= 1


def test_opencv():
    """At most one level from OpenCV, whose factors have 11 bits."""
    cv2 = pytest.importorskip("cv2")
    for pixels, high, wide in drawn(4, 40):
        names = {"bilinear": cv2.INTER_LINEAR}
        if high <= len(pixels) and wide <= pixels.shape[1]:
            names["area"] = cv2.INTER_AREA
        for name, number in names.items():
            assert abs(converted(pixels, high, wide, name) - cv2.resize(pixels, (wide, high), interpolation=number)).max() <= 1
        even = pixels[: len(pixels) // 2 * 2, : pixels.shape[1] // 2 * 2]
        for form, code in (("YUYV", "YUYV"), ("UYVY", "UYVY"), ("NV12", "NV12"), ("NV21", "NV21")) if even.size else ():
            lines = FORMATS[form.lower()].encode(even)
            packed = lines if form.startswith("NV") else lines.reshape(len(lines), -1, 2)
            wanted = cv2.cvtColor(packed, getattr(cv2, f"COLOR_YUV2RGB_{code}")).astype(int)
            assert abs(FORMATS[form.lower()].decode(lines, even.shape[1]) - wanted).max() <= 1
        if min(even.shape[:2]) > 2:  # OpenCV names the second pixel of the second row, and copies its border
            for form, code in (("rggb", "BG"), ("grbg", "GB"), ("gbrg", "GR"), ("bggr", "RG")):
                lines = FORMATS[form].encode(even)
                wanted = cv2.cvtColor(lines, getattr(cv2, f"COLOR_Bayer{code}2RGB"))
                assert (FORMATS[form].decode(lines, even.shape[1])[1:-1, 1:-1] == wanted[1:-1, 1:-1]).all()


def test_shorter_side_and_crops():
    """The window of a resize, and the resize of a window."""
    pixels = np.random.default_rng(5).integers(0, 256, (60, 90, 3)).astype(np.uint8)
    whole = converted(pixels, 40, 60, "antialias")
    assert (converted(pixels, 32, 33, "antialias", resize=(40,)) == whole[4:36, 14:47]).all()  # 13.5 is rounded to even
    assert (converted(pixels, 32, 33, "antialias", resize=(60, 40)) == whole[4:36, 14:47]).all()
    middle = converted(pixels[10:50, 20:70], 20, 30, "area")
    assert (converted(pixels, 20, 30, "area", crop=(50, 40)) == middle).all()
    for more in ({"crop": (91, 10)}, {"resize": (20,)}):
        assert refused(r"E407.* is 90x60, smaller than the crop", converted, pixels, 32, 33, "area", **more)


def test_margins_of_a_letterbox():
    """Sizes and margins of Ultralytics' LetterBox and TensorFlow's resize_with_pad by their published formulas; the image is a resize."""
    for pixels, high, wide in drawn(6, 40):
        height, width = pixels.shape[:2]
        for rounding in ("nearest", "down"):
            if rounding == "nearest":
                ratio = min(Fraction(high, height), Fraction(wide, width))
                size = [max(round(width * ratio), 1), max(round(height * ratio), 1)]
                left, top = (round((whole - part) / 2 - 0.1) for whole, part in zip((wide, high), size, strict=True))
            else:
                ratio = max(Fraction(height, high), Fraction(width, wide))
                size = [max(int(width / ratio), 1), max(int(height / ratio), 1)]
                left, top = (math.floor((a - b / ratio) / 2) for a, b in ((wide, width), (high, height)))
            made = converted(pixels, high, wide, "bilinear", pad=114, rounding=rounding)
            image = np.full((high, wide, 3), 114)
            image[top : top + size[1], left : left + size[0]] = converted(pixels, size[1], size[0], "bilinear")
            assert (made == image).all(), (height, width, high, wide, rounding)


def test_flips():
    """A mirrored camera gives what an upright one does, where margins are even; boxes come back to its frame."""
    pixels = np.random.default_rng(7).integers(0, 256, (60, 90, 3)).astype(np.uint8)
    for flip in FLIPS:
        source = FrameSource("nv12", "area", pad=3, flip=flip)
        upright = FrameSource("nv12", "area", pad=3).convert(FORMATS["nv12"].encode(pixels), 90, (3, 20, 46))
        assert (source.convert(source.frame(pixels), 90, (3, 20, 46)) == upright).all()
        marked = np.zeros_like(pixels)
        marked[12:30, 6:33] = 255
        found = source.convert(source.layout.encode(marked), 90, (3, 20, 46))[:, :, 0] > 128
        rows, columns = found.any(1).nonzero()[0], found.any(0).nonzero()[0]
        box = 16 * np.array([[columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]])
        assert abs(source.to_frame(box, (90, 60), (46, 20), 16) / 16 - [6, 12, 33, 30]).max() <= 3, flip
        wide, high = Preprocessing(source=source).placement(90, 60, 46, 20, "")
        image = np.array([[6, 12, 33, 30]])
        corners = image * [wide[0], high[0], wide[0], high[0]] + [wide[1], high[1], wide[1], high[1]]
        back = source.to_frame(np.rint(16 * corners).astype(int), (90, 60), (46, 20), 16) / 16
        mirrored = np.where([*source.flips] * 2, [90, 60] * 2 - image[:, [2, 3, 0, 1]], image)
        assert abs(back - mirrored).max() <= 0.25, flip
        outside = source.to_frame(16 * np.array([[0, 0, 46, 20]]), (90, 60), (46, 20), 16)
        assert outside.tolist() == [[0, 0, 90 * 16, 60 * 16]]


def test_constant_frames_stay():
    for level in (0, 1, 254, 255):
        for name in FILTERS:
            assert (converted(np.full((31, 1000, 3), level, np.uint8), 7, 96, name) == level).all()


@each_compiler(56, 112)
def test_kernels_on_this_machine(compiler, count, tmp_path):
    cases = list(frame_cases(count, seed=count))
    printed = printed_by(program(cases, "std::fputs(text, stdout)"), compiler, tmp_path)
    wanted = [case.wanted for case in cases]
    assert printed == wanted and len(set(wanted)) > count * 0.9
