"""Writing an export whole or not at all."""

import errno
import hashlib
import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.errors import error_line, refused

from n2d2py.errors import N2D2Error
from n2d2py.exports import ExportFolder, Manifest, read_manifest

MANIFEST = Manifest("CPP", "net", {"nbbits": 8}, {"OpenMP": True}, {"net.onnx": "00ff"}, {"namespace": "net"})


def write(path: Path, text: str = "1", manifest: Manifest = MANIFEST, force: bool = False) -> None:
    with ExportFolder(path, manifest, force) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "a.txt").write_text(text)


def everything(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_manifest_names_what_the_export_was_made_from(tmp_path):
    write(tmp_path / "a" / "out")
    data = json.loads((tmp_path / "a" / "out" / "manifest.json").read_text())
    assert data["tool"] == "n2d2py" and data["export"] == "CPP" and data["network"] == "net"
    assert data["options"] == {"nbbits": 8} and data["inputs"] == {"net.onnx": "00ff"}
    assert data["details"] == {"namespace": "net"} and data["parameters"] == {"OpenMP": True}
    assert data["files"] == {"sub/a.txt": hashlib.sha256(b"1").hexdigest()}
    assert str(tmp_path) not in (tmp_path / "a" / "out" / "manifest.json").read_text()
    assert read_manifest(tmp_path / "a" / "out") == data


def test_an_export_replaces_the_previous_one(tmp_path):
    write(tmp_path / "out")
    (tmp_path / "out" / "built.o").write_text("old")
    write(tmp_path / "out", "2")
    assert set(everything(tmp_path)) == {"out/sub/a.txt", "out/manifest.json"}
    assert (tmp_path / "out" / "sub" / "a.txt").read_text() == "2"


def test_an_empty_folder_is_taken_and_a_link_is_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "sub" / "a.txt").read_text() == "1"


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), N2D2Error("E701", "x")])
def test_an_exception_leaves_the_previous_export(tmp_path, error):
    write(tmp_path / "out")
    before = everything(tmp_path)
    with pytest.raises(type(error)), ExportFolder(tmp_path / "out", MANIFEST) as folder:
        (folder / "half").write_text("x")
        raise error
    assert everything(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_exception_leaves_nothing_where_nothing_was(tmp_path):
    with pytest.raises(ZeroDivisionError), ExportFolder(tmp_path / "out", MANIFEST):
        1 / 0
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_write_that_finds_no_space_is_that_error(tmp_path):
    with pytest.raises(N2D2Error, match="E713"), ExportFolder(tmp_path / "out", MANIFEST), open("/dev/full", "w") as file:
        file.write("x" * 10)
    assert not list(tmp_path.iterdir())


def test_a_swap_that_fails_puts_the_previous_export_back(tmp_path, monkeypatch):
    write(tmp_path / "out")
    before = everything(tmp_path)
    rename = os.rename

    def failing(source, target):
        if "partial" in str(source):
            raise OSError(errno.EIO, "broken", str(source))
        rename(source, target)

    monkeypatch.setattr("n2d2py.exports.writer.os.rename", failing)
    assert refused("E712: .*cannot be written: broken", write, tmp_path / "out", "2")
    assert everything(tmp_path) == before


def test_a_place_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    assert refused("E712: .*file/out ", write, tmp_path / "file" / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_protected_place_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert "E712" in error_line(write, tmp_path / "out")
    finally:
        tmp_path.chmod(0o700)


def test_an_error_of_reading_something_else_passes(tmp_path):
    with pytest.raises(FileNotFoundError), ExportFolder(tmp_path / "out", MANIFEST):
        (tmp_path / "elsewhere" / "image.png").read_bytes()


@pytest.mark.parametrize("content", [None, "{}", "[1]", '{"tool": "other"}', "{"])
def test_files_of_others_are_not_replaced(tmp_path, content):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")
    if content is not None:
        (tmp_path / "out" / "manifest.json").write_text(content)
    assert "E711" in error_line(write, tmp_path / "out")
    assert (tmp_path / "out" / "thesis.tex").read_text() == "x"


@pytest.mark.parametrize("force", [False, True])
def test_a_file_is_not_replaced(tmp_path, force):
    (tmp_path / "out").write_text("x")
    assert refused("E711: .*out is a file", write, tmp_path / "out", force=force)


OTHER = replace(MANIFEST, network="other")


def edited(out: Path) -> str:
    (out / "sub" / "a.txt").write_text("mine")
    return ": sub/a.txt"


def added(out: Path) -> str:
    for name in ("notes.txt", "sub/b.cpp", "sub/build", "lib.cpp"):
        (out / name).write_text("mine")
    return "out: 4 files were edited or added since"


def linked(out: Path) -> str:
    (out / "sub" / "a.txt").rename(out.parent / "mine")
    (out / "sub" / "a.txt").symlink_to(out.parent / "mine")
    return "E719"


def pipe(out: Path) -> str:
    (out / "sub" / "a.txt").unlink()
    os.mkfifo(out / "sub" / "a.txt")
    return "E719"


def without_digests(out: Path) -> str:
    data = json.loads((out / "manifest.json").read_text())
    del data["files"]
    (out / "manifest.json").write_text(json.dumps(data))
    return "manifest has no digests"


@pytest.mark.parametrize("change", [edited, added, linked, pipe, without_digests], ids=lambda change: change.__name__)
def test_an_export_with_work_in_it_is_not_replaced(tmp_path, change):
    write(tmp_path / "out")
    said = change(tmp_path / "out")
    before = {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}
    line = error_line(write, tmp_path / "out", "2")
    assert "E719" in line and said in line and "-force" in line
    assert {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")} == before
    write(tmp_path / "out", "2", force=True)
    assert set(everything(tmp_path / "out")) == {"sub/a.txt", "manifest.json"}
    assert (tmp_path / "out" / "sub" / "a.txt").read_text() == "2"


def test_an_export_of_another_network_is_not_replaced(tmp_path):
    write(tmp_path / "out", manifest=OTHER)
    assert refused("E719: .*'other'.*-force", write, tmp_path / "out")
    assert read_manifest(tmp_path / "out")["network"] == "other"
    write(tmp_path / "out", force=True)
    assert read_manifest(tmp_path / "out")["network"] == "net"


def test_what_a_build_leaves_and_what_was_removed_is_no_loss(tmp_path):
    write(tmp_path / "out")
    out = tmp_path / "out"
    (out / "sub" / "a.txt").unlink()
    built = (
        "build/main.o bin/run_export lib/libnet.so outputs/a.txt build-arm/x CMakeCache.txt CMakeFiles/x/y a-null.su sub/a.o"
    )
    for name in built.split():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("x")
    (out / "empty").mkdir()
    write(out, "2")
    assert set(everything(out)) == {"sub/a.txt", "manifest.json"}


def test_an_edited_export_that_a_killed_run_moved_aside_comes_back_and_stays(tmp_path):
    write(tmp_path / "out")
    edited(tmp_path / "out")
    os.rename(tmp_path / "out", tmp_path / f".out.old-{dead_pid()}")
    assert "E719" in error_line(write, tmp_path / "out", "2")
    assert (tmp_path / "out" / "sub" / "a.txt").read_text() == "mine"


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_what_a_killed_run_left_is_removed(tmp_path):
    for kind in ("partial", "old"):
        (tmp_path / f".out.{kind}-{dead_pid()}" / "x").mkdir(parents=True)
    running = tmp_path / f".out.partial-{os.getppid()}"
    running.mkdir()
    (tmp_path / "out").mkdir()
    write(tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out", running.name}


def test_an_export_that_a_killed_run_moved_aside_comes_back(tmp_path):
    write(tmp_path / "out")
    os.rename(tmp_path / "out", tmp_path / f".out.old-{dead_pid()}")
    with pytest.raises(ZeroDivisionError), ExportFolder(tmp_path / "out", MANIFEST):
        1 / 0
    assert set(everything(tmp_path)) == {"out/sub/a.txt", "out/manifest.json"}


@pytest.mark.parametrize("step", [1, 2])
def test_ctrl_c_during_the_swap_leaves_the_export(tmp_path, monkeypatch, step):
    write(tmp_path / "out")
    rename, sources = os.rename, []

    def interrupted(source, target):
        sources.append(source)
        if len(sources) == step:
            signal.raise_signal(signal.SIGINT)
        rename(source, target)

    monkeypatch.setattr("n2d2py.exports.writer.os.rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", "2")
    assert (tmp_path / "out" / "sub" / "a.txt").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
