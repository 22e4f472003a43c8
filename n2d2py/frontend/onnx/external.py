"""Tensors that an ONNX model keeps in files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.graph.shapes import MAX_ELEMENTS

__all__ = ["load_external_data"]

_PACKED = {TensorProto.INT4: 4, TensorProto.UINT4: 4}


def load_external_data(proto: onnx.ModelProto, path: Path) -> None:
    """Reads the external tensors of the model at `path` into `proto`, from files in its folder only.

    Raises:
        N2D2Error: E304 for a file outside the folder, absent, unreadable or too short.
    """
    errors = []
    for tensor in _tensors(proto.graph):
        if tensor.data_location == TensorProto.EXTERNAL:
            try:
                _load(tensor, path)
            except N2D2Error as error:
                errors.append(error)
    ErrorList.raise_if(errors)


def _tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)


def _load(tensor: TensorProto, path: Path) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    folder = path.resolve().parent
    target = (folder / location).resolve()
    if not location or Path(location).is_absolute() or folder not in target.parents:
        raise _error(
            path,
            f"the data of '{tensor.name}' lie in '{location}', outside the model's folder",
            "put the data file beside the model and refer to it by a relative path",
        )
    if target.exists() and not target.is_file():
        raise _error(
            path, f"the data of '{tensor.name}' lie in '{location}', which is no file", "put the data file beside the model"
        )
    needed = _bytes_needed(tensor, path)
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        if length > needed:
            raise _error(
                path, f"'{tensor.name}' needs {needed:,} bytes, the file gives it {length:,}", "export the model again"
            )
        with target.open("rb") as file:
            file.seek(offset)
            data = file.read(length if length >= 0 else needed)
    except ValueError:
        raise _error(path, f"the place of the data of '{tensor.name}' is not a number", "export the model again") from None
    except OSError as error:
        raise _error(
            path,
            f"the data of '{tensor.name}' cannot be read from '{location}' ({error.strerror})",
            "put the data file beside the model",
        ) from None
    if length >= 0 and len(data) != length:
        raise _error(path, f"'{location}' ends before the data of '{tensor.name}'", "copy the whole data file beside the model")
    tensor.raw_data = data
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _bytes_needed(tensor: TensorProto, path: Path) -> int:
    """Bytes of the values of a tensor by its shape and type."""
    count = prod(max(0, size) for size in tensor.dims)
    try:
        bits = _PACKED.get(tensor.data_type) or 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, TypeError):
        raise _error(path, f"'{tensor.name}' has a type that external data cannot have", "export the model again") from None
    if count > MAX_ELEMENTS:
        raise _error(
            path, f"'{tensor.name}' has {count:,} elements, at most {MAX_ELEMENTS:,} are supported", "check its dimensions"
        )
    return (count * bits + 7) // 8


def _error(path: Path, what: str, remedy: str) -> N2D2Error:
    return N2D2Error("E304", what, where=Location(str(path)), remedy=remedy)
