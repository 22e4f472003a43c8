"""The seam between the pipeline and what runs an export: chosen by the target, asked only when needed."""

from support import e2e_run

from n2d2py.exports import Target, find_target
from n2d2py.exports.cpp.target import CompiledExport


def test_a_target_brings_its_runner():
    assert find_target("CPP").runner is CompiledExport
    assert Target.runner is None


def test_nothing_is_built_without_exported_stimuli(tmp_path, monkeypatch):
    def build(*_):
        raise AssertionError("built for nothing")

    monkeypatch.setattr(CompiledExport, "__enter__", build)
    folder = e2e_run.export("LeNet", tmp_path, "-nbbits", "8", "-calib", "8", "-test", "-nb-test", "8", "-db-export", "0")
    assert (folder / "Makefile").is_file()
