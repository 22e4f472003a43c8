"""Programs that tests run: a test is skipped where one of them is not installed."""

import shutil
import subprocess
from typing import Any

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


def run_command(*words: object, **options: Any) -> str:
    """Return what a command prints; AssertionError with all of its output if it fails. Without its program the test is skipped."""
    if "/" not in str(words[0]):
        need(str(words[0]))
    done = subprocess.run([str(word) for word in words], text=True, errors="replace", capture_output=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{(done.stdout + done.stderr)[-6000:]}"
    return done.stdout
