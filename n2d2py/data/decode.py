"""Decoding of stimulus files: images by Pillow, arrays by NumPy (memory-mapped if possible), sounds (see sound.py).

Images keep their number of channels, as with OpenCV's IMREAD_UNCHANGED: gray (H, W, 1), colour (H, W, 3) in the order blue,
green, red, with alpha (H, W, 4). 8-bit files give uint8, 16-bit gray ones uint16, floating-point ones float32. The orientation
tag of photographs is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.data.sound import read_wav
from n2d2py.data.text import TABLES, read_table, unreadable_error
from n2d2py.errors import N2D2Error
from n2d2py.files import DamagedArray, map_npy, map_npz, open_picture

ArraysT = TypeVar("ArraysT")
_TYPES = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32)
_WIDE = (np.int64, np.uint32, np.uint64)
"""NumPy's default integer types, for example of token ids."""


def open_npy(path: Path, name: str | None = None) -> np.ndarray:
    """Return the array of a .npy file, memory-mapped read-only.

    Raises: E401 missing or unreadable, E402 damaged or with Python objects.
    """
    return _open(map_npy, path, name or str(path))


def open_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by key, in file order; their checksums are verified.

    Members stored without compression (np.savez) are memory-mapped; compressed ones are read into memory.

    Raises: E401 missing or unreadable, E402 damaged, with Python objects or too large, E416 empty.
    """
    arrays = _open(map_npz, path, str(path))
    if not arrays:
        raise N2D2Error("E416", f"{path} contains no array", remedy="store the arrays x and y")
    return arrays


def check_type(array: np.ndarray, name: str) -> None:
    """Raise E414 unless `to_sample_type` converts the array to a number type of the pipeline."""
    if array.dtype.kind not in "bf" and array.dtype.newbyteorder("=") not in (*_TYPES, *_WIDE):
        raise N2D2Error("E414", f"{name}: samples of type {array.dtype} are not supported", remedy="store integers or float32")


def check_integers(x: np.ndarray, kind: NumType | None, name: str) -> None:
    """Raise E414 for integers out of the range of an input's type; bytes may be pixels of images."""
    if kind is None or x.dtype.kind not in "iu" or x.dtype in (kind.dtype, np.uint8):
        return
    low, high = int(x.min(initial=0)), int(x.max(initial=0))
    if not kind.qmin <= low <= high <= kind.qmax:
        what = f"{name} contains integers from {low} to {high}, but the input is {kind.name}"
        raise N2D2Error("E414", what, remedy=f"store {kind.name} values from {kind.qmin} to {kind.qmax}")


def to_sample_type(sample: np.ndarray) -> np.ndarray:
    """Return a copy in memory: booleans as uint8, reals as float32, integers in native byte order, those above 32 bits as
    int32.

    Raises: E414 for an integer that int32 cannot represent.
    """
    if sample.dtype.newbyteorder("=") in _WIDE:
        limits = np.iinfo(np.int32)
        for value in (sample.min(initial=0), sample.max(initial=0)):
            if not limits.min <= value <= limits.max:
                what = f"a sample contains {value}, which exceeds 32 bits"
                raise N2D2Error("E414", what, remedy="store float32 or smaller integers")
        return np.array(sample, np.int32)
    kinds = {"b": np.dtype(np.uint8), "f": np.dtype(np.float32)}
    with np.errstate(over="ignore"):
        return np.array(sample, kinds.get(sample.dtype.kind, sample.dtype.newbyteorder("=")))


def _open(read: Callable[[Path], ArraysT], path: Path, name: str) -> ArraysT:
    try:
        return read(path)
    except OSError as error:
        raise unreadable_error(name, error) from None
    except DamagedArray as error:
        raise N2D2Error("E402", f"{name} is not a valid {path.suffix} file: {error}", remedy=error.remedy) from None


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

    Raises: E401 missing or unreadable, E402 or E403 damaged, E406 an unknown extension.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        what = f"{name or path} has the unsupported file type '{path.suffix}'"
        raise N2D2Error("E406", what, remedy="convert it to one of " + " ".join(sorted(READERS)))
    return reader(path, name or str(path))


def read_picture(path: Path, name: str | None = None) -> np.ndarray:
    """Return the pixels of an image file, channels in the order blue, green, red (, alpha).

    Raises: E401 missing or unreadable, E403 not an image, truncated or too large.
    """
    return _open_image(path, name or str(path), _pixels)


def picture_size(path: Path, name: str | None = None) -> tuple[int, int]:
    """Return width and height of an image file, from its header.

    Raises: as read_picture.
    """
    return picture_header(path, name)[0]


def picture_header(path: Path, name: str | None = None) -> tuple[tuple[int, int], str, bool]:
    """Return (width, height), Pillow's mode ("RGB", "CMYK", ...) and whether EXIF rotates or flips an image file, from its header.

    Raises: as read_picture.
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
