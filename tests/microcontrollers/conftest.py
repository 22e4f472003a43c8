"""One export for all tests of boards."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.board_export import export_for_boards

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def small(tmp_path_factory) -> Path:
    """A network of layers of several kinds: a sum, a concatenation, pools, a depthwise convolution."""
    return export_for_boards(HERE / "small.ini", tmp_path_factory.mktemp("boards"), "-db-export", "5")


@pytest.fixture(autouse=True, scope="module")
def own_optimization():
    """Stack and instructions are promised for -O2 and -Os, which the Makefile sets; tests of other folders set OPT for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OPT", raising=False)
        yield
