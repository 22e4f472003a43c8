"""The memory report beside real exports: what it says an export needs is what the written project says it has."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.onnx_models import text_model
from support.tables import few_fast

from n2d2py.cli import main

MODELS = Path(__file__).parents[2] / "models"
MCU = "-export CPP_MCU"
CASES = [
    ("LeNet.ini", "", True),
    ("LeNet.ini", "-nbbits -32", False),
    ("LeNet.ini", MCU, True),
    ("LeNet_QAT.ini", "", True),
    ("MobileNet.onnx", "", True),
    ("MaxPoolAdd.onnx", "-nbbits -32", False),
    ("../plugins/nvdla/models/Add.ini", "-nbbits 16", True),
]


def both(network: Path, options: str, calibrated: bool, folder: Path, capsys) -> tuple[str, int]:
    """Return the text of the report, and the bytes of the arena of the export."""
    words = [str(network), "-seed", "1", *options.split()]
    if network.suffix == ".ini" and not network.with_suffix(".npz").exists():
        words += ["-w", "/dev/null"]
    assert main([*words, "-memory-report"]) == 0
    text = capsys.readouterr().out
    words += [] if "-export" in options else ["-export", "CPP"]
    assert main([*words, *(["-calib", "2"] if calibrated else []), "-db-export", "0", "-o", str(folder)]) == 0
    capsys.readouterr()
    (written,) = folder.iterdir()
    return text, json.loads((written / "statistics" / "memory" / "memory_map.json").read_text())["arena_size"]


def arena(text: str) -> int:
    return int(re.findall(r"an arena of ([\d,]+) bytes", text)[0].replace(",", ""))


@pytest.mark.parametrize(("network", "options", "calibrated"), few_fast(CASES, 4))
def test_the_report_has_the_arena_of_the_export(network, options, calibrated, tmp_path, capsys):
    text, exported = both(MODELS / network, options, calibrated, tmp_path, capsys)
    assert arena(text) == exported and (network.endswith(".ini") or "depends on" not in text)


def test_scratch_is_part_of_it(tmp_path, capsys):
    """640 inputs of a fully connected layer, widened to 16 bits, as they were before, and a tail: 1,408 + 640 + 64 bytes at least."""
    model = text_model("float[1,640] x => float[1,128] y", "y = Gemm (x, w)", {"w": (640, 128)})
    onnx.save(model, tmp_path / "fc.onnx")
    text, exported = both(tmp_path / "fc.onnx", "", True, tmp_path / "out", capsys)
    assert arena(text) == exported >= 1408 + 640 + 64


def test_what_a_calibration_decides_is_said(tmp_path, capsys):
    """Two ranges that are joined: one type keeps the values where they are, two need a copy, far apart they have 16 bits."""
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(size=(8, 3, 3, 3)).astype(np.float32) * gain for name, gain in (("a", 1), ("b", 40))}
    body = "p = Conv (x, a) q = Conv (x, b) c = Concat <axis = 1> (p, q) y = MaxPool <kernel_shape = [2, 2]> (c)"
    path = tmp_path / "join.onnx"
    onnx.save(text_model("float[1,3,10,10] x => float[1,16,7,7] y", body, weights), path)
    text, exported = both(path, "", True, tmp_path / "out", capsys)
    told = [int(each.replace(",", "")) for each in re.findall(r"an arena of ([\d,]+) bytes", text)]
    assert "depends on" in text and exported in told and len(told) > 1


def test_a_target_that_places_its_memory_is_refused(capsys):
    assert main([str(MODELS / "LeNet.ini"), "-memory-report", "-export", "ONNX"]) == 2
    assert "E007" in capsys.readouterr().err
