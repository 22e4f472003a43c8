"""Builds of the shared library of an export with make, if sources are newer."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from n2d2py import log
from n2d2py.concurrency import cores
from n2d2py.errors import N2D2Error
from n2d2py.exports.stimuli import from_hwc, hwc_field
from n2d2py.graph import QuantGraph
from n2d2py.runtime.runner import AT_MOST, Runner

_LOG = "build/make.log"
_ERROR = re.compile(r"\berror\b", re.IGNORECASE)
"""A line that explains a failure; make prints commands with -Werror."""
_SOURCES = ("Makefile", "manifest.json", "include", "dnn", "kernels")


def build_library(folder: Path, library: Path) -> None:
    """Run ``make lib`` in the export `folder` unless `library` is newer than all sources. Processes build one at a time. Raise
    E801 without make or a compiler, E802 if the build fails, with the place of its log, E807 if the folder cannot be
    written."""
    if not _stale(folder, library):
        return
    need_make()
    with _build_lock(folder):
        if not _stale(folder, library):
            return
        log.notice("building %s", library)
        status, printed = run_make(folder, "lib")
        (folder / _LOG).write_text(printed, encoding="utf-8")
        if status:
            raise build_error(printed, remedy=f"the whole log is in {folder / _LOG}")
        os.utime(library)  # make leaves it unchanged where only comments of the manifest changed


def _stale(folder: Path, library: Path) -> bool:
    try:
        built_time = library.stat().st_mtime_ns
    except OSError:
        return True
    files = (path for name in _SOURCES for path in (folder / name, *(folder / name).rglob("*")))
    return any(path.is_file() and path.stat().st_mtime_ns > built_time for path in files)


def need_make() -> None:
    """Raise E801 if make is not installed."""
    if shutil.which("make") is None:
        what = "make is not installed, so the export cannot be built"
        raise N2D2Error("E801", what, remedy="install make and g++ (apt install make g++)")


def start(words: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start make or a program of an export in `folder`, with both output streams as lines of `stdout`.

    Flags of a make that runs this process are not inherited; messages are in English.
    """
    foreign = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**{name: value for name, value in os.environ.items() if name not in foreign}, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def run_make(folder: Path, *words: str) -> tuple[int, str]:
    """Run make with `words` in a folder on all cores; return its exit status and output."""
    with start(["make", f"-j{cores()}", *words], folder) as process:
        printed = process.communicate()[0]
    return process.returncode, printed


def build_error(output: str, *, remedy: str) -> N2D2Error:
    """Return the error of a failed make: E801 if a program could not be started, else E802 with the first error."""
    lines = [line.strip() for line in output.splitlines()]
    missing = [one for one in lines if "not found" in one or (one.startswith("make") and "No such file or directory" in one)]
    if missing and any(line.endswith("Error 127") for line in lines):
        what = f"the compiler does not run, so the export cannot be built: {missing[0]}"
        return N2D2Error("E801", what, remedy="install g++ (apt install g++), or set the variable CXX to a compiler")
    first = next(filter(_ERROR.search, lines), "make failed")
    return N2D2Error("E802", f"the export does not compile: {first}", remedy=remedy)


class BuiltCopy(Runner):
    """A copy of a written export in which `build` builds a program; removed at the end.

    Attributes:
        folder: the copy, inside the context.
        needed: required tools, as in "g++ (or set CXX)".
    """

    label = "compiled"
    needed: ClassVar[str] = ""

    def __init__(self, folder: Path, details: Mapping[str, Any]):
        self._source, self.details = folder, details

    def build(self) -> None:
        """Build the program in `folder`. Raise E810 if that fails."""
        raise NotImplementedError

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory(prefix="n2d2py-")
        self.folder = Path(self._temporary.name) / "export"
        shutil.copytree(self._source, self.folder)
        try:
            self.build()
        except BaseException:
            self._temporary.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()

    @staticmethod
    def read_results(file: Path, row: np.dtype, count: int) -> np.ndarray:
        """Return the rows of a file of results. Raise E811 for another number than `count`."""
        rows = np.fromfile(file, row)
        if len(rows) != count:
            what = f"the compiled export wrote {len(rows)} results for {count} stimuli"
            raise N2D2Error("E811", what, remedy="report this defect of n2d2py")
        return rows

    def read_outputs(self, file: Path, graph: QuantGraph, count: int) -> dict[str, np.ndarray]:
        """Return the outputs (count, C, ...) by tensor of a file of results. Raise E811 as `read_results`."""
        row = np.dtype([(name, *hwc_field(graph.shape(name), graph.type(name).dtype)) for name in graph.user_outputs])
        rows = self.read_results(file, row, count)
        return {name: from_hwc(rows[name], graph.shape(name)) for name in graph.user_outputs}

    @staticmethod
    def read_sizes(printed: str) -> dict[str, int]:
        """Return the bytes by name that `make size` printed."""
        rows = re.findall(r"^(.{24}) +(\d+)(.*)$", printed, re.MULTILINE)
        return {name.strip() + (AT_MOST if note.endswith(AT_MOST) else ""): int(size) for name, size, note in rows}

    def failed(self, what: str, printed: Sequence[str], otherwise: str) -> N2D2Error:
        """Return E810 with the first printed line that explains the failure, else the last one, else `otherwise`."""
        lines = list(filter(_ERROR.search, printed))
        reason = (lines or [*printed[-1:], otherwise])[0]
        remedy = f"install a working {self.needed}, or remove -test and -compare"
        return N2D2Error("E810", f"the compiled export failed: {what}: {reason}", remedy=remedy)


@contextmanager
def _build_lock(folder: Path) -> Iterator[None]:
    import fcntl

    try:
        (folder / "build").mkdir(exist_ok=True)
        lock = (folder / "build" / "lock").open("w")
    except OSError as reason:
        what = f"{folder} is not writable: {reason.strerror}"
        raise N2D2Error("E807", what, remedy="copy the export to a writable folder") from reason
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
