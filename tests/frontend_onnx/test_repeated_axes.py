"""A reduction that names an axis twice reduces it once, as in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import parser
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.executor import run_graph


@every("axes", ["2, 2", "3, -2, 1", "1, -4"])
@every("operator", ["ReduceMean", "ReduceMax", "ReduceL2"])
def test_an_axis_that_is_named_twice(operator, axes):
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1,2,3,4,5] x) => (float[a,b,c,d,e] y) {{ y = {operator} <axes = [{axes}]> (x) }}'
    )
    x = np.random.default_rng(1).normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    (found,) = run_graph(import_onnx(model), {"x": x.reshape(1, -1)}).values()
    np.testing.assert_allclose(found.ravel(), np.asarray(wanted).ravel(), rtol=1e-5, atol=1e-6)
