"""Refusals that do not depend on data are the only message, and come before any calibration."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.tables import every

from n2d2py.cli import main


@pytest.fixture
def fully_convolutional(tmp_path):
    """A network with an output for each position."""
    weights = numpy_helper.from_array(np.random.default_rng(1).standard_normal((3, 2, 3, 3)).astype(np.float32), "w")
    ends = [helper.make_tensor_value_info(n, 1, shape) for n, shape in (("x", [1, 2, 6, 6]), ("y", [1, 3, 4, 4]))]
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "n", ends[:1], ends[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "n.onnx")
    np.savez(tmp_path / "d.npz", images=np.zeros((4, 2, 6, 6), np.float32), labels=np.arange(4) % 3)
    np.save(tmp_path / "beyond.npy", np.array([0, 1, 2, 3]))
    return tmp_path


@every(
    ("options", "code"),
    [
        (("-export", "CPP"), "E507"),
        (("-export", "CPP", "-calib", "2", "-calib-data", "d.npz", "-test"), "E452"),
        (("-export", "CPP", "-calib", "2", "-calib-data", "d.npz", "-labels", "beyond.npy"), "E451"),
        (("-export", "CPP", "-calib", "2", "-calib-data", "d.npz", "-o", "/proc/none"), "E712"),
        (("-calibOnly", "-calib", "2", "-calib-data", "d.npz", "-o", "/proc/none"), "E712"),
        (("-test", "-calib-data", "d.npz"), "E452"),
    ],
)
def test_the_only_message(fully_convolutional, monkeypatch, capsys, options, code):
    def calibrating(*arguments):
        raise AssertionError("calibrates")

    monkeypatch.setattr("n2d2py.stages.calibrate.calibrate", calibrating)
    monkeypatch.chdir(fully_convolutional)
    assert main(["n.onnx", *options, "-quiet"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error N2D2-{code}")


def test_a_missing_compiler_is_said_first(fully_convolutional, monkeypatch, capsys):
    monkeypatch.chdir(fully_convolutional)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main(["n.onnx", "-export", "CPP", "-calib-data", "d.npz", "-compare", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    (at,) = [k for k, line in enumerate(lines) if line.startswith("warning N2D2-W801")]
    assert at < next(k for k, line in enumerate(lines) if line.startswith("calibration"))


@every(
    ("name", "hint"),
    [("net.pt", "torch.onnx.export"), ("net.H5", "tf2onnx"), ("net.pb", "tf2onnx"), ("net.txt", "give an .ini")],
)
def test_files_of_other_frameworks(tmp_path, capsys, name, hint):
    (tmp_path / name).write_bytes(b"")
    assert main([str(tmp_path / name), "-export", "CPP"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "E008" in line and hint in line
