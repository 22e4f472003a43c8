"""The same command gives the same bytes, whatever the process, the folder and the hash seed; Ctrl-C leaves no trace."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.e2e_run import HERE, MODELS, ROOT, assert_same_tree, command, export, needs_compiler, process, tree
from support.tables import few_fast


def run_apart(place: Path, seed: str, network: str, *options: str) -> dict[str, bytes]:
    """The export of a copy of the network, written from `place` by another process."""
    shutil.copytree(MODELS, place / "networks")
    shutil.copy(HERE / "branches.ini", place / "networks")
    out = place / "out"
    weights = place / "networks" / "LeNet.npz" if network == "LeNet" else "/dev/null"
    words = [
        str(place / "networks" / f"{network}.ini"),
        "-w",
        str(weights),
        *"-export CPP -calib 8 -db-export 4 -o".split(),
        str(out),
        *options,
    ]
    (place / "cwd").mkdir()
    done = process(words, place / "cwd", PYTHONHASHSEED=seed, TMPDIR=str(place))
    assert done.returncode == 0, done.stderr
    assert not list((place / "cwd").iterdir())
    return tree(out)


@needs_compiler
@pytest.mark.parametrize(
    "network,checks",
    [
        ("branches", ""),
        pytest.param("LeNet", "-test -nb-test 20 -compare 2", marks=pytest.mark.slow),
        pytest.param("branches", "-test -nb-test 20 -compare 2", marks=pytest.mark.slow),
        pytest.param("MobileNet", "-test -compare 2 -act-rescaling-mode Fixed-point32", marks=pytest.mark.slow),
    ],
)
def test_two_runs_give_the_same_bytes(network, checks, tmp_path):
    params = ("-export-parameters", str(ROOT / "params" / "low_memory.ini"))
    (tmp_path / "one").mkdir()
    (tmp_path / "another_place").mkdir()
    options = ("-log-outputs", "2", *checks.split(), *params)
    one = run_apart(tmp_path / "one", "1", network, *options)
    other = run_apart(tmp_path / "another_place", "4242", network, *options)
    assert_same_tree(one, other)
    assert len(one) > 60
    for name, data in one.items():
        assert str(tmp_path).encode() not in data, f"{name} holds a path of this machine"
        if not name.endswith((".png", ".npz", ".pgm", ".ppm")):
            assert b"\r" not in data, name


@needs_compiler
@pytest.mark.parametrize("moment", few_fast(["building", "writing"]))
def test_ctrl_c_leaves_the_previous_export(moment, tmp_path):
    before = tree(export("LeNet", tmp_path, "-calib", "4", "-db-export", "2"))
    words = [word for word in command("LeNet", tmp_path, "-calib", "4", "-db-export", "-1", "-test") if word != "-quiet"]
    temporary = tmp_path.parent / f"{tmp_path.name}_tmp"
    temporary.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "n2d2py", *words],
        text=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "OPT": "-O3"},
    )
    pattern = ".export_CPP_int8.partial-*/dnn" if moment == "writing" else "n2d2py-*/export/build/dnn"
    where = tmp_path if moment == "writing" else temporary
    end = time.monotonic() + 60
    while not any(where.glob(pattern)) and running.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    assert running.poll() is None, "it ended before it could be interrupted"
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "error N2D2-E010" in errors and "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["export_CPP_int8"]
    assert_same_tree(before, tree(tmp_path / "export_CPP_int8"))
    assert not list(temporary.glob("n2d2py*"))
