"""Decoding of stimulus files: images by Pillow, arrays by NumPy, sounds (see sound.py).

Images keep their number of channels, as with OpenCV's IMREAD_UNCHANGED: gray (H, W, 1), colour (H, W, 3) in the order blue,
green, red, with alpha (H, W, 4). 8-bit files give uint8, 16-bit gray ones uint16, floating-point ones float32. The orientation
tag of photographs is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from n2d2py.data.arrays import check_type, open_npy, to_sample_type
from n2d2py.data.sound import read_wav
from n2d2py.data.text import TABLES, read_table, unreadable_error
from n2d2py.errors import N2D2Error
from n2d2py.files import open_picture

PICTURES = (".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff", ".webp")
RECORDINGS = (".csv",)
"""Samples of a sensor, a line each."""

SOUNDS = (".pcm", ".raw", ".wav")
"""WAV files, and 16-bit samples without a header."""

_ORIENTATION = 0x0112
"""Tag of EXIF; 1 is upright."""

_PLAIN_MODES = {
    "1": "L",
    **dict.fromkeys(("PA", "LA", "La", "RGBa"), "RGBA"),
    **dict.fromkeys(("P", "CMYK", "YCbCr", "LAB", "HSV", "RGBX"), "RGB"),
}
"""Mode that an image is converted to, by Pillow's mode of the file."""


def read_stimulus(path: Path, name: str | None = None) -> np.ndarray:
    """Return the stimulus of a file as (H, W, C); `name`: name in messages.

    Raises:
        N2D2Error: E401 missing or unreadable, E402 or E403 damaged, E406 an unknown extension.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        what = f"{name or path} has the unsupported file type '{path.suffix}'"
        raise N2D2Error("E406", what, remedy="convert it to one of " + " ".join(sorted(READERS)))
    return reader(path, name or str(path))


def read_picture(path: Path, name: str | None = None) -> np.ndarray:
    """Return the pixels of an image file, channels in the order blue, green, red (, alpha).

    Raises:
        N2D2Error: E401 missing or unreadable, E403 not an image, truncated or too large.
    """
    return _open_image(path, name or str(path), _pixels)


def picture_size(path: Path, name: str | None = None) -> tuple[int, int]:
    """Return width and height of an image file, from its header.

    Raises:
        N2D2Error: as read_picture.
    """
    return picture_header(path, name)[0]


def picture_header(path: Path, name: str | None = None) -> tuple[tuple[int, int], str, bool]:
    """Return (width, height), Pillow's mode ("RGB", "CMYK", ...) and whether EXIF rotates or flips an image file, from its header.

    Raises:
        N2D2Error: as read_picture.
    """
    return _open_image(
        path, name or str(path), lambda image: (image.size, image.mode, image.getexif().get(_ORIENTATION, 1) != 1)
    )


def _open_image(path: Path, name: str, look: Callable):
    """Return the result of `look` for the opened image; convert all decoder errors to N2D2Error."""
    from PIL import UnidentifiedImageError

    try:
        with open_picture(path) as image:
            return look(image)
    except UnidentifiedImageError:
        raise N2D2Error("E403", f"{name} is not an image of a known format", remedy="remove or replace the file") from None
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise unreadable_error(name, error) from None
    except Exception as error:  # the decoders raise nearly every type on damaged files
        what = f"{name} cannot be decoded: {error or type(error).__name__}"
        raise N2D2Error("E403", what, remedy="remove or replace the file") from None


def _pixels(image) -> np.ndarray:
    if image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    elif image.mode in _PLAIN_MODES:
        image = image.convert(_PLAIN_MODES[image.mode])
    pixels = np.asarray(image)
    if pixels.dtype == np.int32 and image.format == "PNG":
        pixels = pixels.astype(np.uint16)  # how older Pillow gives 16-bit gray PNG
    pixels = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder("=")))
    if pixels.ndim == 2:
        return pixels[:, :, None]
    order = [2, 1, 0, 3][: pixels.shape[2]]
    return np.ascontiguousarray(pixels[:, :, order])


def _read_npy(path: Path, name: str) -> np.ndarray:
    """Return a .npy file of one stimulus, (C, H, W), (H, W) or (F,), as (H, W, C)."""
    array = open_npy(path, name)
    check_type(array, name)
    if not 1 <= array.ndim <= 3:
        what = f"{name} contains an array with {array.ndim} axes"
        raise N2D2Error("E414", what, remedy="store one sample of shape (C, H, W), (H, W) or (F,) per file")
    return as_image(to_sample_type(array))


def as_image(sample: np.ndarray) -> np.ndarray:
    """Return one stimulus (C, H, W), (H, W) or (F,) as (H, W, C); a vector becomes one row."""
    if sample.ndim == 3:
        return np.ascontiguousarray(sample.transpose(1, 2, 0))
    if sample.ndim == 2:
        return sample[:, :, None]
    return sample[None, :, None]


READERS: dict[str, Callable[[Path, str], np.ndarray]] = {
    **dict.fromkeys(PICTURES, read_picture),
    ".npy": _read_npy,
    ".wav": read_wav,
    **dict.fromkeys(TABLES, read_table),
}
"""Reader of stimulus files by extension."""
