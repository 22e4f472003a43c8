"""A workspace with a network that works and an export of it; runs the command line inside it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from support.error_cases import EXPORT
from support.error_files import write_workspace

from n2d2py.cli import main
from n2d2py.plugin.load import isolated


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A workspace whose network has been exported once."""
    folder = tmp_path_factory.mktemp("finished")
    write_workspace(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["net.ini", *EXPORT.split(), "-quiet"]) == 0
    assert (folder / "export_CPP_int8" / "manifest.json").is_file()
    return folder


@contextmanager
def work_in(finished: Path, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the finished workspace below a folder, as the working directory."""
    work = folder / "work"
    shutil.copytree(finished, work)
    patch.chdir(work)
    for variable in ("N2D2_DATA", "N2D2_MODELS", "N2D2PY_DATA", "CXX"):
        patch.delenv(variable, raising=False)
    with isolated():
        yield work


@pytest.fixture
def workspace(finished, tmp_path, monkeypatch):
    """A copy of it, which is the working directory."""
    with work_in(finished, tmp_path, monkeypatch) as folder:
        yield folder


@pytest.fixture
def work(finished):
    """`work_in` with the finished workspace."""
    return partial(work_in, finished)
