"""Reading of files: images by Pillow, arrays by NumPy (memory-mapped if possible), WAV files, and text: lists, labels, tables.

Images keep their number of channels, as with OpenCV's IMREAD_UNCHANGED: gray (H, W, 1), colour (H, W, 3) in the order blue,
green, red, with alpha (H, W, 4). 8-bit files give uint8, 16-bit gray ones uint16, floating-point ones float32. The orientation
tag of photographs is ignored.
"""

import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.files import DamagedArray, map_npy, map_npz, open_picture, read_regular

TABLES = (".csv", ".dat", ".txt")
"""Extensions of text files that are stimuli."""
T = TypeVar("T")
_MOST_ERRORS = 10
_LARGEST = float(np.finfo(np.float32).max)
_DELIMITERS = re.compile(r"[,; \t]+")


def unreadable_error(name: Path | str, error: OSError) -> N2D2Error:
    """Return E401 for a file or folder that the system cannot read."""
    return N2D2Error("E401", f"{name} cannot be read: {error.strerror or error}", remedy="check the path and its permissions")


def read_bytes(path: Path, name: str | None = None) -> bytes:
    """Return the bytes of a regular file. Raises E401 missing or unreadable."""
    try:
        return read_regular(path)
    except OSError as error:
        raise unreadable_error(name or path, error) from None


def read_lines(path: Path, comment: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the stripped non-empty lines with their numbers from 1; text after `comment` is dropped.

    Raises: E401 unreadable, E402 not UTF-8 text.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise N2D2Error("E402", f"{path} is not UTF-8 text", remedy="save it as UTF-8") from None
    for number, line in enumerate(text.splitlines(), 1):
        if comment:
            line = line.split(comment, 1)[0]
        if line.strip():
            yield number, line.strip()


def parse_lines(path: Path, parse: Callable[[str, Location], T], comment: str | None = None, skip: int = 0) -> list[T]:
    """Return the results of `parse` for each non-empty line after the first `skip` lines of a file, and its place.

    Raises: E401, E402 as `read_lines`; those of `parse`, up to ten of them as an ErrorList.
    """
    rows: list[T] = []
    errors: list[N2D2Error] = []
    for number, line in read_lines(path, comment):
        try:
            if number > skip:
                rows.append(parse(line, Location(str(path), number)))
        except N2D2Error as error:
            errors.append(error)
            if len(errors) == _MOST_ERRORS:
                break
    ErrorList.raise_if(errors)
    return rows


def split_name_and_label(line: str) -> tuple[str, str] | None:
    """Return the two parts of a line `name label`; the name may contain blanks. None without a label."""
    parts = line.rsplit(None, 1)
    return (parts[0].strip().strip('"'), parts[1]) if len(parts) == 2 else None


def number_labels(texts: list[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return label ids and their names: integers >= 0 are ids themselves, else ids by first appearance."""
    if texts and all(text.isascii() and text.isdigit() and len(text) < 7 for text in texts):
        ids = [int(text) for text in texts]
        return ids, tuple(str(label) for label in range(max(ids) + 1))
    known: dict[str, int] = {}
    return [known.setdefault(text, len(known)) for text in texts], tuple(known)


def read_table(path: Path, name: str, header: bool = False) -> np.ndarray:
    """Return the numbers of a file as (H, W, 1) float32, as with N2D2's CsvDataFile.

    Commas, semicolons, blanks and tabs separate numbers; # begins a comment. With `header`, a first line of words is left out.

    Raises: E401 unreadable, E402 no numbers, or rows of different lengths.
    """
    rows = []
    for number, line in read_lines(path, comment="#"):
        try:
            rows.append([float(word) for word in _DELIMITERS.split(line) if word])
        except ValueError:
            if header and not rows:
                header = False
                continue
            raise _table_error(name, f"line {number} does not hold numbers") from None
        if not all(abs(value) <= _LARGEST for value in rows[-1]):
            raise _table_error(name, f"line {number} holds values that are not finite")
        if len(rows[-1]) != len(rows[0]):
            raise _table_error(name, f"line {number} has {len(rows[-1])} numbers, the first one {len(rows[0])}")
    if not any(rows):
        raise _table_error(name, "it holds no numbers")
    return np.array(rows, np.float32)[:, :, None]


def _table_error(name: str, what: str) -> N2D2Error:
    return N2D2Error("E402", f"{name}: {what}", remedy="store a line of numbers for each row, all of the same length")


_PCM, _REAL, _EXTENSIBLE = 1, 3, 0xFFFE
_FORMAT = struct.Struct("<HHIIHH")


def read_wav(path: Path, name: str) -> np.ndarray:
    """Return the samples of a WAV file (1, samples, channels), float32: PCM of 8, 16, 24 or 32 bits, floating point of 32 or 64.

    Integers of n bits are divided by 2^(n-1), unsigned bytes after subtracting 128: values are in [-1, 1). Floating-point
    samples stay unchanged. Unlike N2D2, files may have several channels.

    Raises: E401 unreadable, E402 damaged, E406 an unsupported coding, E416 empty.
    """
    return _read_sound(path, name)[0]


def _read_sound(path: Path, name: str) -> tuple[np.ndarray, int]:
    """Return the samples of a WAV file and their rate."""
    form, sound = _find_chunks(read_bytes(path, name), name)
    code, channels, rate, _, frame, bits = _FORMAT.unpack_from(form)
    if code == _EXTENSIBLE and len(form) >= 26:
        code = struct.unpack_from("<H", form, 24)[0]
    if (code, bits) not in _DECODERS:
        kind = {_PCM: "integers", _REAL: "floating-point numbers"}.get(code, f"coding {code}")
        raise N2D2Error("E406", f"{name} has unsupported {bits}-bit samples ({kind})", remedy="convert it to 16-bit PCM")
    if not channels or frame != channels * bits // 8:
        raise _damaged_error(f"{name} declares {channels} channels of {bits} bits in {frame} bytes")
    count = len(sound) // frame
    if not count:
        raise N2D2Error("E416", f"{name} contains no audio sample", remedy="remove the file")
    samples = _DECODERS[code, bits](sound[: count * frame])
    return samples.astype(np.float32).reshape(1, count, channels), rate


def read_samples(path: Path, name: str, rate: int) -> np.ndarray:
    """Return the samples (n,) of a mono sound as 16-bit integers: a WAV file, or raw little-endian samples.

    Raises: E401, E402, E406, E416 as `read_wav`; E408 another rate, or several channels.
    """
    if path.suffix.lower() != ".wav":
        data = read_bytes(path, name)
        if not data or len(data) % 2:
            raise _damaged_error(f"{name} has {len(data)} bytes, which are not 16-bit samples")
        return np.frombuffer(data, "<i2")
    samples, found = _read_sound(path, name)
    if samples.shape[2] != 1:
        raise N2D2Error("E408", f"{name} has {samples.shape[2]} channels instead of one", remedy="mix them to one")
    if found != rate:
        is_multiple = found % rate == 0 and found // rate <= 6
        remedy = f"convert the file, or {f'give input_rate={found}' if is_multiple else 'correct rate='} in -audio"
        raise N2D2Error("E408", f"{name} has {found} samples a second instead of {rate}", remedy=remedy)
    return np.clip(np.rint(samples[0, :, 0] * 32768), -32768, 32767).astype(np.int16)


def _damaged_error(what: str, code: str = "E402") -> N2D2Error:
    return N2D2Error(code, what, remedy="remove or replace the file")


def _find_chunks(data: bytes, name: str) -> tuple[bytes, bytes]:
    """Return the chunks `fmt ` and `data`."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _damaged_error(f"{name} is not a WAV file")
    chunks: dict[bytes, bytes] = {}
    position = 12
    while position + 8 <= len(data) and b"data" not in chunks:
        kind, size = data[position : position + 4], struct.unpack_from("<I", data, position + 4)[0]
        chunk = data[position + 8 : position + 8 + size]
        if len(chunk) < size:
            raise _damaged_error(f"{name} is truncated: {len(chunk)} of {size} bytes")
        chunks[kind] = chunk
        position += 8 + size + size % 2
    if len(chunks.get(b"fmt ", b"")) < _FORMAT.size or b"data" not in chunks:
        raise _damaged_error(f"{name} contains no format or no audio data")
    return chunks[b"fmt "], chunks[b"data"]


def _decode_int24(data: bytes) -> np.ndarray:
    parts = np.frombuffer(data, np.uint8).reshape(-1, 3).astype(np.int32)
    values = parts[:, 0] | parts[:, 1] << 8 | parts[:, 2] << 16
    return (values - ((values & 0x800000) << 1)) / 2.0**23


_DECODERS = {
    (_PCM, 8): lambda data: (np.frombuffer(data, np.uint8).astype(np.float64) - 128) / 128,
    (_PCM, 16): lambda data: np.frombuffer(data, "<i2") / 2.0**15,
    (_PCM, 24): _decode_int24,
    (_PCM, 32): lambda data: np.frombuffer(data, "<i4") / 2.0**31,
    (_REAL, 32): lambda data: np.frombuffer(data, "<f4"),
    (_REAL, 64): lambda data: np.frombuffer(data, "<f8"),
}


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


def _open(read: Callable[[Path], T], path: Path, name: str) -> T:
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
    """Return width and height of an image file, from its header. Raises as read_picture."""
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
        raise _damaged_error(f"{name} is not an image of a known format", "E403") from None
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise unreadable_error(name, error) from None
    except Exception as error:  # the decoders raise nearly every type on damaged files
        raise _damaged_error(f"{name} cannot be decoded: {error or type(error).__name__}", "E403") from None


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
