"""The seam between the pipeline and what runs an export: chosen by the export's name, asked only when needed."""

import pytest
from support import e2e_run

from n2d2py.errors import InternalError
from n2d2py.runtime import Runner, register_runner, runner
from n2d2py.runtime.compiled import CompiledExport


def test_the_runner_of_an_export_is_found_by_its_name():
    assert runner("CPP") is CompiledExport
    assert runner("NOTHING") is None


def test_two_runners_of_an_export_are_refused():
    with pytest.raises(InternalError, match="CPP has two runners"):

        @register_runner
        class Second(Runner):
            export = "CPP"


def test_nothing_is_built_without_exported_stimuli(tmp_path, monkeypatch):
    def build(*_):
        raise AssertionError("built for nothing")

    monkeypatch.setattr(CompiledExport, "__enter__", build)
    folder = e2e_run.export("LeNet", tmp_path, "-nbbits", "8", "-calib", "8", "-test", "-nb-test", "8", "-db-export", "0")
    assert (folder / "Makefile").is_file()
