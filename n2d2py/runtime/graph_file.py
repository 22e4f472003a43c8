"""A QuantGraph as one file of plain data, so that an export can be simulated without what it was made from.

`simulator/network.npz` of an export: an array "graph" of the bytes of a JSON text, one array for each parameter, in the
narrowest integer type that holds its values, and "digest", SHA-256 of them all. No pickled objects. The weights of a big
network are those that its kernels read, in files of `dnn/parameters`, whose names, order and digests the JSON text has.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.arithmetic import NumType, Rescale, round_up
from n2d2py.contracts.functions import FUNCTIONS, FunctionRow
from n2d2py.contracts.operator import Op, operator_kinds
from n2d2py.errors import N2D2Error
from n2d2py.files import open_regular, read_npz
from n2d2py.graph import FilePort, QuantGraph, QuantNode, QuantTensor, ResidualAdd
from n2d2py.graph.forms import form_of

# ---- weights in files of an export ---------------------------------------------------------------
FOLDER = "dnn/parameters"
_PANEL = 16


@dataclass(frozen=True)
class StoredRows:
    """An array in a file of `FOLDER`.

    Attributes:
        file, type: its name, and the type of the elements in it.
        shape, axes: those of the array with its inputs as (channels, height, width), and the order of its axes in the rows.
        flat: whether the array has its inputs in one axis.
        panels: (rows, inputs of a row, rows of a group, inputs that lie together, 1 where the last panel is filled up), as in
            `exports.cpp.parts.PanelOrder`; none where the file has row after row.
        offset, bytes: where it lies in the file.
        sha256: of these bytes.
    """

    file: str
    type: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    flat: bool = False
    panels: tuple[int, ...] = ()
    offset: int = 0
    bytes: int = 0
    sha256: str = ""

    @staticmethod
    def of(fields: dict[str, Any]) -> StoredRows:
        lists = {name: tuple(map(int, fields[name])) for name in ("shape", "axes", "panels")}
        return StoredRows(**{**fields, **lists})

    def read(self, folder: Path) -> np.ndarray:
        """Return the array, from the files of the export `folder`. Raise ValueError when the file is another one; OSError: when
        it is missing."""
        if Path(self.file).name != self.file:
            raise ValueError(f"{self.file} is not a file of {FOLDER}")
        with open_regular(folder / FOLDER / self.file) as file:
            file.seek(self.offset)
            data = file.read(self.bytes)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ValueError(f"{FOLDER}/{self.file} was changed since it was written")
        values = np.frombuffer(data, self.type)
        rows = rows_of_panels(values, *self.panels) if self.panels else values
        if math.prod(self.shape) != rows.size or sorted(self.axes) != list(range(len(self.shape))):
            raise ValueError(f"{FOLDER}/{self.file} holds {rows.size} elements, not {self.shape}")
        ordered = rows.reshape([self.shape[axis] for axis in self.axes])
        values = np.ascontiguousarray(ordered.transpose(np.argsort(self.axes)))
        return values.reshape(len(values), -1) if self.flat else values


def rows_of_panels(panels: np.ndarray, rows: int, inputs: int, outputs: int, each: int, filled: int) -> np.ndarray:
    """(rows, inputs) of panels in the order that `StoredRows.panels` says. Raise ValueError when there are too few."""
    result, depth, offset = np.empty((rows, inputs), panels.dtype), round_up(inputs, each), 0
    for group in range(0, rows, outputs):
        for first in range(group, group + outputs, _PANEL):
            count = min(_PANEL, group + outputs - first)
            width = _PANEL if filled else count
            panel = panels[offset : offset + depth * width].reshape(-1, width, each)[:, :count]
            result[first : first + count] = panel.transpose(1, 0, 2).reshape(count, depth)[:, :inputs]
            offset += depth * width
    return result


GRAPH_FILE = "simulator/network.npz"
_FORMAT = 3
_PORTS = ("input_ports", "output_ports")


def write_graph(graph: QuantGraph, path: Path, stored: Mapping[str, StoredRows] | None = None) -> None:
    """Write `graph` to `path`; the same graph gives the same bytes. Locations and sources are left out.

    `stored`: by layer, the weights that lie in files of the export.
    """
    arrays, rows = _Arrays(), stored or {}
    text = {
        "format": _FORMAT,
        "name": graph.name,
        "bits": graph.bits,
        "inputs": graph.inputs,
        "outputs": graph.outputs,
        "aliases": dict(sorted(graph.aliases.items())),
        **({"states": graph.states, "calls": graph.calls} if graph.states else {}),
        **{key: [port.fields() for port in ports] for key in _PORTS if (ports := getattr(graph, key))},
        "tensors": [
            {"name": t.name, "shape": [int(n) for n in t.shape], "type": _pack(t.type, arrays)} for t in graph.tensors.values()
        ],
        "nodes": [_pack_node(node, arrays, rows.get(node.name)) for node in graph.nodes],
    }
    if arrays.files:
        text["files"] = {name: asdict(rows) for name, rows in arrays.files.items()}
    buffer = io.BytesIO()
    written = {"graph": np.frombuffer(json.dumps(text).encode("utf-8"), np.uint8), **arrays.stored}
    np.savez(buffer, digest=_digest(written), **written)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getvalue())


def read_graph(path: Path) -> QuantGraph:
    """Return the graph that `write_graph` wrote. Raise E806 when the file is missing, damaged, of another format or needs an
    unknown operator."""
    try:
        arrays = read_npz(path)
        digest = arrays.pop("digest", None)
        text = json.loads(arrays["graph"].tobytes())
        if text["format"] == _FORMAT and (digest is None or not np.array_equal(digest, _digest(arrays))):
            raise ValueError("it was changed since it was written")
        if text["format"] != _FORMAT:
            raise ValueError(f"format {text['format']} instead of {_FORMAT}")
        for name, rows in text.get("files", {}).items():
            arrays[name] = StoredRows.of(rows).read(path.parents[1])
        graph = QuantGraph(text["name"], text["bits"], inputs=text["inputs"], outputs=text["outputs"], aliases=text["aliases"])
        graph.states, graph.calls = text.get("states", 0), text.get("calls", 0)
        graph.input_ports, graph.output_ports = ([FilePort.of(one) for one in text.get(key, ())] for key in _PORTS)
        classes = _classes()
        graph.tensors = {one["name"]: QuantTensor(**_unpack(one, arrays, classes)) for one in text["tensors"]}
        graph.nodes = [_unpack_node(_unpack(one, arrays, classes)) for one in text["nodes"]]
    except FileNotFoundError as error:
        raise N2D2Error("E806", f"{error.filename or path} is missing", remedy="export again") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise N2D2Error("E806", f"{path} cannot be read: {error}", remedy="export again") from error
    return graph


def _digest(arrays: dict[str, np.ndarray]) -> np.ndarray:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


class _Arrays:
    """The arrays of the file, by names a0, a1, ...; `files` are those that lie in other files."""

    def __init__(self) -> None:
        self.stored: dict[str, np.ndarray] = {}
        self.files: dict[str, StoredRows] = {}

    def add(self, values: np.ndarray, rows: StoredRows | None = None) -> dict[str, str]:
        """Store an array, unless it lies elsewhere as `rows`; return what the JSON text says of it."""
        name = f"a{len(self.stored) + len(self.files)}"
        values = np.asarray(values)
        if rows is None:
            self.stored[name] = _narrow(values)
        else:
            self.files[name] = rows
        return {"$array": name, "type": values.dtype.str}


def _narrow(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iu" or not values.size:
        return values
    low, high = int(values.min()), int(values.max())
    for name in ("i1", "u1", "i2", "u2", "i4", "u4"):
        info = np.iinfo(name)
        if info.min <= low and high <= info.max:
            return values.astype(name)
    return values


_NODE = ("name", "op", "inputs", "outputs", "rescale", "clamp", "bound", "activation", "residual", "zero_in_bias")
"""Parts of a layer that are stored next to the constants of its form."""


def _classes() -> dict[str, type]:
    """Return the classes that the file may name."""
    rescales = {kind for base in (Rescale, *Rescale.__subclasses__()) for kind in base.__subclasses__()}
    operators = {f"operator {kind}": op for kind, op in operator_kinds().items()}
    functions = {f"function {kind}": row for kind, row in FUNCTIONS.snapshot().items()}
    return {kind.__name__: kind for kind in (NumType, ResidualAdd, *rescales)} | operators | functions


def _class_name(value: Any) -> str:
    if isinstance(value, Op):
        return f"operator {value.kind}"
    return f"function {value.kind}" if isinstance(value, FunctionRow) else type(value).__name__


def _pack(value: Any, arrays: _Arrays) -> Any:
    """JSON data of an attribute: numbers, texts, tuples, arrays, objects of `_classes`."""
    if isinstance(value, np.ndarray):
        return arrays.add(value)
    if is_dataclass(value):
        return {"$class": _class_name(value)} | {one.name: _pack(getattr(value, one.name), arrays) for one in fields(value)}
    if isinstance(value, dict):
        return {key: _pack(item, arrays) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_pack(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value: Any, arrays: dict[str, np.ndarray], classes: Mapping[str, type]) -> Any:
    if isinstance(value, list):
        return tuple(_unpack(item, arrays, classes) for item in value)
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return arrays[value["$array"]].astype(value["type"])
    items = {key: _unpack(item, arrays, classes) for key, item in value.items()}
    name = items.pop("$class", None)
    if name is None:
        return items
    if name not in classes:
        raise ValueError(f"the {name} is unknown; load its plug-in first (n2d2py.load_plugin)")
    return classes[name](**items)


def _pack_node(node: QuantNode, arrays: _Arrays, weights: StoredRows | None) -> dict[str, Any]:
    params = {role: arrays.add(node.params[role], weights if role == "weights" else None) for role in sorted(node.params)}
    return {name: _pack(getattr(node, name), arrays) for name in _NODE} | {"params": params}


def _unpack_node(values: dict[str, Any]) -> QuantNode:
    is_rescaled = values["rescale"] is not None
    form = form_of(values.pop("params"), is_rescaled or values["clamp"] is not None, is_rescaled)
    values.update(inputs=list(values["inputs"]), outputs=list(values["outputs"]))
    return QuantNode(form=form, **values)
