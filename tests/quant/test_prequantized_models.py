"""Quantized models, made here and those of the data folder: each integer layer against ONNX Runtime's operators."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support import inverted_residuals

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


@pytest.mark.parametrize("way", inverted_residuals.WAYS)
def test_layers_of_inverted_residuals_are_those_of_the_reference(way, quantized, monkeypatch, tmp_path):
    """Also at the end: outputs within a step, and no fewer identical ones than ONNX Runtime's own exact integers have."""
    monkeypatch.setattr(quantized, "stimuli", lambda path, shape, count: inverted_residuals.stimuli(count))
    result = quantized.measure(inverted_residuals.quantized_network(tmp_path, way), 8)
    same, largest = agreement(result)
    assert len(result.layers) >= 16 and same >= 0.9999 and largest <= 1
    assert all(count.same >= 0.999 * count.elements - 1 for count in result.layers.values())
    assert result.ours.near == result.ours.elements
    assert result.ours.same >= result.exact.same - 0.05 * result.ours.elements


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_layers_are_those_of_the_reference(name, quantized):
    path = MODELS / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there")
    result = quantized.measure(path, 2)
    same, largest = agreement(result)
    assert len(result.layers) > 10 and same >= 0.9999 and largest <= 1
