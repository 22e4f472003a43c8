"""An empty working directory for each test."""

from pathlib import Path

import pytest

pytest.register_assert_rewrite("support.model_run")


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, without the user's folders of models and data."""
    monkeypatch.chdir(tmp_path)
    for name in ("N2D2_MODELS", "N2D2_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
