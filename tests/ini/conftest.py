"""Writes small INI files into an empty working directory, so that messages name them shortly."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.error_cases import headline
from support.errors import error_of

from n2d2py import log
from n2d2py.ini import Document, load_document


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("N2D2_MODELS", "N2D2_DATA"):
        monkeypatch.delenv(name, raising=False)
    log.setup()
    return tmp_path


@pytest.fixture
def load() -> Callable[..., Document]:
    """Loads net.ini with the given text (or bytes), after writing further files given by name."""

    def write_and_load(text: str | bytes, **files: str) -> Document:
        Path("net.ini").write_bytes(text if isinstance(text, bytes) else text.encode())
        for name, content in files.items():
            Path(name.replace("__", ".")).write_text(content)
        return load_document(Path("net.ini"))

    return write_and_load


@pytest.fixture
def refusal(load: Callable[..., Document]) -> Callable[..., list[str]]:
    """The codes and places of the errors that loading a text gives."""

    def lines(text: str | bytes, **files: str) -> list[str]:
        return [headline(one.line()) for one in error_of(load, text, **files).errors]

    return lines


@pytest.fixture
def warned() -> Callable[[], list[str]]:
    """The codes and places of the warnings so far."""
    return lambda: [headline(warning.line()) for warning in log.warnings_seen()]
