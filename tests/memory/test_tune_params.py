"""bin/tune_params: the table and the CSV of files that work, and of one that does not."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.memory_compiled import ROOT, needs_tools

SCRIPT = ROOT / "bin" / "tune_params"


def run(*words: object, cwd: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "OPT": "-O1"}
    return subprocess.run([SCRIPT, *map(str, words)], cwd=cwd, capture_output=True, text=True, env=environment)


def test_a_missing_file_is_named(tmp_path):
    done = run(ROOT / "models" / "LeNet.ini", "-params", "nowhere.ini", cwd=tmp_path)
    assert done.returncode == 2 and "E101" in done.stderr and "low_memory" in done.stderr and not list(tmp_path.iterdir())


@needs_tools
@pytest.mark.slow
def test_the_table_of_two_files_and_a_budget_that_cannot_be_met(tmp_path):
    files = {"speed": "MemoryMode=Speed\n", "small": "MemoryMode=Small\n", "tiny": "MemoryBudget=10\n"}
    for name, text in files.items():
        (tmp_path / f"{name}.ini").write_text(text)
    done = run(
        ROOT / "models" / "LeNet_mapping.ini",
        "-params",
        *(f"{name}.ini" for name in files),
        "-rounds",
        2,
        "-o",
        "out",
        cwd=tmp_path,
    )
    assert done.returncode == 1
    rows = list(csv.DictReader((tmp_path / "out" / "tune_params.csv").open()))
    assert [(row["network"], row["params"]) for row in rows] == [("LeNet_mapping", name) for name in files]
    fast, small, tiny = rows
    assert int(small["arena"]) < int(fast["arena"]) and float(fast["ratio"]) == 1.0 and float(small["ms"]) > 0
    assert all(int(row[key]) > 100 for row in (fast, small) for key in ("stack", "constants", "code"))
    assert tiny["arena"] == "" and "E607" in tiny["note"]
    assert f"{int(fast['arena']):,}" in done.stdout and "E607" in done.stdout
