"""Operators that are imported by their definition in ONNX, against the evaluator of the onnx package."""

from __future__ import annotations

import numpy as np
from onnx import parser
from onnx.reference import ReferenceEvaluator
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph


@every("attributes", ["", "<align_corners = 0>", "<align_corners = 1>"])
@every("size", [(2, 3, 5, 6), (2, 3, 4, 5, 6)])
def test_affine_grid(size, attributes):
    """Its definition reads an attribute that may be absent, and gives Range vectors of one element."""
    count, axes = size[0], len(size) - 2
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 20]> net (float[{count},{axes},{axes + 1}] theta) => '
        f"(float[{','.join(map(str, (count, *size[2:], axes)))}] y) "
        f"<int64[{len(size)}] size = {{{','.join(map(str, size))}}}> {{ y = AffineGrid {attributes} (theta, size) }}"
    )
    theta = np.random.default_rng(0).normal(size=(count, axes, axes + 1)).astype(np.float32)
    wanted = np.asarray(ReferenceEvaluator(model).run(None, {"theta": theta})[0])
    graph = import_onnx(model)
    (name,) = graph.inputs
    found = run_graph(graph, {name: theta.reshape(graph.shape(name))})[graph.outputs[0]]
    np.testing.assert_allclose(np.asarray(found).reshape(wanted.shape), wanted, atol=1e-5)


@every(
    "node", ["Shrink (x)", "Shrink <lambd = 0.25> (x)", "Shrink <bias = 0.125> (x)", "Shrink <bias = 0.125, lambd = 1.0> (x)"]
)
def test_attributes_that_are_given_or_not(node):
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> net (float[1,3,4,5] x) => (float[a,b,c,d] y) {{ y = {node} }}'
    )
    x = np.random.default_rng(0).normal(size=(1, 3, 4, 5)).astype(np.float32)
    wanted = np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
    found = run_graph(graph := import_onnx(model), {"x": x})[graph.outputs[0]]
    np.testing.assert_array_equal(np.asarray(found).reshape(wanted.shape), wanted)
