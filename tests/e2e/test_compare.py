"""-compare: its exit status and what it says of NaN."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.onnx_models import text_model
from support.programs import needs
from support.tables import few_fast

from n2d2py.cli import main
from n2d2py.exports.cpp.library import Export

pytestmark = needs("g++", "make")

WORDS = ["-seed", "1", "-export", "CPP", "-calib", "2", "-db-export", "0", "-compare", "2", "-quiet"]


def network(folder: Path, body: str) -> Path:
    """x (2x6x6) to y, with the constants "half" and "w"; data between 0 and 1 beside it."""
    constants = {"half": np.full((1, 1, 1, 1), 0.5, np.float32), "w": np.linspace(-1, 1, 24, dtype=np.float32).reshape(6, 4)}
    onnx.save(text_model("float[1,2,6,6] x => float y", body, constants, opset=13), folder / "net.onnx")
    images = np.random.default_rng(0).random((4, 2, 6, 6), np.float32)
    np.savez(folder / "data.npz", images=images, labels=np.zeros(4, np.int64))
    return folder / "net.onnx"


def changed(monkeypatch, layer: str, value: float) -> None:
    """The compiled export gives another value at one place of a layer."""
    run = Export._run_layers

    def other(self, inputs):
        found = run(self, inputs)
        found[layer][1, 0, 2, 3] = value
        return found

    monkeypatch.setattr(Export, "_run_layers", other)


@pytest.mark.parametrize("bits", few_fast(["8", "-32"]))
def test_a_difference_is_an_error_of_a_written_export(bits, tmp_path, capsys, monkeypatch):
    path = network(tmp_path, "a = Sub (x, half) y = Relu (a)")
    words = [str(path), *WORDS, "-calib-data", str(tmp_path / "data.npz"), "-nbbits", bits, "-o", str(tmp_path)]
    changed(monkeypatch, "a", 77)
    assert main(words) == 1
    said = capsys.readouterr()
    assert "E812" in said.err and "layer 'a' differs first, at element [1, 0, 2, 3]" in said.err
    assert "compiled 77" in said.err and "77 for" in said.out
    (written,) = tmp_path.glob("export_CPP_*")
    summary = json.loads((written / "statistics" / "summary.json").read_text())
    assert summary["compare"]["a"]["identical"] is False


def test_nan_in_both_is_equal_and_in_one_is_a_difference(tmp_path, capsys, monkeypatch):
    path = network(tmp_path, "a = Sub (x, half) b = Log (a) y = Add (b, half)")
    words = [str(path), *WORDS, "-calib-data", str(tmp_path / "data.npz"), "-nbbits", "-32", "-o", str(tmp_path)]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "3 layers: compiled values equal" in said.out and "Warning" not in said.err
    (written,) = tmp_path.glob("export_CPP_*")
    assert json.loads((written / "statistics" / "summary.json").read_text())["compare"]["y"]["sqnr_db"] is None
    changed(monkeypatch, "a", np.nan)
    assert main(words) == 1
    assert "layer 'a' differs first, at element [1, 0, 2, 3]" in (said := capsys.readouterr().err) and "compiled nan" in said


def test_what_no_sample_divides_is_divided_by_an_edge_sample(tmp_path, capsys):
    """(x - mean) / deviation: 0 / 0 for constants, the zero point in Python and in C++."""
    path = network(
        tmp_path,
        "m = ReduceMean <axes = [-1]> (x) d = Sub (x, m) q = Mul (d, d) v = ReduceMean <axes = [-1]> (q) s = Sqrt (v)"
        "z = Div (d, s) y = MatMul (z, w)",
    )
    words = [str(path), *WORDS, "-calib-data", str(tmp_path / "data.npz"), "-nbbits", "8", "-o", str(tmp_path)]
    assert main(words) == 0
    assert "identical to Python's" in capsys.readouterr().out


@pytest.mark.parametrize("bits", ["8", "16"])
def test_a_compiled_embedding_looks_up_rows_of_the_output_type(bits, tmp_path, capsys):
    path = network(
        tmp_path, "d = Div (x, half) e = Div (d, half) i = Cast <to = 7> (e) r = Flatten (i) g = Gather (w, r) y = Softmax (g)"
    )
    words = [str(path), *WORDS, "-calib-data", str(tmp_path / "data.npz"), "-nbbits", bits, "-o", str(tmp_path)]
    assert main(words) == 0
    said = capsys.readouterr()
    assert "identical to Python's" in said.out and "W507" not in said.err
