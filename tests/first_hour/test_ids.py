"""Ids of tokens, in every type that arrays have them in: an id that is off by one is another word."""

import numpy as np
import onnx
import onnx.parser
import pytest
from support.onnx_models import runtime_outputs, text_model
from support.tables import every

import n2d2py
from n2d2py.frontend.models import load_model
from n2d2py.frontend.onnx.importer import import_onnx

pytestmark = pytest.mark.usefixtures("without_report")

IDS = np.random.default_rng(3).integers(0, 200, (40, 6))


def _network(folder, declared: str):
    """net.onnx: the mean of rows of a table, of ids that are declared as integers, or as real numbers that are converted."""
    real = declared == "float"
    cast = "i = Cast <to = 6> (x)" if real else "i = Identity (x)"
    body = f"{cast} e = Gather (table, i) m = ReduceMean <axes = [1], keepdims = 0> (e) y = Gemm (m, w)"
    model = text_model(f"{declared}[N,6] x => float[N,4] y", body, {"table": (200, 8), "w": (8, 4)}, seed=4)
    onnx.save(model, folder / "net.onnx")
    return folder / "net.onnx"


@every("declared", ["float", "int32", "int64"])
@every("stored", ["float32", "int64", "uint8", "int16"])
def test_ids(declared, stored, tmp_path):
    path = _network(tmp_path, declared)
    result = n2d2py.export(path, data=IDS.astype(stored), folder=tmp_path / "out")
    fed = IDS.astype({"float": np.float32}.get(declared, declared))
    (wanted,) = runtime_outputs(path, fed)
    found = n2d2py.load_simulator(result.folder)(fed)
    assert np.sum((found - wanted) ** 2) < 1e-3 * np.sum(wanted**2)


def test_real_numbers_that_become_integers(tmp_path):
    assert import_onnx(load_model(_network(tmp_path, "float"))).kind("x") == "int32"


def test_real_numbers_that_something_else_reads_too(tmp_path):
    path = _network(tmp_path, "float")
    model = onnx.load(path)
    model.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["z"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["N", 6]))
    onnx.save(model, path)
    assert import_onnx(load_model(path)).kind("x") == ""
