"""One run of the tool in a child process with limits, and what is thought of its end."""

import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["End", "run_limited"]

MEMORY = 4 << 30
"""Bytes of address space."""
SECONDS = 20
"""Of processor time; three times as many of the clock."""

_CODE = re.compile(r"^error N2D2-(E\d+): ", re.MULTILINE)
_DEFECTS = ("E013", "E099", "E604", "E717", "E811", "E812")
"""Codes that no input may have: exhausted memory, and what the tool says of its own defects."""


@dataclass(frozen=True)
class End:
    """How a run ended: exit status (negative: the signal), text of both streams, and the verdict; "" when all is well."""

    status: int
    text: str
    wrong: str

    @property
    def kind(self) -> str:
        """The verdict, "done", or the code of the first error."""
        if self.wrong:
            return self.wrong
        found = _CODE.search(self.text)
        return "done" if self.status == 0 else found.group(1) if found else "refused"


def run_limited(work: Callable[[], int], folder: Path, stream: Path) -> End:
    """Forks, runs `work` in `folder` with both streams in the file `stream`, and judges the end."""
    before = _files(folder)
    child = os.fork()
    if child == 0:
        _child(work, folder, stream)
    status, late = _wait(child)
    text = stream.read_text(encoding="utf-8", errors="replace")
    return End(status, text, _verdict(status, late, text, sorted(_files(folder) - before)))


def _child(work: Callable[[], int], folder: Path, stream: Path) -> None:
    status = 99
    try:
        output = os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for number in (1, 2):
            os.dup2(output, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        status = work()
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int) -> tuple[int, bool]:
    """(exit status, whether it had to be killed): by the limit of its CPU time, or where it waits for so long without using any."""
    used, pause = 0, 0.001
    end = time.monotonic() + 3 * SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return code, code == -signal.SIGXCPU
        before, used = used, int(Path(f"/proc/{child}/schedstat").read_text().split()[0])
        if used > before:
            end = time.monotonic() + 3 * SECONDS
        time.sleep(pause)
        pause = min(0.02, pause * 1.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL, True


def _verdict(status: int, late: bool, text: str, written: list[str]) -> str:
    if late:
        return "hang"
    codes = _CODE.findall(text)
    for code in codes:
        if code in _DEFECTS:
            return code
    if "Traceback (most recent call last)" in text:
        return "traceback"
    if status not in (0, 1):
        return f"status {status}"
    if status == 1 and not codes:
        return "no message"
    if status == 0 and codes:
        return "message of success"
    if status == 1 and written:
        return "written on failure: " + " ".join(written[:3])
    return ""


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
