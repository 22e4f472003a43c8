"""[sp] of L x 1 feeds ONNX files of N x C x L; `-calib-data` stands in for a [database] without files."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.errors import refused
from support.onnx_models import runtime_outputs, text_model

from n2d2py import cli
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.load import load_stage
from n2d2py.stages.options import LoadOptions


def write_network(path: Path, channels: int) -> None:
    body = """conv = Conv <strides = [2]> (x, w1) relu = Relu (conv) pool = GlobalAveragePool (relu)
        flat = Flatten (pool) y = Gemm <transB = 1> (flat, w2)"""
    onnx.save(text_model(f"float[1,{channels},40] x => float[1,3] y", body, {"w1": (5, channels, 7), "w2": (3, 5)}), path)


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("size", [(40, 1), (1, 40)])
def test_a_line_of_the_input_is_a_sequence(size, channels, tmp_path):
    write_network(tmp_path / "net.onnx", channels)
    path = tmp_path / "net.ini"
    path.write_text(
        f"[sp]\nSizeX={size[0]}\nSizeY={size[1]}\nNbChannels={channels}\n[onnx]\nInput=sp\nType=ONNX\nFile=net.onnx\n[y.Target]\n"
    )
    graph = load_stage(path, LoadOptions(weights="/dev/null"), tmp_path).graph
    x = np.random.default_rng(0).normal(size=(1, channels, *size[::-1])).astype(np.float32)
    (expected,) = runtime_outputs(tmp_path / "net.onnx", x.reshape(1, channels, 40))
    assert np.allclose(FloatEngine(graph).run(x)["y"], np.asarray(expected), atol=1e-5)


@pytest.mark.parametrize("database", ["Type=ILSVRC2012_Database\nLearn=1.0", "Type=DIR_Database\nDataPath=nowhere\nLearn=0.5"])
def test_given_data_stand_in_for_a_database_without_files(database, tmp_path, monkeypatch, capsys):
    """The transformations of the INI apply to them; without -calib-data, the database is E401."""
    monkeypatch.delenv("N2D2_DATA", raising=False)
    np.save(tmp_path / "bytes.npy", np.random.default_rng(1).integers(0, 256, (12, 3, 9, 8), dtype=np.uint8))
    path = tmp_path / "net.ini"
    path.write_text(
        f"[database]\n{database}\n[sp]\nSizeX=6\nSizeY=6\nNbChannels=3\n[sp.Transformation]\nType=RescaleTransformation\nWidth=6\nHeight=6\n"
        "[fc]\nInput=sp\nType=Fc\nNbOutputs=3\n[fc.Target]\n"
    )
    words = [str(path), "-w", "/dev/null", "-export", "CPP", "-nbbits", "8", "-calib", "-1", "-o", str(tmp_path / "out")]
    assert cli.main(words) == 1 and "N2D2-E401" in capsys.readouterr().err
    assert cli.main([*words, "-calib-data", str(tmp_path / "bytes.npy")]) == 0
    assert (tmp_path / "out" / "export_CPP_int8" / "Makefile").is_file()


def write_images(path: Path, last: str) -> None:
    body = f"conv = Conv <strides = [1, 2]> (x, w) y = {last} (conv)"
    onnx.save(text_model("float[1,2,7,9] x => float y", body, {"w": (5, 2, 3, 2)}), path)


def test_a_transposed_section_takes_transposed_images(tmp_path):
    """Transpose=1: the input has the axes of the file exchanged; outputs that are maps are refused."""
    path = tmp_path / "net.ini"
    path.write_text(
        "[sp]\nSizeX=7\nSizeY=9\nNbChannels=2\n[onnx]\nInput=sp\nType=ONNX\nFile=net.onnx\nTranspose=1\n[y.Target]\n"
    )
    write_images(tmp_path / "net.onnx", "GlobalMaxPool")
    graph = load_stage(path, LoadOptions(weights="/dev/null"), tmp_path).graph
    x = np.random.default_rng(0).normal(size=(1, 2, 9, 7)).astype(np.float32)
    (expected,) = runtime_outputs(tmp_path / "net.onnx", x.transpose(0, 1, 3, 2))
    assert np.allclose(FloatEngine(graph).run(x)["y"], np.asarray(expected), atol=1e-5)
    write_images(tmp_path / "net.onnx", "Relu")
    assert refused("E227.*'y'", lambda: load_stage(path, LoadOptions(weights="/dev/null"), tmp_path))
