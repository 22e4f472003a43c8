"""What a padding of arrays stores where it fills: the number itself in plain types, its integer in quantized ones."""

from __future__ import annotations

import numpy as np
from support.tables import every

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
from n2d2py.operators.arrays.index_select.op import ArrayIndexSelect

PADDED = ArrayIndexSelect(3, ((-1, 0, 1, 2, -1),), 2.5)


@every(
    ("kind", "fill", "wanted"),
    [
        (FLOAT32, 2.5, 2.5),
        (NumType(32, plain=True), 7.0, 7),
        (NumType(64, plain=True), -3.0, -3),
        (NumType(8, scale=0.5), 2.5, 5),
        (NumType(8, scale=0.5, zero_point=-20, full=True), 2.5, -15),
        (NumType(8, False, scale=0.125, zero_point=100), -1.0, 92),
        (NumType(8, scale=0.01), 2.5, 127),
    ],
    ids=str,
)
def test_fill_values_by_type(kind, fill, wanted):
    op = ArrayIndexSelect(3, PADDED.offsets, fill)
    graph = QuantGraph("g", 8, inputs=["x"], outputs=["y"])
    graph.tensors = {"x": QuantTensor("x", (1, 3), kind), "y": QuantTensor("y", (1, 5), kind)}
    x = np.array([[1, 2, 3]], kind.dtype)
    node = QuantNode("y", op, ["x"], ["y"])
    (y,) = op.run_integer([x], node, graph)
    assert y.dtype == kind.dtype and y.tolist() == [[wanted, 1, 2, 3, wanted]]
    assert op.stored_fill(kind) == wanted
