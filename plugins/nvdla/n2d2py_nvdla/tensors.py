"""Inputs into the hardware's layout, outputs as NVIDIA's runtime writes them (output.dimg, --rawdump)."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from n2d2py.errors import InternalError, N2D2Error
from n2d2py.files import DamagedArray, open_picture, read_npy, read_regular
from n2d2py_nvdla.firmware import BYTES, FP16, INT8, INT16
from n2d2py_nvdla.loadable import unreadable
from n2d2py_nvdla.model.formats import as_array, as_bytes, strided
from n2d2py_nvdla.model.image import FEATURE, ORDERS
from n2d2py_nvdla.tables import TensorDesc

FEATURE_X8 = 37
_PRECISIONS = {2: FP16, 3: INT16, 4: INT8}
_FORMATS = {"v10": {INT8: 40, INT16: 41, FP16: 42}, "v12": {INT8: 40, INT16: 42, FP16: 43}}
"""Surface formats of output.dimg; 41 is int8 in atoms of 8 bytes in the newer runtime."""


def precision_of(tensor: TensorDesc) -> int:
    """Precision of the elements of a feature tensor.

    Raises:
        N2D2Error: E905 for a data type that NVIDIA's runtime has no use for.
    """
    if tensor.data_type not in _PRECISIONS:
        raise N2D2Error(
            "E905",
            f"the tensor {tensor.name} has data type {tensor.data_type}",
            remedy="compile it to half (2), int16 (3) or int8 (4)",
        )
    return _PRECISIONS[tensor.data_type]


def _atom(tensor: TensorDesc) -> int:
    """Return the bytes of an atom: 8 where the format says so, else 32, or 16 where the lines tell."""
    if tensor.pixel_format == FEATURE_X8:
        return 8
    return 16 if tensor.w > 0 and tensor.stride_1 == 16 * tensor.w else 32


def tensor_array(tensor: TensorDesc, data: np.ndarray) -> np.ndarray:
    """Return the logical (C, H, W) of an output's bytes."""
    return as_array(
        data,
        (tensor.c, tensor.h, tensor.w),
        tensor.stride_1,
        tensor.stride_2,
        precision_of(tensor),
        _atom(tensor),
        f"the tensor {tensor.name}",
    )


def tensor_bytes(tensor: TensorDesc, values: np.ndarray) -> np.ndarray:
    """Return stored values (C, H, W) in the layout of `tensor`; pixels when it is an image.

    Raises:
        N2D2Error: E905 for another shape, or values that the type cannot hold.
    """
    shape = (tensor.c, tensor.h, tensor.w)
    values = np.asarray(values)
    if values.size != np.prod(shape, dtype=np.int64):
        raise N2D2Error(
            "E905",
            f"the input {tensor.name} has shape {shape}, {values.shape} is given",
            remedy="give an array of channels, height and width",
        )
    values = values.reshape(shape)
    if tensor.pixel_format < FEATURE and tensor.pixel_format in ORDERS and tensor.data_category == 0:
        return _image_bytes(tensor, values)
    dtype = {FP16: np.dtype("<f2"), INT16: np.dtype("<i2"), INT8: np.dtype("i1")}[precision_of(tensor)]
    if dtype.kind == "i":
        bounds = np.iinfo(dtype)
        if values.min(initial=0) < bounds.min or values.max(initial=0) > bounds.max or np.any(values != np.rint(values)):
            raise N2D2Error(
                "E905",
                f"the input {tensor.name} holds integers from {bounds.min} to {bounds.max}; the "
                f"given values run from {values.min():g} to {values.max():g}",
                remedy="give stored values, real values divided by the input's scale",
            )
    return as_bytes(
        values.astype(dtype), tensor.size, tensor.stride_1, tensor.stride_2, _atom(tensor), f"the tensor {tensor.name}"
    )


def _image_bytes(tensor: TensorDesc, values: np.ndarray) -> np.ndarray:
    """Return the pixels of bytes, with or without sign, or of halves."""
    order = ORDERS[tensor.pixel_format]
    half = precision_of(tensor) == FP16
    if not half and (values.min(initial=0) < -128 or values.max(initial=0) > 255 or np.any(values != np.rint(values))):
        raise N2D2Error(
            "E905",
            f"the image {tensor.name} holds bytes; the given values run from {values.min():g} to {values.max():g}",
            remedy="give integers from -128 to 127, or from 0 to 255 where the file reads them without sign",
        )
    pixels = np.zeros((tensor.h, tensor.w, len(order)), "<f2" if half else np.uint8)
    for channel, plane in enumerate(values[: len(order)]):
        pixels[:, :, order[channel]] = plane if half else plane.astype(np.int64) & 0xFF
    lines = pixels.reshape(tensor.h, -1).view(np.uint8)
    data = np.zeros(tensor.size, np.uint8)
    strided(data, 0, lines.shape, (tensor.stride_1, 1), f"the tensor {tensor.name}")[...] = lines
    return data


def pgm_pixels(path: Path) -> np.ndarray:
    """Return the pixels (1, H, W) of a binary PGM file with 8 bits.

    Raises:
        N2D2Error: E905 for another file.
    """
    data = read_regular(path)
    fields, at = [], 0
    while len(fields) < 4 and at < len(data):
        end = at
        while end < len(data) and not data[end : end + 1].isspace():
            end += 1
        word = data[at:end]
        if word.startswith(b"#"):
            end = data.find(b"\n", at) if b"\n" in data[at:] else len(data)
        elif word:
            fields.append(word)
        at = end + 1
    known = len(fields) == 4 and fields[0] == b"P5" and all(f.isdigit() and len(f) < 9 for f in fields[1:])
    if not known or int(fields[3]) != 255 or len(data) < at + int(fields[1]) * int(fields[2]):
        raise N2D2Error("E905", "the file is not an 8-bit PGM image (P5)", where=str(path), remedy="convert it")
    w, h = int(fields[1]), int(fields[2])
    return np.frombuffer(data[at : at + w * h], np.uint8).reshape(1, h, w)


def _picture(path: Path, tensor: TensorDesc) -> np.ndarray:
    """Return the pixels (C, H, W) of an image, which is looked at before it is decoded."""
    if path.suffix.lower() == ".pgm":
        return pgm_pixels(path)
    try:
        with open_picture(path) as image:
            if image.size != (tensor.w, tensor.h):
                raise N2D2Error(
                    "E905",
                    f"the image has {image.size[0]}x{image.size[1]} pixels, the input {tensor.name} {tensor.w}x{tensor.h}",
                    where=str(path),
                    remedy="scale it",
                )
            pixels = np.asarray(image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGB"))
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise N2D2Error("E905", f"the image cannot be decoded: {error}", where=str(path), remedy="convert it") from None
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _stored(path: Path, tensor: TensorDesc) -> np.ndarray:
    """Return the numbers of an .npy file, whose header is looked at before they are read.

    Raises:
        N2D2Error: E905 for a file without an array of that many numbers.
    """
    try:
        values = read_npy(path)
    except DamagedArray as error:
        raise N2D2Error("E905", f"no array: {error}", where=str(path), remedy="write it with numpy.save") from None
    if values.dtype.kind not in "biuf":
        raise N2D2Error(
            "E905", f"it holds {values.dtype.name}, not numbers", where=str(path), remedy="write it with numpy.save"
        )
    if values.size != tensor.c * tensor.h * tensor.w:
        raise N2D2Error(
            "E905",
            f"the input {tensor.name} has shape {(tensor.c, tensor.h, tensor.w)}, {values.shape} is given",
            where=str(path),
            remedy="give an array of channels, height and width",
        )
    return values


def read_input(path: Path, tensor: TensorDesc | None, mean: float = 0.0, normalize: float = 1.0) -> np.ndarray:
    """Return the bytes of an input from a file: .bin unchanged, .npy stored values, images as NVIDIA's runtime does.

    An input without a tensor descriptor can be given as .bin only. An image becomes floor(p * 127 / 255 + 0.5) in int8, (p - mean) / normalize in fp16.

    Raises:
        N2D2Error: E902, E905.
    """
    try:
        if path.exists() and not path.is_file():
            raise N2D2Error("E902", "it is not a regular file", where=str(path), remedy="give a file")
        if path.suffix.lower() == ".bin":
            return np.frombuffer(read_regular(path), np.uint8)
        if tensor is None:
            raise InternalError(f"{path} is for an input without a tensor descriptor")
        if path.suffix.lower() == ".npy":
            return tensor_bytes(tensor, _stored(path, tensor))
        pixels = _picture(path, tensor)
    except OSError as error:
        raise unreadable(path, error) from None
    if precision_of(tensor) == INT8:
        pixels = np.floor(pixels.astype(np.float64) * 127 / 255 + 0.5)
    elif precision_of(tensor) == FP16:
        pixels = (pixels.astype(np.float32) - np.float32(mean)) / np.float32(normalize)
    return tensor_bytes(tensor, pixels)


def dimg(tensor: TensorDesc, data: np.ndarray, abi: str) -> bytes:
    """output.dimg: header, then the elements by channel, row and column."""
    precision = precision_of(tensor)
    code = 41 if abi == "v12" and tensor.pixel_format == FEATURE_X8 else _FORMATS[abi][precision]
    atom = 8 if code == 41 and abi == "v12" else 32  # the older runtime reads every output in atoms of 32 bytes
    if tensor.stride_1 == 16 * tensor.w:
        atom = 16
    header = struct.pack("<4s8I", b"DIMG", 0, code, tensor.w, tensor.h, tensor.c, tensor.stride_1, tensor.stride_2, tensor.size)
    values = (
        as_array(
            data, (tensor.c, tensor.h, tensor.w), tensor.stride_1, tensor.stride_2, precision, atom, f"the tensor {tensor.name}"
        )
        if BYTES[precision]
        else data
    )
    return header + values.tobytes()


def raw_text(values: np.ndarray) -> str:
    """--rawdump: numbers by channel, row and column, each followed by a blank."""
    if values.dtype.kind == "f":
        return "".join(f"{value:g} " for value in values.reshape(-1).astype(np.float32))
    return "".join(f"{value} " for value in values.reshape(-1))
