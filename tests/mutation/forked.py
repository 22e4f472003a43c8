"""Work in a forked process, with limits of time and memory and a temporary folder of its own."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Done", "forked"]

_MEMORY = 12 << 30
"""Bytes of address space; a mutant that asks for more fails."""


@dataclass(frozen=True)
class Done:
    """What the work returned, None where it ended otherwise; whether time was up; what it printed."""

    value: Any
    late: bool
    text: str


def forked(work: Callable[[Path], Any], seconds: float) -> Done:
    """work(temporary folder) in a child. `seconds` of processor time end it; so does ten times as much on the clock."""
    folder = Path(tempfile.mkdtemp(prefix="n2d2py-mutation-"))
    result, text = folder / "result", folder / "text"
    try:
        child = os.fork()
        if child == 0:
            _child(work, folder, result, text, seconds)
        late = not _wait(child, 10 * seconds)
        value = pickle.loads(result.read_bytes()) if result.exists() else None
        shown = text.read_text(encoding="utf-8", errors="replace") if text.exists() else ""
        return Done(value, late, shown)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _child(work: Callable[[Path], Any], folder: Path, result: Path, text: Path, seconds: float) -> None:
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        with text.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        value = pickle.dumps(work(folder / "tests"))
        result.with_suffix(".part").write_bytes(value)
        result.with_suffix(".part").rename(result)
        sys.stdout.flush()
    finally:
        os._exit(0)


def _wait(child: int, seconds: float) -> bool:
    """Whether the child ended by itself in time; its process group is gone afterwards."""
    deadline, pause, status = time.monotonic() + seconds, 0.005, 0
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid or time.monotonic() > deadline:
            break
        time.sleep(pause)
        pause = min(0.1, 1.5 * pause)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not pid:
        os.waitpid(child, 0)
        return False
    return not (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL))
