"""The weights file of an export, `dnn/parameters/weights.bin`: what is in it, and its bytes.

All numbers are little-endian. 64 bytes of header, a table, the arrays, each at a multiple of 64 bytes from the beginning:

    0   "N2D2WGT" and a zero
    8   u32 version of the format, 1
    12  u32 0x01020304, the order of bytes
    16  u64 bytes of the file
    24  u32 arrays
    28  u32 CRC-32 (that of zlib) of all from byte 64 on
    32  32 bytes: SHA-256 of the network's name and of all from byte 64 on, which the program knows
    64  for each array: u64 where it begins, u64 its bytes
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from n2d2py.contracts.cpp import Array, LayerCode, file_bytes, is_file, panel_file
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.runtime.graph_file import StoredRows

WEIGHTS_FILE = "weights.bin"
_ALIGNMENT, _HEADER = 64, 64


@dataclass(frozen=True)
class StoredArray:
    """An array of the weights file: its name, the type of its elements, its bytes, where they begin."""

    name: str
    ctype: str
    data: bytes
    offset: int = 0


@dataclass(frozen=True)
class WeightsFile:
    """The weights of a network.

    Attributes:
        arrays: in the order of the table.
        where: the condition of the preprocessor under which a program reads them in their order; "" for always.
        identity: the digest that the program knows.
    """

    arrays: tuple[StoredArray, ...]
    where: str
    data: bytes
    identity: bytes

    @staticmethod
    def of(arrays: Iterable[Array], network: str) -> WeightsFile:
        """Return the file of the `arrays` that are apart, in the form of their kernels, else of the portable ones."""
        separate = [array for array in arrays if array.apart]
        conditions = dict.fromkeys(form.where for array in separate for form in array.forms)
        offset, table, stored, parts = _HEADER + 16 * len(separate), b"", list[StoredArray](), list[bytes]()
        for array in separate:
            data = file_bytes(array.forms[0].values if array.forms else array.values)
            parts.append(bytes(-offset % _ALIGNMENT))
            offset += len(parts[-1])
            table += struct.pack("<QQ", offset, len(data))
            stored.append(StoredArray(array.name, array.ctype, data, offset))
            parts.append(data)
            offset += len(data)
        body = table + b"".join(parts)
        identity = hashlib.sha256(network.encode() + b"\0" + body).digest()
        header = struct.pack("<8sIIQII", b"N2D2WGT\0", 1, 0x01020304, offset, len(separate), zlib.crc32(body)) + identity
        where = " && ".join(f"({condition})" for condition in conditions)
        return WeightsFile(tuple(stored), where, header + body, identity)

    def offset(self, name: str) -> int:
        """Where the array `name` begins."""
        return next(one.offset for one in self.arrays if one.name == name)


def weight_rows(node: QuantNode, code: LayerCode, graph: QuantGraph, apart: WeightsFile | None) -> StoredRows | None:
    """Where the weights of a layer lie in a file of the export, `apart` its weights file; None where no file has them unchanged."""
    weights = node.params.get("weights")
    if weights is None or weights.ndim not in (2, 4):
        return None
    array = code.weights or next((one for one in code.arrays if one.borrowed and one.values.size == weights.size), None)
    if array is None:
        return None
    shape = weights.shape
    if weights.ndim == 2:
        shape = (len(weights), *graph.shape(node.inputs[0])[1:])
    values = array.values.view(np.float16) if weights.dtype == np.float16 and array.values.itemsize == 2 else array.values
    axes, order = (0, *range(2, len(shape)), 1), array.order
    if values.size != weights.size or not np.array_equal(weights.reshape(shape).transpose(axes).reshape(-1), values):
        return None
    rows = StoredRows(f"{array.name}.bin", values.dtype.newbyteorder("<").str, shape, axes, weights.ndim == 2)
    if array.apart and apart:
        rows = replace(rows, file=WEIGHTS_FILE, offset=apart.offset(array.name))
    if order and array.forms and (array.derivation or array.apart):
        panels, file = (order.rows, order.inputs, order.outputs, order.each, int(order.filled)), panel_file(array.name)
        rows = replace(rows, file=WEIGHTS_FILE if array.apart else file, panels=panels)
        return replace(rows, bytes=array.forms[0].values.nbytes, sha256=_digest(array.forms[0].values))
    if array.forms or not (array.apart or is_file(array.values, "once")):
        return None
    return replace(rows, bytes=array.values.nbytes, sha256=_digest(array.values))


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(file_bytes(values)).hexdigest()
