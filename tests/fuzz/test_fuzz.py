"""A few damaged inputs of every kind; `run.py` runs any number of others, `.ci/run` some hundred."""

import os
import subprocess
import sys
from pathlib import Path

import fuzz_process
import pytest
from fuzz_process import run_limited

HERE = Path(__file__).resolve().parent


def test_a_few(tmp_path):
    words = ["-n", "24", "-seed", "100", "-jobs", "1", "-small", "-keep", str(tmp_path / "kept")]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run([sys.executable, str(HERE / "run.py"), *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout
    assert "24 cases, 0 failures" in done.stdout


def says(text: str, status: int):
    def work() -> int:
        os.write(2, text.encode())
        return status

    return work


def raises() -> int:
    raise TypeError("x")


def writes() -> int:
    Path("left").touch()
    return says("error N2D2-E101: x\n", 1)()


def loops() -> int:
    while True:
        pass


@pytest.mark.parametrize(
    "work, kind",
    [
        (says("", 0), "done"),
        (says("error N2D2-E101: x\n", 1), "E101"),
        (says("error N2D2-E099: x\n", 3), "E099"),
        (says("error N2D2-E013: x\n", 1), "E013"),
        (says("", 1), "no message"),
        (says("", 2), "status 2"),
        (says("error N2D2-E101: x\n", 0), "message of success"),
        (raises, "traceback"),
        (os.abort, "status -6"),
        (writes, "written on failure: left"),
        (loops, "hang"),
    ],
)
def test_each_end_is_judged(tmp_path, monkeypatch, work, kind):
    monkeypatch.setattr(fuzz_process, "SECONDS", 1)
    folder = tmp_path / "case"
    folder.mkdir()
    end = run_limited(work, folder, tmp_path / "output")
    assert end.kind == kind and bool(end.wrong) == (kind not in ("done", "E101"))


def test_memory_is_limited(tmp_path):
    (tmp_path / "case").mkdir()
    end = run_limited(lambda: len(bytearray(fuzz_process.MEMORY)), tmp_path / "case", tmp_path / "output")
    assert end.wrong and "MemoryError" in end.text
