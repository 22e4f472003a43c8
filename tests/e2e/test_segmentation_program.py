"""A segmentation network exported: the program counts the positions as -test does."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from n2d2py.cli import main

NET = """[database]
Type=Numpy_Database
DataPath=d.npz
[sp]
Size=12 8 3
CompositeStimuli=1
[conv]
Input=sp
Type=Conv
KernelSize=3
Stride=2
Padding=1
NbOutputs=6
ActivationFunction=Rectifier
[up]
Input=conv
Type=Deconv
KernelSize=2
Stride=2
NbOutputs=3
[soft]
Input=up
Type=Softmax
NbOutputs=3
[soft.Target]
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None or shutil.which("make") is None, reason="needs g++ and make")
def test_the_program_scores_pixels(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (6, 3, 8, 12), dtype=np.uint8)
    np.savez("d.npz", x=x, y=np.where(rng.random((6, 8, 12)) < 0.2, -1, x[:, 0] // 86))
    (tmp_path / "net.ini").write_text(NET)
    assert (
        main(["net.ini", "-w", "/dev/null", "-seed", "1", "-export", "CPP", "-nbbits", "8", "-calib", "4", "-test", "-quiet"])
        == 0
    )
    rates = re.findall(r"^(simulated int8|compiled) +6 +([0-9.]+)%", capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in rates] == ["simulated int8", "compiled"] and rates[0][1] == rates[1][1]
    folder = tmp_path / "export_CPP_int8"
    subprocess.run(["make", "OPT=-O1"], cwd=folder, check=True, capture_output=True)
    printed = subprocess.run(["bin/run_export"], cwd=folder, check=True, capture_output=True, text=True).stdout
    assert f"Score: {rates[0][1]}%" in printed
