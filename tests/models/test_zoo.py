"""Networks of torchvision, timm and benchmarks/zoo/heads.py through the whole tool, where PyTorch and the two are installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ZOO = Path(__file__).parents[2] / "benchmarks" / "zoo"
NAMES = ("yolo", "mobilenet_v3_small", "shufflenet_v2_x0_5", "unet")


@pytest.fixture
def zoo(monkeypatch):
    """(write, measure, the networks) of the zoo."""
    for name in ("torch", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.syspath_prepend(str(ZOO))
    from files import write
    from measure import measure
    from support.memory_networks import NETWORKS

    yield write, measure, NETWORKS
    for name in ("files", "measure", "networks", "heads", "page"):
        sys.modules.pop(name, None)


@pytest.mark.slow
@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
@pytest.mark.parametrize("name", NAMES)
def test_float_and_integers(name, exporter, zoo, tmp_path):
    write, measure, networks = zoo
    path = tmp_path / "net.onnx"
    try:
        write(name, exporter, path)
    except (ImportError, RuntimeError) as reason:  # torchvision built for another PyTorch raises the latter
        pytest.skip(f"{networks[name].origin} cannot be used: {reason}")
    row = measure(path, name, exporter, networks[name].size, "pfic")
    assert not row.refused and not row.failure
    assert max(row.engine, row.python, row.compiled) < 1e-4
    assert row.identical and row.correlation > 0.5, row
