"""Real networks: import, fuse, and compare with ONNX Runtime on the file. Max errors are relative to max |y|."""

import time
from pathlib import Path

import numpy as np
import pytest
from support.onnx_models import original_engine
from support.tables import every

from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes import fuse
from n2d2py.reference.engine import FloatEngine
from n2d2py.reference.executor import run_graph

MODELS = Path(__file__).parents[3] / "shared" / "data" / "models"
NAMES = [
    *"ad_autoencoder kws_dscnn mnist8_onnxzoo_opset8 mobilenet_v1_0.5_160 mobilenet_v2_1.0_224 resnet8".split(),
    *"resnet8_tf2onnx vww_96".split(),
]
TOLERANCE = 1e-5


def path_of(name: str) -> Path:
    path = MODELS / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not here: ../shared/data/models is missing")
    return path


def relative_error(got: dict, want: dict) -> float:
    (a,), (b,) = got.values(), want.values()
    assert a.shape == b.shape
    return float(np.abs(a - b).max() / np.abs(b).max())


@every("name", NAMES)
def test_import_equals_onnxruntime(name):
    path = path_of(name)
    graph = import_onnx(path)
    x = np.random.default_rng(0).normal(size=(2, *graph.shape(graph.inputs[0])[1:])).astype(np.float32)
    want = original_engine(path).run(x)
    assert relative_error(FloatEngine(graph).run(x), want) < TOLERANCE
    for integer in (False, True):
        fused, _ = fuse(graph, integer=integer)
        assert relative_error(FloatEngine(fused).run(x), want) < TOLERANCE
    if "mobilenet_v2" not in name:
        assert relative_error(run_graph(graph, {graph.inputs[0]: x}), want) < TOLERANCE


def test_layer_names_are_first_outputs():
    import onnx

    path = path_of("resnet8")
    names = [node.output[0] for node in onnx.load(path).graph.node]
    assert [node.name for node in import_onnx(path).nodes] == names


def test_mobilenet_v2_loads_fast():
    path = path_of("mobilenet_v2_1.0_224")
    start = time.process_time()
    fuse(import_onnx(path), integer=True)
    assert time.process_time() - start < 20  # unbounded work would take far longer


@pytest.mark.parametrize("name", ["kws_dscnn_qdq", "mobilenet_v1_0.5_160_qdq_u8"])
def test_quantized_networks_keep_their_roundings(name):
    assert is_quantized(import_onnx(path_of(name)))
