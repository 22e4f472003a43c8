"""NumPy's .npy and .npz files. Headers and sizes are checked before arrays are made; nothing pickled is read."""

import zipfile
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from n2d2py.files.regular import open_regular

MAX_BYTES = 1 << 31
"""Bytes that arrays of one file may take in memory."""

_MAGIC = b"\x93NUMPY"
_MOST_AXES = 32
_LONGEST_AXIS = 1 << 40
_KINDS = "?bBiufUSc"  # kinds of elements (numpy.dtype.kind): numbers, truth values, texts
_LOCAL_HEADER = 30
_BLOCK = 1 << 20
_BROKEN = (ValueError, EOFError, LookupError, OverflowError, RuntimeError, zipfile.BadZipFile, zlib.error)
"""Exceptions of zipfile for damaged archives."""


class DamagedArray(ValueError):
    """A damaged .npy or .npz file, or one that is too large; text and `remedy` are clauses for a message."""

    def __init__(self, reason: str, remedy: str = "write it again with NumPy, without Python objects"):
        self.remedy = remedy
        super().__init__(reason)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    order: str
    dtype: np.dtype
    start: int
    """Bytes before the elements."""

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path) -> np.ndarray:
    """Return the array of a .npy file, in memory. Raise OSError or DamagedArray."""
    with open_regular(path) as file:
        header = _header(file, _length(file))
        _check_room(header.size)
        return _elements(header, file.read(header.size))


def map_npy(path: Path) -> np.ndarray:
    """Return the array of a .npy file, mapped read-only from it. Raise OSError or DamagedArray."""
    with open_regular(path) as file:
        header = _header(file, _length(file))
        return _mapped(path, header, header.start) if header.size else _elements(header, b"")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name, in file order, in memory. Raise OSError or DamagedArray."""
    return _archive(path, _read_member)


def map_npz(path: Path) -> dict[str, np.ndarray]:
    """As `read_npz`; arrays that are not compressed are mapped from the file."""

    def member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
        if info.compress_type == zipfile.ZIP_STORED:
            mapped = _mapped_member(path, info)
            if mapped is not None:
                return mapped
        return _read_member(archive, info)

    return _archive(path, member, mapped=True)


def _archive(
    path: Path, member: Callable[[zipfile.ZipFile, zipfile.ZipInfo], np.ndarray], mapped: bool = False
) -> dict[str, np.ndarray]:
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
            _check_room(sum(i.file_size for i in members if not (mapped and i.compress_type == zipfile.ZIP_STORED)))
            return {info.filename[:-4]: member(archive, info) for info in members}
    except DamagedArray:
        raise
    except _BROKEN as error:
        if not zipfile.is_zipfile(path):
            raise DamagedArray("it is not a zip archive") from None
        raise DamagedArray(str(error) or type(error).__name__) from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as file:
        header = _header(file, info.file_size)
        return _elements(header, file.read())  # to its end, where its checksum is compared


def _mapped_member(path: Path, info: zipfile.ZipInfo) -> np.ndarray | None:
    """Return the member as a map of the archive; None if it has no elements."""
    with open_regular(path) as file:
        length = _length(file)
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER)
        if len(local) < _LOCAL_HEADER or local[:4] != b"PK\3\4":
            raise DamagedArray("a member's header is damaged")
        names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
        start = info.header_offset + _LOCAL_HEADER + names
        file.seek(start)
        header = _header(file, min(info.file_size, length - start))
        if not header.size:
            return None
        file.seek(start)
        _check_sum(file, info)
        return _mapped(path, header, start + header.start)


def _check_sum(file: IO[bytes], info: zipfile.ZipInfo) -> None:
    """Compare the CRC-32 of a stored member, from where the file stands, with that of the archive."""
    crc, left = 0, info.file_size
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        crc, left = zlib.crc32(block, crc), left - len(block)
    if left or crc != info.CRC:
        raise DamagedArray(f"the checksum of {info.filename!r} is wrong")


def _mapped(path: Path, header: _Header, start: int) -> np.ndarray:
    return np.memmap(path, header.dtype, "r", start, header.shape, header.order)  # type: ignore[call-overload]


def _elements(header: _Header, data: bytes) -> np.ndarray:
    if len(data) < header.size:
        raise DamagedArray("it is truncated")
    array = np.frombuffer(data, header.dtype, prod(header.shape))
    return array.reshape(header.shape, order=header.order).copy(order="K")  # type: ignore[call-overload]


def _length(file: IO[bytes]) -> int:
    length = file.seek(0, 2)
    file.seek(0)
    return length


def _check_room(size: int) -> None:
    if size > MAX_BYTES:
        raise DamagedArray(
            f"its arrays have {size:,} bytes, at most {MAX_BYTES:,} are read to memory",
            "store fewer values; data may be larger in a .npy file, or an .npz file that numpy.savez does not compress",
        )


def _header(file: IO[bytes], length: int) -> _Header:
    """Read and check the header; `length` is that of the whole file or member."""
    magic = file.read(min(8, length))
    if magic[:6] != _MAGIC:
        raise DamagedArray("it is a zip archive" if magic[:2] == b"PK" else "it does not begin as NumPy's files do")
    readers = {b"\1\0": np.lib.format.read_array_header_1_0, b"\2\0": np.lib.format.read_array_header_2_0}
    if magic[6:] not in readers:
        raise DamagedArray("it is of a version that is not known")
    begin = file.tell() - len(magic)
    try:
        shape, fortran, dtype = readers[magic[6:]](file)
    except OSError:
        raise
    except Exception as error:  # of damaged headers NumPy's reader raises nearly every type
        raise DamagedArray(f"its header is damaged: {str(error)[:60]}") from None
    if len(shape) > _MOST_AXES or any(type(d) is not int or not 0 <= d < _LONGEST_AXIS for d in shape):
        raise DamagedArray(f"its header is damaged: it says that the shape is {str(shape)[:40]}")
    if dtype.hasobject:
        raise DamagedArray("it contains Python objects")
    if dtype.kind not in _KINDS or dtype.shape or dtype.names or not dtype.itemsize:
        raise DamagedArray(f"its elements are of type {dtype}")
    header = _Header(shape, "F" if fortran else "C", dtype, file.tell() - begin)
    if header.start + header.size > length:
        raise DamagedArray(f"it is truncated: {length:,} bytes do not hold an array {shape} of {dtype}")
    return header
