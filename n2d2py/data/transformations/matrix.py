"""AffineTransformation: operations with matrices of the image's size; matrices in files.

Files are in N2D2's binary form of OpenCV matrices (utils/BinaryCvMat), images, or .npy files. The binary form has three
little-endian 32-bit integers, the rows, the columns and OpenCV's type (depth + 8 (channels - 1)), then the values in row-major
order, channels last.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from n2d2py.data.decode import read_stimulus
from n2d2py.data.text import read_bytes
from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, saturate_cast, transformation
from n2d2py.data.transformations.values import OPERATORS
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.ini import Kind, Values, parameter, resolve_path


@transformation("Affine", doc="Apply one or two operations with a matrix of the same size to each value.")
class AffineTransformation(Transformation):
    """(x first_operator first) second_operator second, element-wise with two matrices.

    Real if the image or a matrix is; integers of one type are saturated, quotients rounded, and quotients by 0 are 0.
    """

    first_operator: str = parameter("FirstOperator", Kind.ENUM, doc="First operation.", choices=tuple(OPERATORS))
    first: str = parameter(
        "FirstValue",
        Kind.PATH,
        doc="Matrix of the first operation: a .bin file as N2D2 writes it, an image, a .npy file, or "
        "`[sp.StimuliData-x]_MeanData`.",
    )
    second_operator: str = parameter("SecondOperator", Kind.ENUM, "Plus", "Second operation.", choices=tuple(OPERATORS))
    second: str = parameter(
        "SecondValue", Kind.PATH, "", "Matrix of the second operation. Without it, only the first operation is applied."
    )
    values: Values | None = field(default=None, repr=False, compare=False)
    matrices: tuple[np.ndarray, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def from_values(cls, values: Values) -> AffineTransformation:
        return replace(cls.of_keys(values), values=values)

    def with_matrices(self, matrices: Mapping[str, np.ndarray]) -> AffineTransformation:
        found = []
        for key, text in (("FirstValue", self.first), ("SecondValue", self.second)):
            if text in matrices:
                found.append(matrices[text])
            elif text or key == "FirstValue":
                if self.values is None:
                    raise InternalError(f"{key}={text} is neither a known matrix nor of a section")
                path = resolve_path(text, self.values.section.document.folder)
                if path is None:
                    remedy = "give the path of a matrix, absolute or relative to the INI file"
                    raise self.values.fail("E401", f"{key}={text} does not exist", remedy, key)
                found.append(read_matrix(path))
        return replace(self, matrices=tuple(found))

    def apply(self, image: np.ndarray) -> np.ndarray:
        for operator, matrix in zip((self.first_operator, self.second_operator), self.matrices, strict=False):  # one or two
            image = self._operate(image, operator, matrix)
        return image

    def _operate(self, image: np.ndarray, operator: str, matrix: np.ndarray) -> np.ndarray:
        if matrix.shape != image.shape:
            sizes = ["x".join(map(str, (one.shape[1], one.shape[0], one.shape[2]))) for one in (matrix, image)]
            remedy = "put a RescaleTransformation before, or give another matrix"
            raise Inapplicable(f"the matrix is {sizes[0]}, the image {sizes[1]}", remedy)
        if "f" in (image.dtype.kind, matrix.dtype.kind):
            with np.errstate(divide="ignore", invalid="ignore"):
                return OPERATORS[operator](image.astype(np.float64), matrix).astype(np.float32)
        if image.dtype != matrix.dtype:
            remedy = "give a matrix of the type of the image, or a real one"
            raise Inapplicable(f"the matrix is {matrix.dtype}, the image {image.dtype}", remedy)
        if operator == "Divides":
            wide = np.divide(image, matrix, where=matrix != 0, dtype=np.float64, out=np.zeros(image.shape))
        else:
            wide = OPERATORS[operator](image.astype(np.float64), matrix.astype(np.float64))
        return saturate_cast(wide, image.dtype)

    def map_range(self, bounds: Range) -> Range | None:
        return None

    def __str__(self) -> str:
        second = f", {self.second_operator} {self.second}" if self.second else ""
        return f"Affine({self.first_operator} {self.first}{second})"


_DEPTHS = ("u1", "i1", "<u2", "<i2", "<i4", "<f4", "<f8")
_HEADER = struct.Struct("<iii")


def read_matrix(path: Path) -> np.ndarray:
    """Return the matrix (H, W, C) of a .bin file, an image or an .npy file.

    Raises: E401 unreadable, E402 or E403 damaged, E406 an unknown extension.
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
    what = f"{path} is not a matrix in the format of N2D2"
    raise N2D2Error("E402", what, remedy="write it again, or give an image or a .npy file")


def write_matrix(path: Path, matrix: np.ndarray) -> None:
    """Write a matrix (H, W, C) of an OpenCV type. Raises InternalError for another type."""
    kinds = {np.dtype(text): depth for depth, text in enumerate(_DEPTHS)}
    little = matrix.dtype.newbyteorder("<")
    if little not in kinds:
        raise InternalError(f"a matrix of {matrix.dtype}")
    kind = kinds[little] + 8 * (matrix.shape[2] - 1)
    path.write_bytes(_HEADER.pack(*matrix.shape[:2], kind) + matrix.astype(little).tobytes())
