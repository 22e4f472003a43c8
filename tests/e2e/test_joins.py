"""Boxes and scores of detectors in one tensor: what the compiled export gives, and how many detections are found."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support import join_networks
from support.e2e_run import ROOT, assert_layers_equal, compiled_at_once, needs_compiler, random_inputs, run

import n2d2py
from n2d2py.quant.simulator import simulate

YOLO = Path(os.environ.get("N2D2_DATA", ROOT.parent / "shared" / "data")) / "modern" / "yolo"
QUICK = ("split", "integers")
NAMES = ("float_reader", "float_input", "row", "reshaped", "stacked", "moved_integers", "row_of_integers")


def exported(model: Path, data: Path, out: Path) -> Path:
    options = ["-nbbits", "8", "-calib", "-1", "-calib-data", str(data), "-db-export", "0", "-quiet", "-o", str(out)]
    return run(str(model), "-export", "CPP", *options, out=out)


@needs_compiler
@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES)])
def test_compiled_joins_are_those_of_python(name, tmp_path):
    net = join_networks.Joins()
    model = net.save(tmp_path / "net.onnx", getattr(join_networks, name)(net))
    np.save(tmp_path / "x.npy", join_networks.stimuli(16))
    folder = exported(model, tmp_path / "x.npy", tmp_path / "out")
    compiled, simulated = compiled_at_once(folder), n2d2py.load_simulator(folder)
    inputs = random_inputs(simulated, 3)
    assert_layers_equal(compiled.layers(*inputs), simulated.layers(*inputs))


def test_the_detections_of_a_detector_are_found(tmp_path):
    """At least 95 of 100: objectness (row 4) above a half in floating point and in integers."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if not YOLO.is_dir():
        pytest.skip("the data folder has no modern/yolo")
    folder = exported(YOLO / "yolo.ts.onnx", YOLO / "calib.npy", tmp_path)
    graph = n2d2py.load_simulator(folder).graph
    x = np.load(YOLO / "eval.npz")["x"]
    expected = onnxruntime.InferenceSession(str(YOLO / "yolo.ts.onnx")).run(None, {"input": x})[0]
    (name,), kind = graph.outputs, graph.type(graph.inputs[0])
    found = np.concatenate([simulate(graph, [kind.quantize(x[i : i + 10])])[name] for i in range(0, len(x), 10)])
    found = graph.type(name).dequantize(found).reshape(expected.shape)
    detected = expected[:, 4] > 0.5
    assert detected.sum() == 1090
    assert np.mean(found[:, 4][detected] > 0.5) >= 0.95
    assert np.mean(found[:, 5:].argmax(axis=1) == expected[:, 5:].argmax(axis=1), where=detected) >= 0.95
