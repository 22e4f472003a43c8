"""External tensor data of an ONNX model, stored in separate files."""

from collections.abc import Iterator
from math import prod
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from n2d2py.contracts.onnx.skeleton import subgraphs, walk_nodes
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.files import open_regular
from n2d2py.graph.shapes import MAX_ELEMENTS

_PACKED: dict[int, int] = {TensorProto.INT4: 4, TensorProto.UINT4: 4}


def load_external_data(proto: onnx.ModelProto, path: Path) -> None:
    """Read the external tensors of the model at `path` into `proto`, only from regular files in its folder.

    Raises N2D2Error: E304 for a file that is outside the folder, absent, unreadable or too short.
    """
    errors, missing = [], set()
    for tensor in _external_tensors(proto):
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        if location in missing:
            continue
        try:
            _load_tensor(tensor, path)
        except N2D2Error as error:
            errors.append(error)
            if isinstance(error.__context__, OSError):
                missing.add(location)
    ErrorList.raise_if(errors)


def refuse_external_data(proto: onnx.ModelProto, name: str) -> None:
    """Raise E304 for external tensors of an in-memory model, whose folder is unknown."""
    for tensor in _external_tensors(proto):
        what, remedy = "are external, but the folder of the model is unknown", "give its path, or load it with onnx.load"
        raise _error(name, tensor, what, remedy)


def _external_tensors(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield the external tensors of the graph, its subgraphs and the functions."""
    bodies = (proto.graph.node, *(function.node for function in proto.functions))
    nodes = [node for body in bodies for node in walk_nodes(body)]
    stored = [graph.initializer for graph in (proto.graph, *(inner for node in nodes for inner in subgraphs(node)))]
    stored += [(attribute.t, *attribute.tensors) for node in nodes for attribute in node.attribute]
    return (tensor for tensors in stored for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)


def _load_tensor(tensor: TensorProto, path: Path) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    target = _resolve_path(location, tensor, path)
    needed = _bytes_needed(tensor, path)
    places = [entries.get("offset", "0"), entries.get("length", str(needed))]
    if not all(text.isascii() and text.isdigit() and len(text) < 19 for text in places):
        raise _error(path, tensor, "have an offset or a length that is not a number")
    offset, length = map(int, places)
    if length > needed:
        raise _error(path, tensor, f"need {needed:,} bytes, but the file provides {length:,}")
    try:
        with open_regular(target) as file:
            if file.seek(0, 2) < offset + length:
                raise _error(path, tensor, f"go beyond the end of '{location}'", "copy the complete data file")
            file.seek(offset)
            data = file.read(length)
    except OSError as error:
        what = f"cannot be read from '{location}' ({error.strerror})"
        raise _error(path, tensor, what, "put the data file next to the model") from None
    tensor.raw_data = data
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _resolve_path(location: str, tensor: TensorProto, path: Path) -> Path:
    """Return the file of a relative path below the model's folder, with resolved links."""
    folder = path.resolve().parent
    try:
        target = (folder / location).resolve()
    except (ValueError, OSError, RuntimeError):  # NUL, a name that is too long, a circle of links
        target = folder
    if Path(location).is_absolute() or folder not in target.parents:
        remedy = "put the data file next to the model and refer to it by a relative path"
        raise _error(path, tensor, f"are in '{location}', outside the folder of the model", remedy)
    return target


def _bytes_needed(tensor: TensorProto, path: Path) -> int:
    count = prod(max(0, size) for size in tensor.dims)
    try:
        bits = _PACKED.get(tensor.data_type) or 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (KeyError, TypeError):
        raise _error(path, tensor, "have a type that is not allowed for external data") from None
    if count > MAX_ELEMENTS:
        raise _error(path, tensor, f"have {count:,} elements, more than the limit of {MAX_ELEMENTS:,}", "reduce its dimensions")
    return -(-count * bits // 8)


def _error(path: Path | str, tensor: TensorProto, what: str, remedy: str = "export the model again") -> N2D2Error:
    name = f"'{tensor.name}'" if tensor.name else "a constant without name"
    return N2D2Error("E304", f"the data of {name} {what}", where=Location(str(path)), remedy=remedy)
