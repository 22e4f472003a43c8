"""Products of two arrays take in what moves or scales their operands and their result, and nothing that does more."""

from __future__ import annotations

import re

import numpy as np
from onnx import numpy_helper, parser
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.passes.product_views import ProductOperand, ProductResult

CONSTANTS = {
    "half": np.array(0.5, np.float32),
    "less": np.array(-0.5, np.float32),
    "each": np.array([0.5, 1, 2, 0.5, 1, 2], np.float32),
    "w": np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32),
    "shape": np.array([1, 2, 2, 4, 6]),
    "twice": np.array([1, 1, 1, 1, 2]),
    "last": np.array([-1]),
    "second": np.array([1]),
    "end": np.array([99]),
    "begin": np.array([-99]),
    "columns": np.array([4]),
    "rows": np.array([3]),
    "pads": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
}


def graph_of(body: str, outputs: str = "y"):
    results = ", ".join(f"float[N] {name}" for name in outputs.split())
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1,2,1,4,6] x, float[1,2,1,6,3] z) => ({results}) {{ {body} }}'
    )
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in CONSTANTS.items() if re.search(rf"\b{name}\b", body)
    )
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return import_onnx(model)


def products(graph) -> list[tuple[int, float, bool]]:
    """Of each product: the layers of the network, its factor, and whether it reads or writes in another order."""
    return [
        (len(graph.nodes), round(node.op.scale, 6), bool(node.op.views))
        for node in graph.nodes
        if node.op.kind == "ArrayMatMul"
    ]


@every(
    "body, found",
    [
        ("y = MatMul (x, z)", (1, 1.0, False)),
        ("s = Mul (x, half)\n y = MatMul (s, z)", (1, 0.5, True)),
        ("s = Mul (z, half)\n y = MatMul (x, s)", (1, 0.5, True)),
        ("s = Div (x, half)\n t = Mul (z, half)\n u = Mul (t, half)\n y = MatMul (s, u)", (1, 0.5, True)),
        ("s = Mul (x, less)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Mul (x, each)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Add (x, half)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Relu (x)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Mul (x, half)\n y = MatMul (s, w)", (2, 1.0, False)),
        (
            "s = Transpose <perm = [0, 1, 2, 4, 3]> (x)\n t = Transpose <perm = [0, 1, 2, 4, 3]> (z)\n y = MatMul (t, s)",
            (1, 1.0, True),
        ),
        ("s = Expand (x, shape)\n y = MatMul (s, z)", (1, 1.0, True)),
        ("s = Slice (x, second, end, columns)\n t = Slice (z, second, end, rows)\n y = MatMul (s, t)", (1, 1.0, True)),
        ("s = Slice (x, last, begin, columns, last)\n y = MatMul (s, z)", (2, 1.0, False)),
        ("s = Pad (x, pads)\n y = MatMul (s, z)", (2, 1.0, False)),
    ],
)
def test_operands(run, body, found):
    after, _ = run(graph_of(body), ProductOperand())
    assert products(after) == [found]


@every(
    "body, found",
    [
        ("p = MatMul (x, z)\n y = Mul (p, half)", (1, 0.5, False)),
        ("p = MatMul (x, z)\n y = Mul (p, less)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Add (p, half)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Relu (p)", (2, 1.0, False)),
        ("p = MatMul (x, w)\n y = Mul (p, half)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Transpose <perm = [0, 3, 1, 2, 4]> (p)", (1, 1.0, True)),
        ("p = MatMul (x, z)\n q = Transpose <perm = [0, 3, 1, 2, 4]> (p)\n y = Mul (q, half)", (1, 0.5, True)),
        ("p = MatMul (x, z)\n y = Slice (p, second, end, columns)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Tile (p, twice)", (2, 1.0, False)),
        ("p = MatMul (x, z)\n y = Slice (p, last, begin, columns, last)", (2, 1.0, False)),
    ],
)
def test_results(run, body, found):
    after, _ = run(graph_of(body), ProductResult())
    assert products(after) == [found]


def test_a_result_that_others_read_stays(run):
    for body, outputs in (
        ("p = MatMul (x, z)\n y = Mul (p, half)\n v = Relu (p)", "y v"),
        ("p = MatMul (x, z)\n y = Mul (p, half)", "y p"),
    ):
        before = graph_of(body, outputs)
        after, _ = run(before, ProductResult())
        assert products(after) == products(before)
