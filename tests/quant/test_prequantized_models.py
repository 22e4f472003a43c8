"""Quantized models, made here and those of the data folder: each integer layer against ONNX Runtime's operators."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODELS = Path(os.environ.get("N2D2_MODELS", ROOT.parent / "shared" / "data" / "models"))
NAMES = ("kws_dscnn_qdq", "resnet8_qdq", "vww_96_qdq", "mobilenet_v1_0.5_160_qdq_u8", "mobilenet_v2_1.0_224_qdq")

pytest.importorskip("onnxruntime")


@pytest.fixture
def quantized(monkeypatch):
    """benchmarks/quantized.py."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import quantized

    return quantized


def agreement(result) -> tuple[float, int]:
    """(share of identical integers over all layers, largest difference)."""
    counts = result.layers.values()
    return sum(c.same for c in counts) / sum(c.elements for c in counts), max(c.largest for c in counts)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_layers_are_those_of_the_reference(name, quantized):
    path = MODELS / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    result = quantized.measure(path, 2)
    same, largest = agreement(result)
    assert len(result.layers) > 10 and same >= 0.9999 and largest <= 1
