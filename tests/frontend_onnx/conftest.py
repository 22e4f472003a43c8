"""Small ONNX models written as text, and the comparison of their import with ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.onnx_models import original_engine, text_model

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph


def build_model(signature: str, body: str, opset: int = 17, seed: int = 0, **weights) -> onnx.ModelProto:
    """`text_model` with ONNX Runtime's own operators where the body has some; weights are arrays or shapes of normal values."""
    foreign = '"com.microsoft" : 1' if "com.microsoft" in body else ""
    held = {name: value if isinstance(value, np.ndarray) else tuple(np.atleast_1d(value)) for name, value in weights.items()}
    return text_model(signature, body, held, opset=opset, seed=seed, domains=foreign)


def check_import(model: onnx.ModelProto, folder: Path, batch: int = 1, tolerance: float = 1e-5, flat: bool = False):
    """Imports `model` and compares ONNX Runtime and NumPy on it with ONNX Runtime on the file; `flat`: of results, the elements."""
    path = folder / "model.onnx"
    onnx.save(model, path)
    graph = import_onnx(path)
    generator = np.random.default_rng(1)
    feeds = {name: generator.normal(size=(batch, *graph.shape(name)[1:])).astype(np.float32) for name in graph.inputs}
    expected = list(original_engine(path).run(feeds).values())
    for outputs in (FloatEngine(graph).run(feeds), run_graph(graph, feeds)):
        for want, got in zip(expected, outputs.values(), strict=True):
            want, got = (each.reshape(batch, -1) if flat else each for each in (want, got))
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(1.0, np.abs(want).max()))
    return graph


@pytest.fixture
def model():
    """`build_model`."""
    return build_model


@pytest.fixture
def check(tmp_path):
    """`check_import` in a temporary folder."""
    return lambda built, **options: check_import(built, tmp_path, **options)


@pytest.fixture
def one_node():
    """A model of a single node on x (shape) -> y, with constant further inputs."""

    def build(
        op_type: str, shape: list, constants: dict[str, np.ndarray] | None = None, opset: int = 17, **attributes
    ) -> onnx.ModelProto:
        constants = constants or {}
        node = helper.make_node(op_type, ["x", *constants], ["y"], **attributes)
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info("x", 1, shape)],
            [onnx.ValueInfoProto(name="y")],
            [numpy_helper.from_array(array, name) for name, array in constants.items() if name],
        )
        graph.output[0].type.tensor_type.elem_type = 1
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    return build
