"""Weights of the graph in the files of an export, for the simulator."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from n2d2py.exports.cpp.arrays import file_bytes, is_file, panel_file
from n2d2py.exports.cpp.code import LayerCode
from n2d2py.exports.cpp.weights_file import WEIGHTS_FILE, WeightsFile
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.runtime.stored_rows import StoredRows


def weight_rows(node: QuantNode, code: LayerCode, graph: QuantGraph, apart: WeightsFile | None) -> StoredRows | None:
    """Where the weights of a layer lie in a file of the export, `apart` its weights file; None where no file has them unchanged."""
    weights = node.params.get("weights")
    array = code.weights
    if weights is None or array is None or array.borrowed or weights.ndim not in (2, 4):
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
