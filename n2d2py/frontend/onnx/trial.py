"""Trial runs in a resource-limited subprocess, for calls of the onnx package that may hang or crash on a crafted file."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile

import onnx

from n2d2py.errors import Location, N2D2Error

_SECONDS = 10
_BYTES = 4 << 30


def check_terminates(call: Callable[[], object], what: str, where: Location) -> None:
    """Run `call` in a forked process, which discards results and exceptions; skipped on platforms without fork.

    Raises:
        N2D2Error: E317 the call exceeds 10 seconds or 4 GiB, or ends the process.
    """
    if hasattr(os, "fork"):
        _run_forked(call, what, where)


def run_limited(call: Callable[[], onnx.ModelProto], what: str, where: Location) -> onnx.ModelProto:
    """Return the model that `call` returns in a forked process; without fork or after an exception, call it here.

    Raises:
        N2D2Error: as `check_terminates`.
    """
    if not hasattr(os, "fork"):
        return call()
    with TemporaryFile() as results:

        def written() -> None:
            data = call().SerializeToString()
            try:
                results.write(data)
                results.flush()
            except OSError:
                results.truncate(0)

        _run_forked(written, what, where)
        results.seek(0)
        data = results.read()
    return onnx.ModelProto.FromString(data) if data else call()


def _run_forked(call: Callable[[], object], what: str, where: Location) -> None:
    """Run `call` in a forked process; raise E317 if it does not finish within the limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads: the copy has none, and needs none
        child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _set_limits()
            call()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        text = f"shape inference of {what} exceeds {_SECONDS} seconds or {_BYTES >> 30} GiB"
        raise N2D2Error("E317", text, where=where, remedy="export the model again; the file may be malicious")


def _set_limits() -> None:
    import resource

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError), open("/proc/self/statm", "rb") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
