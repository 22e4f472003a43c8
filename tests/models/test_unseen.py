"""Networks of deployed kinds in floating point, in integers and compiled; exports of several inputs."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.onnx_models import text_model
from support.programs import need

from n2d2py.cli import main


@pytest.mark.slow
@pytest.mark.parametrize("bits", ["8", "16"])
def test_data_of_several_inputs_in_cpp(bits, tmp_path, monkeypatch, capsys):
    """Calibrated on data, and run on the exported stimuli, a file for each input."""
    need("make", "g++")
    monkeypatch.chdir(tmp_path)
    body = """a = Conv <pads = [1, 1, 1, 1]> (left, w) b = Conv <pads = [1, 1, 1, 1]> (right, v) s = Add (a, b)
        r = Relu (s) p = GlobalAveragePool (r) f = Flatten (p) y = Gemm (f, g)"""
    constants = {"w": (8, 3, 3, 3), "v": (8, 3, 3, 3), "g": (8, 5)}
    onnx.save(text_model("float[N,3,8,8] left, float[N,3,8,8] right => float[N,5] y", body, constants), "net.onnx")
    rng = np.random.default_rng(4)
    images = {
        name: rng.normal(size=(20, 3, 8, 8), scale=scale).astype(np.float32) for name, scale in (("right", 3), ("left", 1))
    }
    np.savez(tmp_path / "data.npz", **images)
    words = "-calib 16 -calib-data data.npz -db-export 4 -compare 4 -sensitivity 4 -log-outputs 1".split()
    assert main(["net.onnx", "-seed", "1", "-export", "CPP", "-fuse", "-nbbits", bits, *words]) == 0
    assert "compiled values identical to Python's" in capsys.readouterr().out
    assert (tmp_path / f"export_CPP_int{bits}" / "stimuli.list").read_text().splitlines()[3] == (
        "stimuli/left003.ppm stimuli/right003.ppm"
    )


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
    from networks import NETWORKS

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
