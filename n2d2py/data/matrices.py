"""Matrices in files: N2D2's binary form of OpenCV matrices, images, .npy files.

The binary form (N2D2's utils/BinaryCvMat) is three little-endian 32-bit integers, the rows, the
columns and OpenCV's type (depth + 8 (channels - 1)), then the values, rows first, channels last.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from n2d2py.data.decode import read_stimulus
from n2d2py.data.text import read_bytes
from n2d2py.errors import InternalError, N2D2Error

_DEPTHS = ("u1", "i1", "<u2", "<i2", "<i4", "<f4", "<f8")
_HEADER = struct.Struct("<iii")


def read_matrix(path: Path) -> np.ndarray:
    """The matrix (H, W, C) of a .bin file, an image or an .npy file.

    Raises:
        N2D2Error: E401 unreadable, E402 or E403 damaged, E406 an unknown extension.
    """
    if path.suffix != ".bin":
        return read_stimulus(path)
    data = read_bytes(path)
    if len(data) >= _HEADER.size:
        rows, columns, kind = _HEADER.unpack_from(data)
        depth, channels = kind & 7, (kind >> 3) + 1
        if rows > 0 and columns > 0 and 0 < channels <= 512 and depth < len(_DEPTHS):
            dtype = np.dtype(_DEPTHS[depth])
            if len(data) - _HEADER.size == rows * columns * channels * dtype.itemsize:
                values = np.frombuffer(data, dtype, offset=_HEADER.size)
                return values.reshape(rows, columns, channels).astype(dtype.newbyteorder("="))
    raise N2D2Error(
        "E402", f"{path} is not a matrix in the format of N2D2", remedy="write it again, or give an image or a .npy file"
    )


def write_matrix(path: Path, matrix: np.ndarray) -> None:
    """Writes a matrix (H, W, C) of a type that OpenCV has.

    Raises:
        InternalError: for another type.
    """
    kinds = {np.dtype(text): depth for depth, text in enumerate(_DEPTHS)}
    little = matrix.dtype.newbyteorder("<")
    if little not in kinds:
        raise InternalError(f"a matrix of {matrix.dtype}")
    kind = kinds[little] + 8 * (matrix.shape[2] - 1)
    path.write_bytes(_HEADER.pack(*matrix.shape[:2], kind) + matrix.astype(little).tobytes())
