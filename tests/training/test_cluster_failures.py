"""A cluster that loses its scheduler, or whose worker has no n2d2py: E814, and no endless wait."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.errors import refused

from n2d2py.errors import N2D2Error
from n2d2py.executor import Executor

pytest.importorskip("distributed")


@contextmanager
def process(command: str, *words: str, hidden: bool = False) -> Iterator[subprocess.Popen]:
    """dask-scheduler or dask-worker; `hidden`: n2d2py cannot be imported there."""
    hide = "sys.modules['n2d2py'] = None" if hidden else ""
    code = f"import sys\n{hide}\nfrom distributed.cli.dask_{command} import main\nsys.argv = {['dask', *words]!r}\nmain()"
    running = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def cluster(hidden: bool) -> Iterator[tuple[str, subprocess.Popen]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    words = ["--host", "127.0.0.1", "--port", address.rpartition(":")[2], "--no-dashboard"]
    with process("scheduler", *words) as scheduler:
        with process("worker", address, "--no-nanny", "--no-dashboard", "--nthreads", "1", hidden=hidden):
            yield address, scheduler


def test_a_worker_without_the_package():
    with cluster(hidden=True) as (address, _), pytest.raises(N2D2Error, match="E814.*worker.*n2d2py"):
        list(Executor(cluster=address).run(abs, [-1, 2]))


def test_a_scheduler_that_is_lost():
    with cluster(hidden=False) as (address, scheduler):
        found = Executor(cluster=address).run(time.sleep, [0, 60])
        assert next(found) == (0, None)
        threading.Timer(0.5, scheduler.kill).start()
        assert refused(f"E814.*{address}", list, found)
