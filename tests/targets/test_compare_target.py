"""TargetCompare: the error between a layer's output and tensors in files."""

from __future__ import annotations

import numpy as np
import pytest
from support.tables import every

from n2d2py.cli import main
from n2d2py.errors import N2D2Error
from n2d2py.targets import Scorer
from n2d2py.targets.stored import StoredTensors
from n2d2py.targets.target import ScoreTarget

VALUES = np.random.default_rng(0).normal(size=(4, 3, 2, 5)).astype(np.float32)


def text(array: np.ndarray) -> str:
    """A matrix for each channel, as -log-outputs writes them."""
    return "\n\n".join("\n".join(" ".join(f"{v:.9g}" for v in row) for row in channel) for channel in array)


@every("form", ["dat", "npy", "bin", "packed"])
@every("order, transposed", [("NCHW", False), ("NHWC", False), ("NCHW", True), ("NHWC", True)])
def test_files(tmp_path, form, order, transposed):
    shown = VALUES.transpose(0, 1, 3, 2) if transposed else VALUES
    shown = np.ascontiguousarray(shown.transpose(0, 2, 3, 1) if order == "NHWC" else shown)
    for number, array in enumerate(shown.reshape(2, 2, *shown.shape[1:]) if form == "packed" else shown):
        if form == "dat":
            (tmp_path / f"{number}.dat").write_text("# stimulus\n" + text(array))
        elif form == "bin":
            array.tofile(tmp_path / f"{number}.bin")
        else:
            np.save(tmp_path / f"{number}.npy", array)
    stored = StoredTensors(tmp_path, "*." + ("npy" if form == "packed" else form), order, transposed)
    np.testing.assert_allclose(stored.read(np.array([3, 0, 2]), (3, 2, 5)), VALUES[[3, 0, 2]], rtol=1e-7)
    with pytest.raises(N2D2Error, match="E455.* 4"):
        stored.read(np.array([4]), (3, 2, 5))


def test_vectors_padded_to_a_matrix(tmp_path):
    (tmp_path / "0.dat").write_text("1 2 3\n4 5 0\n")
    assert StoredTensors(tmp_path).read(np.array([0]), (5,)).tolist() == [[1, 2, 3, 4, 5]]
    with pytest.raises(N2D2Error, match="E455"):
        StoredTensors(tmp_path).read(np.array([0]), (4,))
    (tmp_path / "0.dat").write_text("1 two")
    with pytest.raises(N2D2Error, match="E455.*0.dat cannot be read"):
        StoredTensors(tmp_path / ".").read(np.array([0]), (4,))
    with pytest.raises(N2D2Error, match="E455.*no file"):
        StoredTensors(tmp_path, "*.npy").read(np.array([0]), (4,))


def test_errors_of_each_stimulus(tmp_path):
    for number, array in enumerate(VALUES):
        np.save(tmp_path / f"{number}.npy", array)
    scorer = Scorer(ScoreTarget("x.Target", "x", as_data=True, kind="TargetCompare", stored=(tmp_path, "*.npy", "NCHW", False)))
    scorer.add(VALUES[:2] + 0.5, np.array([-1, -1]))
    scorer.add(VALUES[2:], np.array([-1, -1]))
    assert scorer.result().errors == pytest.approx([0.25, 0.25, 0, 0])


NET = """[database]
Type=Random_Database
NbStimuli=3
[sp]
SizeX=4
SizeY=4
[conv]
Input=sp
Type=Conv
KernelSize=3
NbOutputs=2
[conv.Target]
Type=TargetCompare
DataPath=dumps
Matching=conv*.dat
"""


@pytest.mark.compiles
def test_with_logged_outputs(tmp_path, monkeypatch, capsys):
    """What -log-outputs writes is what TargetCompare reads."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dumps").mkdir()
    (tmp_path / "net.ini").write_text(NET.replace("Type=TargetCompare\n", ""))
    for number in (1, 2, 3):
        assert main(["net.ini", "-w", "/dev/null", "-seed", "1", "-log-outputs", str(number), "-quiet"]) == 0
        (logged,) = tmp_path.glob(f"outputs_*_{number}/conv.dat")
        logged.rename(tmp_path / "dumps" / f"conv{number}.dat")
    (tmp_path / "net.ini").write_text(NET)
    capsys.readouterr()
    assert main(["net.ini", "-w", "/dev/null", "-seed", "1", "-test", "-quiet"]) == 0
    error = float(capsys.readouterr().out.split("Mean squared error:")[1].split()[0])
    assert error < 1e-10
    (tmp_path / "net.ini").write_text(NET.replace("DataPath=dumps", "DataPath=nowhere"))
    assert main(["net.ini", "-w", "/dev/null", "-seed", "1", "-test", "-quiet"]) == 1
    (tmp_path / "net.ini").write_text(NET + "TargetFormat=CHW\n")
    assert main(["net.ini", "-w", "/dev/null", "-seed", "1", "-test", "-quiet"]) == 1
    assert "E122" in capsys.readouterr().err
