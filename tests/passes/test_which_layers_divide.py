"""Which layers can make some columns, or some channels, of their output alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.tables import every

from n2d2py.arithmetic import NumType
from n2d2py.graph import QuantGraph, QuantNode
from n2d2py.graph.forms import Aligned, Dequantized, Form, Interpolated, Moved, Real, Table, Weighted
from n2d2py.graph.quant import QuantTensor
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.functions import Abs
from n2d2py.operators.pool import Pool
from n2d2py.passes.integer.strips import by_channels, by_columns

ONE, MANY = np.ones(1, np.int32), np.ones(7, np.int32)
IMAGE, VECTOR = (1, 6, 4, 4), (1, 6)
CASES: dict[str, tuple[Any, Form, tuple[int, ...], bool, bool]] = {
    "convolution": (Conv(), Weighted(ONE, ONE), IMAGE, True, True),
    "convolution of a vector": (Conv(), Weighted(ONE, ONE), VECTOR, False, True),
    "real convolution": (Conv(), Real({"weights": ONE, "bias": ONE}), IMAGE, True, True),
    "real convolution with more": (Conv(), Real({"weights": ONE, "bias": ONE, "scales": ONE}), IMAGE, True, False),
    "real convolution with less": (Conv(), Real({"weights": ONE}), IMAGE, True, False),
    "other convolution": (Conv(), Moved(), IMAGE, True, False),
    "pool": (Pool("Max", (2, 2)), Moved(), IMAGE, True, True),
    "dequantized pool": (Pool("Average", (2, 2)), Dequantized(np.ones(1, np.float32)), IMAGE, False, True),
    "function by table": (Activation(Abs()), Table(MANY), IMAGE, True, True),
    "function between knots": (Activation(Abs()), Interpolated(MANY), IMAGE, True, True),
    "function of vectors": (Activation(Abs()), Moved(), VECTOR, False, False),
    "function without table": (Activation(Abs()), Moved(), IMAGE, True, False),
    "sum": (ElemWise("Sum"), Aligned(np.ones(2, np.int32), ONE), IMAGE, True, False),
    "gains of channels": (Affine(), Aligned(np.ones(6, np.int32), ONE), IMAGE, True, False),
    "gains of elements": (Affine(), Aligned(MANY, ONE), IMAGE, False, False),
    "dense": (Fc(), Weighted(ONE, ONE), IMAGE, False, False),
}


def _graph(op: Any, form: Form, shape: tuple[int, ...], outputs: int = 1) -> tuple[QuantGraph, QuantNode]:
    names = [f"y{number}" for number in range(outputs)]
    node = QuantNode("y", op, ["x"], names, form)
    graph = QuantGraph("net", 8)
    graph.tensors = {name: QuantTensor(name, shape, NumType(8)) for name in ("x", *names)}
    graph.nodes = [node]
    return graph, node


@every("name", CASES)
def test_layers_that_divide(name):
    op, form, shape, columns, channels = CASES[name]
    graph, node = _graph(op, form, shape)
    assert (by_columns(graph)("y"), by_channels(graph)("y")) == (columns, channels)
    node.residual = object()  # type: ignore[assignment]
    assert (by_columns(graph)("y"), by_channels(graph)("y")) == (False, False)
    two, _ = _graph(op, form, shape, 2)
    assert (by_columns(two)("y"), by_channels(two)("y")) == (False, False)
