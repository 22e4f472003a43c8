"""n2d2py-sweep: every setting once, the same files for every number of workers and after a kill, clear errors."""

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.errors import error_line

from n2d2py.commands.sweep import Outcome, Setting, best, main, read_sweep, run_sweep
from n2d2py.executor import Executor

NETWORK = Path(__file__).resolve().parents[1] / "export" / "parameters.ini"
_OPTIONS = "-seed 1 -w /dev/null -calib 2 -quality fast -db-export 0"


def sweep_file(folder: Path, tried: str, more: str = "Objectives=arena weights") -> Path:
    path = folder / "sweep.ini"
    path.write_text(f"[sweep]\nNetwork={NETWORK}\nOptions={_OPTIONS}\n{more}\n\n{tried}")
    return path


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a sweep of four settings, and in `printed` what it prints."""
    folder = tmp_path_factory.mktemp("sweep")
    path = sweep_file(folder, "[parameters]\nMemoryMode=Speed Small\n\n[options]\nnbbits=8 -32\n")
    with (folder / "printed").open("w") as printed, contextlib.redirect_stdout(printed):
        assert main([str(path), "-o", str(folder / "out")]) == 0
    return folder


def test_every_combination_is_tried_and_the_best_are_marked(finished):
    found = rows(finished / "out")
    assert [(row["MemoryMode"], row["-nbbits"]) for row in found] == [(m, b) for m in ("Speed", "Small") for b in ("8", "-32")]
    arenas = [int(row["arena B"]) for row in found]
    assert arenas[2] < arenas[0] < arenas[1] and [row["best"] for row in found] == ["", "", "*", ""]
    assert (finished / "out" / "sweep.svg").read_text().count('<rect class="k-') == 4
    assert not list((finished / "out").rglob("export_CPP*")), "exports are not kept"
    assert "0002" in (finished / "printed").read_text()


def test_a_setting_that_fails_is_a_row_and_one_without_effect_is_said(tmp_path, capsys):
    path = sweep_file(tmp_path, "[parameters]\nMemoryBudget=10 100000\nMaxExtraMacs=5\nMemoryMode=Speed\n")
    assert main([str(path), "-o", str(tmp_path / "out")]) == 0
    first, second = rows(tmp_path / "out")
    assert "N2D2-E607" in first["problem"] and not first["best"] and second["best"] == "*"
    said = capsys.readouterr().err
    assert "MaxExtraMacs has no effect" in said and "1 of 2 settings failed" in said


def test_finished_settings_are_not_done_again(finished, tmp_path):
    out = shutil.copytree(finished / "out", tmp_path / "out")
    for number in (0, 1):
        result = out / "settings" / f"000{number}" / "result.json"
        data = json.loads(result.read_text())
        data["figures"]["arena"] = 7
        result.write_text(json.dumps(data))
    path = sweep_file(tmp_path, "[parameters]\nMemoryMode=Speed\n\n[options]\nnbbits=8 -16\n")
    assert main([str(path), "-o", str(out)]) == 0
    same, other = (row["arena B"] for row in rows(out))
    assert same == "7" and other != "7", "a result of another setting is not taken"


def test_what_none_beats():
    setting, alone = (Setting(Path(name), (), (), Path("0000")) for name in ("net.ini", "other.ini"))
    points = [(90.0, 100), (80.0, 50), (80.0, 60), (90.0, 100)]
    found = [(setting, Outcome({"score": a, "arena": b})) for a, b in points] + [(setting, Outcome({}, "error"))]
    found.append((alone, Outcome({"score": 1.0, "arena": 1000})))
    assert best(found, ("score", "arena")) == [True, True, False, True, False, True]


@pytest.mark.parametrize(
    ("tried", "more", "code", "words"),
    [
        ("[parameters]\nMemoryMod=Speed\n", "", "E122", "did you mean 'MemoryMode'"),
        ("[parameters]\nMemoryMode=Speed\n", "Objectives=size", "E122", "score, agreement"),
        ("[parameters]\nMemoryMode=Speed\n", "Objectives=score arena", "E122", "-test"),
        ("[parameters]\nMemoryMode=Speed\n", "Objectives=time arena", "E122", "-latency"),
        ("[parameters]\nMemoryMode=Speed\n[options]\nexport-parameters=small\n", "", "E122", "export-parameters"),
        ("[other]\nMemoryMode=Speed\n", "Objectives=arena", "E122", "[other]"),
        ("", "Objectives=arena", "E122", "[parameters]"),
        ("[parameters]\nMemoryMode=Speed\n", "Sampler=random", "E122", "grid"),
    ],
)
def test_errors(tried, more, code, words, tmp_path, capsys):
    path = sweep_file(tmp_path, tried, more or "Objectives=arena")
    assert main([str(path), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert f"N2D2-{code}" in said and words in said and "sweep.ini" in said and "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_a_network_that_is_not_there(tmp_path):
    path = tmp_path / "sweep.ini"
    path.write_text("[sweep]\nNetwork=nowhere.ini\nObjectives=arena\n[parameters]\nMemoryMode=Speed\n")
    assert "nowhere" in error_line(read_sweep, path)


@pytest.mark.slow
def test_optuna_proposes_the_same_whatever_the_workers(tmp_path):
    pytest.importorskip("optuna")
    tried = "[parameters]\nMemoryMode=Speed Balanced Small\nIncludeInputInBuffer=0 1\nBufferAlignment=1 4 16 64\n"
    sweep = read_sweep(sweep_file(tmp_path, tried, "Objectives=arena weights\nSampler=optuna\nTrials=10\nSeed=3\n"))
    found = [run_sweep(sweep, tmp_path / f"out{workers}", Executor(workers)) for workers in (1, 2)]
    first, second = ([(setting.values, outcome) for setting, outcome in one] for one in found)
    assert first == second and len(first) == 10


@pytest.mark.slow
def test_24_settings_on_two_workers_killed_and_resumed_equal_those_of_one(tmp_path):
    tried = "[parameters]\nMemoryMode=Speed Balanced Small\nIncludeInputInBuffer=0 1\nBufferAlignment=4 64\n\n[options]\nnbbits=8 -32\n"
    path = sweep_file(tmp_path, tried)
    command = [sys.executable, "-m", "n2d2py.commands.sweep", str(path)]
    subprocess.run([*command, "-o", "one"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    two = [*command, "-o", "two", "-workers", "2"]
    running = subprocess.Popen(two, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    results = tmp_path / "two" / "settings"
    while len(list(results.glob("*/result.json"))) < 6:
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    done = len(list(results.glob("*/result.json")))
    assert 6 <= done < 24 and not (tmp_path / "two" / "sweep.csv").exists()
    subprocess.run(two, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    for name in ("sweep.csv", "sweep.svg", *(f"settings/{number:04d}/result.json" for number in range(24))):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


@pytest.mark.compiles
def test_networks_and_presets_with_the_figures_of_compiled_exports(tmp_path):
    """The best settings are those of each network; a figure of each kind is positive and equal in all presets where it must be."""
    for name, size in (("small net", 6), ("large", 9)):
        (tmp_path / f"{name.replace(' ', '_')}.ini").write_text(
            f"[database]\nType=Random_Database\nNbStimuli=40\nLearn=0.4\nValidation=0.3\n[sp]\nSizeX={size}\nSizeY={size}\n"
            "[fc]\nInput=sp\nType=Fc\nNbOutputs=10\nWeightsFiller=HeFiller\n[fc.Target]\n"
        )
    path = tmp_path / "sweep.ini"
    path.write_text(
        "[sweep]\nNetwork=small_net.ini large.ini\nOptions=-seed 1 -calib -1 -db-export 5 -test -latency 5\n"
        "Objectives=agreement arena weights stack code time\n[options]\nexport-parameters=default no_reuse\n"
    )
    assert main([str(path), "-o", str(tmp_path / "out")]) == 0
    table = rows(tmp_path / "out")
    assert [(row["network"], row["-export-parameters"]) for row in table] == [
        (network, preset) for network in ("small_net.ini", "large.ini") for preset in ("default", "no_reuse")
    ]
    assert not any(row["problem"] for row in table)
    assert all(float(row["as float %"]) in (0, 20, 40, 60, 80, 100) for row in table), "5 samples are compiled"
    assert all(float(row[title]) > 0 for row in table for title in ("arena B", "stack B", "code B", "time us"))
    assert table[0]["weights B"] == table[1]["weights B"] < table[2]["weights B"]
    for network in (table[:2], table[2:]):
        assert any(row["best"] for row in network)
