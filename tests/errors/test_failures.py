"""Failures of the machine and of the user's patience: nothing is half-written, an earlier export survives."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.error_cases import EXPORT, code_of, headline, messages, snapshot
from support.programs import run_command

import n2d2py
from n2d2py import pipeline
from n2d2py.cli import main

ROOT = Path(n2d2py.__file__).resolve().parents[1]
WORDS = ["net.ini", *EXPORT.split()]
BINARY = (sys.executable, "-m", "n2d2py")


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def failing(monkeypatch, owner: object, name: str, error: BaseException, *, after: int = 0) -> list[int]:
    """Replaces a function by one that works `after` times, then raises; returns the list of its calls."""
    original, calls = getattr(owner, name), []

    def replacement(*args, **keywords):
        calls.append(1)
        if len(calls) > after:
            raise error
        return original(*args, **keywords)

    monkeypatch.setattr(owner, name, replacement)
    return calls


@pytest.mark.parametrize("after", [0, 1, 7, 20])
def test_a_full_disk_leaves_the_previous_export(workspace, monkeypatch, capsys, after):
    before = snapshot(workspace)
    calls = failing(monkeypatch, Path, "write_text", OSError(errno.ENOSPC, "No space left on device"), after=after)
    assert main(WORDS) == 1
    assert len(calls) == after + 1
    (found,) = messages(capsys.readouterr().err, "error")
    assert found.startswith("error N2D2-E713: export_CPP_int8 ") and "No space left on device; " in found
    assert snapshot(workspace) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="mounting a small disk takes root")
def test_a_disk_that_is_really_full(workspace, tmp_path, capsys):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        assert main([*WORDS, "-o", str(disk)]) == 1
        (found,) = messages(capsys.readouterr().err, "error")
        assert found.startswith(f"error N2D2-E713: {disk}/export_CPP_int8 ") and "No space left on device; " in found
        assert list(disk.iterdir()) == []
    finally:
        run_command("umount", str(disk))


@pytest.mark.parametrize("code, reason", [(errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only file system")])
def test_an_output_that_cannot_be_written(workspace, monkeypatch, capsys, code, reason):
    before = snapshot(workspace)
    original = Path.mkdir

    def mkdir(path, *args, **keywords):
        if ".partial" in str(path):
            raise OSError(code, reason, str(path))
        original(path, *args, **keywords)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert main(WORDS) == 1
    (found,) = messages(capsys.readouterr().err, "error")
    assert found.startswith("error N2D2-E712: export_CPP_int8 ") and f": {reason}; " in found
    assert snapshot(workspace) == before


@pytest.mark.parametrize("stage", ["load_stage", "calibrate_stage", "plan_stage", "export_stage", "report_stage"])
def test_an_interrupt_in_any_stage_leaves_the_previous_export(workspace, monkeypatch, capsys, stage):
    before = snapshot(workspace)
    failing(monkeypatch, pipeline, stage, KeyboardInterrupt())
    assert main(WORDS) == 130
    assert list(map(code_of, messages(capsys.readouterr().err, "error"))) == ["E010"]
    assert snapshot(workspace) == before


@pytest.mark.parametrize("command", ["main", "sweep", "report"])
def test_an_interrupt_during_the_imports(command):
    script = (
        "import sys, os, signal\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        "        name == 'numpy' and os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
        f"from n2d2py.__main__ import {command}\n"
        f"sys.exit({command}())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, *WORDS], env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_memory_that_is_exhausted(workspace, monkeypatch, capsys):
    before = snapshot(workspace)
    failing(monkeypatch, pipeline, "export_stage", MemoryError())
    assert main(WORDS) == 1
    assert list(map(code_of, messages(capsys.readouterr().err, "error"))) == ["E013"]
    assert snapshot(workspace) == before


def test_a_defect_of_the_tool_is_one_line(workspace, monkeypatch, capsys):
    before = snapshot(workspace)
    failing(monkeypatch, pipeline, "export_stage", RuntimeError("a broken\ninvariant"))
    assert main(WORDS) == 3
    printed = capsys.readouterr().err
    (found,) = messages(printed, "error")
    assert code_of(found) == "E099" and "RuntimeError: a broken invariant; " in found
    assert "Traceback" not in printed
    assert snapshot(workspace) == before
    main([*WORDS, "-verbose"])
    assert "Traceback" in capsys.readouterr().err


def test_without_a_compiler_the_test_is_a_warning(workspace, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(workspace / "nothing"))
    assert main([*WORDS, "-test"]) == 0
    printed = capsys.readouterr()
    assert messages(printed.err, "warning") == [
        "warning N2D2-W801: no C++ compiler or make: the compiled export is not tested; install g++ and make"
    ]
    assert "simulated int8" in printed.out and "compiled" not in printed.out


def test_without_a_compiler_strict_fails_and_keeps_the_previous_export(workspace, monkeypatch, capsys):
    before = snapshot(workspace)
    monkeypatch.setenv("PATH", str(workspace / "nothing"))
    assert main([*WORDS, "-test", "-strict"]) == 1
    assert messages(capsys.readouterr().err, "error") == [
        "error N2D2-W801: no C++ compiler or make: the compiled export is not tested; install g++ and make"
    ]
    assert snapshot(workspace) == before


def test_a_compiler_that_fails(workspace, monkeypatch, capsys):
    before = snapshot(workspace)
    monkeypatch.setenv("CXX", "false")
    assert main([*WORDS, "-test"]) == 1
    (found,) = messages(capsys.readouterr().err, "error")
    assert found.startswith("error N2D2-E810: the compiled export failed: make")
    assert snapshot(workspace) == before


def test_a_compiler_that_is_not_there(workspace, monkeypatch, capsys):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main([*WORDS, "-test"]) == 0
    assert "warning N2D2-W801" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["net.ini", "-describe"], ["-h"]])
def test_a_closed_stdout_is_no_traceback(workspace, words):
    """As in `n2d2py ... | head -0`."""
    process = subprocess.Popen([*BINARY, *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    text = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert "Traceback" not in text and "Exception ignored" not in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_stdout_is_one_line(workspace):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*BINARY, "net.ini", "-describe"], env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 1
    (found,) = messages(done.stderr, "error")
    assert found.startswith("error N2D2-E012: No space left on device; ")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_a_network_that_is_a_pipe_does_not_hang(workspace, capsys):
    os.mkfifo(workspace / "pipe.ini")
    os.mkfifo(workspace / "pipe.onnx")
    start = time.monotonic()
    assert main(["pipe.ini", "-describe"]) == 1
    assert main(["pipe.onnx", "-describe"]) == 1
    assert time.monotonic() - start < 10
    found = list(map(headline, messages(capsys.readouterr().err, "error")))
    assert found == ["error N2D2-E101: pipe.ini", "error N2D2-E301: pipe.onnx"]
