"""Files of a target folder, and the printed tables."""

import numpy as np
import pytest
from support.errors import error_line, refused
from support.tables import every

from n2d2py.cli import main
from n2d2py.targets import Scorer, ScoreRow, agreement, score_table, target_folder_name, write_target_files
from n2d2py.targets.scorer import StoredTensors
from n2d2py.targets.target import ScoreTarget

OUTPUTS = np.array([[1.0, 5.0], [7.0, 3.0], [0.0, 1.0], [2.0, 1.0]])
LABELS = np.array([1, 1, 0, 0])


def scored(outputs=OUTPUTS, labels=LABELS, top_n=1, indices=None, names=("a.png", 'b "x".png', "c.png", "d.png")):
    scorer = Scorer(ScoreTarget("net:fc.Target", "fc", top_n), ("zero", "one"))
    scorer.add(outputs, labels, names[: len(outputs)], indices=indices)
    return scorer.result()


def lines_of(path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def test_folder_names_are_safe():
    assert target_folder_name("net:a/b.Target") == "net_a_b.Target"
    assert target_folder_name("..") == "__"


def test_files_hold_the_figures(tmp_path):
    home = write_target_files(tmp_path, scored(top_n=2), "test")
    assert home == tmp_path / "net_fc.Target"
    assert lines_of(home / "ConfusionMatrix_test.dat") == [
        "0 0 1 0.500000",
        "0 1 1 0.500000",
        "1 0 1 0.500000",
        "1 1 1 0.500000",
    ]
    assert lines_of(home / "Misclassified_test.dat") == ['1 1 0 7 "b \\"x\\".png"', '2 0 1 1 "c.png"']
    assert lines_of(home / "Success_test.dat") == ["0 1 1.000000", "1 0 0.500000", "2 0 0.333333", "3 1 0.500000"]
    assert lines_of(home / "SuccessTopN_test.dat")[1] == "1 1 1.000000" and (home / "SuccessTopN_test.svg").is_file()
    assert lines_of(home / "ConfusionMatrix_test_score.dat")[0].split()[:3] == ["0", "0.500000", "0.500000"]
    assert (home / "ConfusionMatrix_test_score.svg").is_file() and (home / "Success_test.svg").is_file()
    assert lines_of(home / "test" / "classif.log")[1] == '1 "b \\"x\\".png" 1 0 7 1 3'


def test_files_are_the_same_every_time(tmp_path):
    for name in ("first", "second"):
        write_target_files(tmp_path / name, scored(), "export")
    first = sorted(p for p in (tmp_path / "first").rglob("*") if p.is_file())
    assert {p.name for p in first} == {
        *"ConfusionMatrix_export.dat ConfusionMatrix_export.svg ConfusionMatrix_export_score.dat".split(),
        *"ConfusionMatrix_export_score.svg Success_export.svg Misclassified_export.dat Success_export.dat".split(),
        *"classif.log".split(),
    }
    for path in first:
        assert path.read_bytes() == (tmp_path / "second" / path.relative_to(tmp_path / "first")).read_bytes()


def test_without_labels_only_the_log_is_written(tmp_path):
    home = write_target_files(tmp_path, scored(labels=None), "test")
    assert [p.name for p in home.rglob("*") if p.is_file()] == ["classif.log"]


def test_the_table_compares_on_shared_stimuli():
    base = scored()
    other = scored(OUTPUTS[[0, 1]], LABELS[:2], indices=[2, 3])
    assert agreement(base, other) == 100.0
    compiled = scored(OUTPUTS[:1], LABELS[:1], indices=[0])
    table = score_table([ScoreRow("float", base), ScoreRow("simulated int8", base), ScoreRow("compiled", compiled)])
    rows = [line.split() for line in table.splitlines()]
    assert rows[0][:6] == ["stimuli", "top-1", "agrees", "with", "float", "points"]
    assert rows[2][:3] == ["float", "4", "50.00%"]
    assert rows[3][:6] == ["simulated", "int8", "4", "50.00%", "100.00%", "+0.00"]
    assert rows[4] == ["compiled", "1", "100.00%", "100.00%", "+0.00", "-", "1.0000"]
    assert "on the stimuli shared with float" in table


def test_auto_encoders_have_their_own_table(tmp_path):
    def encoded(error):
        scorer = Scorer(ScoreTarget("ae.Target", "ae", as_data=True))
        scorer.add(np.full((2, 3), error), np.array([0, 1]), inputs=np.zeros((2, 3)))
        return scorer.result()

    table = score_table([ScoreRow("float", encoded(1.0)), ScoreRow("int8", encoded(1.1))])
    assert table.splitlines()[3].split() == ["int8", "2", "1.21", "0.5000", "+21.00%"]
    home = write_target_files(tmp_path, encoded(2.0), "test")
    assert lines_of(home / "Errors_test.dat") == ['0 0 4 "0"', '1 1 4 "1"']


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
    assert refused("E455.* 4", lambda: stored.read(np.array([4]), (3, 2, 5)))


def test_vectors_padded_to_a_matrix(tmp_path):
    (tmp_path / "0.dat").write_text("1 2 3\n4 5 0\n")
    assert StoredTensors(tmp_path).read(np.array([0]), (5,)).tolist() == [[1, 2, 3, 4, 5]]
    assert "E455" in error_line(lambda: StoredTensors(tmp_path).read(np.array([0]), (4,)))
    (tmp_path / "0.dat").write_text("1 two")
    assert "0.dat" in error_line(lambda: StoredTensors(tmp_path / ".").read(np.array([0]), (4,)))
    assert refused("E455.*no file", lambda: StoredTensors(tmp_path, "*.npy").read(np.array([0]), (4,)))


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
