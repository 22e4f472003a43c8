"""Networks of deployed kinds: segmentation, pose, detection, attention; in float like ONNX Runtime, in int8 bit for bit."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.programs import need
from support.unseen_networks import UNSEEN, build

from n2d2py import load_export
from n2d2py.cli import main
from n2d2py.frontend.onnx.importer import import_onnx
from n2d2py.quant.types.float_fallback import float_layers
from n2d2py.reference.engine import FloatEngine, original_engine
from n2d2py.reference.executor import run_graph


def feeds_of(model: onnx.ModelProto, count: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        value.name: rng.normal(size=(count, *(d.dim_value for d in value.type.tensor_type.shape.dim[1:]))).astype(np.float32)
        for value in model.graph.input
    }


def as_fed(feeds: dict[str, np.ndarray], graph) -> dict[str, np.ndarray]:
    """In the graph's order of axes: images that the file takes as height, width, channels are turned."""
    return {name: x if x.shape[1:] == graph.shape(name)[1:] else x.transpose(0, 3, 1, 2) for name, x in feeds.items()}


@pytest.mark.parametrize("name", UNSEEN)
def test_float_in_python(name, tmp_path):
    model, path = build(name), tmp_path / "net.onnx"
    onnx.save(model, path)
    graph, feeds = import_onnx(path), feeds_of(model)
    want = list(original_engine(path).run(feeds).values())
    for got in (run_graph(graph, as_fed(feeds, graph)), FloatEngine(graph).run(as_fed(feeds, graph))):
        for expected, found in zip(want, got.values(), strict=True):
            np.testing.assert_allclose(
                found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max())
            )


def exported(name: str, folder: Path, monkeypatch, *options: str) -> int:
    need("make", "g++")
    monkeypatch.chdir(folder)
    onnx.save(build(name), folder / "net.onnx")
    return main(["net.onnx", "-seed", "1", "-export", "CPP", "-fuse", *options])


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSEEN)
def test_float_in_cpp(name, tmp_path, monkeypatch):
    assert exported(name, tmp_path, monkeypatch, "-nbbits", "-32", "-db-export", "0") == 0
    feeds = feeds_of(build(name))
    want = list(original_engine(tmp_path / "net.onnx").run(feeds).values())
    graph = import_onnx(tmp_path / "net.onnx")
    got = load_export(tmp_path / "export_CPP_float32")(*as_fed(feeds, graph).values())
    for expected, found in zip(want, got if isinstance(got, tuple) else (got,), strict=True):
        np.testing.assert_allclose(
            found.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4 * float(np.abs(expected).max())
        )


@pytest.mark.slow
@pytest.mark.parametrize("bits", ["8", "16"])
def test_data_of_several_inputs_in_cpp(bits, tmp_path, monkeypatch, capsys):
    """Calibrated on data, and run on the exported stimuli, a file for each input."""
    rng = np.random.default_rng(4)
    np.savez(
        tmp_path / "data.npz",
        right=rng.normal(size=(20, 3, 8, 8), scale=3).astype(np.float32),
        left=rng.normal(size=(20, 3, 8, 8)).astype(np.float32),
    )
    assert (
        exported(
            "two_inputs",
            tmp_path,
            monkeypatch,
            "-nbbits",
            bits,
            *"-calib 16 -calib-data data.npz -db-export 4 -compare 4 -sensitivity 4 -log-outputs 1".split(),
        )
        == 0
    )
    assert "compiled values identical to Python's" in capsys.readouterr().out
    assert (tmp_path / f"export_CPP_int{bits}" / "stimuli.list").read_text().splitlines()[3] == (
        "stimuli/left003.ppm stimuli/right003.ppm"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", UNSEEN)
def test_integers_in_cpp(name, tmp_path, monkeypatch, capsys):
    """Every layer, the floating-point ones too, bit for bit."""
    assert exported(name, tmp_path, monkeypatch, *"-nbbits 8 -calib 8 -db-export 2 -compare 4 -input-range -2:2".split()) == 0
    assert "compiled values identical to Python's" in capsys.readouterr().out


def test_shuffled_channels_stay_integers():
    assert not float_layers(import_onnx(build("shuffle_units")))


def test_array_operators_have_an_onnx_spelling(tmp_path):
    """So that ONNX Runtime computes the float reference, which is many times faster than NumPy."""
    for name in ("yolo", "ssd", "attention", "segmentation_labels", "deeplab", "detections", "angles"):
        assert FloatEngine(import_onnx(build(name))).backend == "onnxruntime", name


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
