"""Arrays in .npy and .npz files, mapped from the file where it allows it."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from n2d2py.errors import N2D2Error

__all__ = ["check_type", "open_npy", "open_npz", "plain"]

_TYPES = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float32)
_LOCAL_HEADER = 30
_BLOCK = 1 << 20


def open_npy(path: Path, name: str | None = None) -> np.ndarray:
    """The array of a .npy file, mapped read-only.

    Raises:
        N2D2Error: E401 missing or unreadable, E402 damaged or holding Python objects.
    """
    name = name or str(path)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise _unreadable(name, error) from None
    except (ValueError, EOFError) as error:
        raise _damaged(name, ".npy", error) from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise _damaged(name, ".npy", "it is a zip archive")
    return array


def open_npz(path: Path, name: str | None = None) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by key, in file order; their checksums are compared.

    Members stored without compression (np.savez) are mapped; compressed ones are read to memory.

    Raises:
        N2D2Error: E401 missing or unreadable, E402 damaged or holding Python objects, E416 empty.
    """
    name = name or str(path)
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".npy"):
                    arrays[info.filename[:-4]] = _member(path, archive, info)
    except OSError as error:
        raise _unreadable(name, error) from None
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise _damaged(name, ".npz", error) from None
    if not arrays:
        raise N2D2Error("E416", f"{name} holds no array", remedy="store the arrays x and y")
    return arrays


def _member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type == zipfile.ZIP_STORED:
        mapped = _mapped(path, info)
        if mapped is not None:
            return mapped
    with archive.open(info) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        while file.read(_BLOCK):  # the checksum is compared at the end of the member
            pass
        return array


def _mapped(path: Path, info: zipfile.ZipInfo) -> np.ndarray | None:
    """The member as a map of the archive; None where it cannot be mapped (empty, scalar)."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        header = file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER or header[:4] != b"PK\3\4":
            raise ValueError("a member's header is damaged")
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        start = info.header_offset + _LOCAL_HEADER + names
        file.seek(start)
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            return None
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if file.tell() - start + size > info.file_size:
            raise ValueError("an array is truncated")
        if not shape or size == 0:
            return None
        first = file.tell()
        file.seek(start)
        _check_sum(file, info)
        return np.memmap(path, dtype, "r", first, shape, "F" if fortran else "C")


def _check_sum(file: BinaryIO, info: zipfile.ZipInfo) -> None:
    """Compares the CRC-32 of a stored member, from where the file stands, with that of the archive."""
    found, left = 0, info.file_size
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        found, left = zlib.crc32(block, found), left - len(block)
    if left or found != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 for {info.filename!r}")


def check_type(array: np.ndarray, name: str) -> None:
    """Raises E414 unless `plain` gives the samples of the array a number type of the pipeline."""
    if array.dtype.kind not in "bf" and array.dtype.newbyteorder("=") not in _TYPES:
        raise N2D2Error(
            "E414",
            f"{name}: stimuli of type {array.dtype} cannot be used",
            remedy="store uint8, uint16, int8, int16, int32 or float32",
        )


def plain(sample: np.ndarray) -> np.ndarray:
    """A copy in memory: booleans as uint8, reals as float32, integers in this machine's order."""
    kinds = {"b": np.dtype(np.uint8), "f": np.dtype(np.float32)}
    return np.array(sample, kinds.get(sample.dtype.kind, sample.dtype.newbyteorder("=")))


def _unreadable(name: str, error: OSError) -> N2D2Error:
    return N2D2Error("E401", f"{name} cannot be read: {error.strerror or error}", remedy="check the path and its permissions")


def _damaged(name: str, kind: str, error: object) -> N2D2Error:
    return N2D2Error(
        "E402", f"{name} is not a valid {kind} file: {error}", remedy="write it again with NumPy, without Python objects"
    )
