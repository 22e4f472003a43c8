"""Programs that tests need: a test is skipped where one of them is not installed."""

from __future__ import annotations

import shutil

import pytest


def need(*programs: str) -> None:
    """Skip the test unless all programs are installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def needs(*programs: str) -> pytest.MarkDecorator:
    """The mark of tests that are skipped unless all programs are installed."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)}: not installed")
