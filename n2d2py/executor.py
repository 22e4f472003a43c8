"""One way to run shards of work: in this process, in several, or on a cluster.

Shards are numbered before anything runs, and results are given back under these numbers, so that what is made of them is the
same however many workers there are and in whatever order they finish. A shard whose worker dies is done again.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pkgutil import resolve_name
from typing import Any, TypeVar

from n2d2py.errors import N2D2Error
from n2d2py.version import __version__

S = TypeVar("S")
R = TypeVar("R")

ATTEMPTS = 3
"""Attempts at a shard whose worker dies each time."""
_CONNECT_SECONDS = 20


@dataclass(frozen=True)
class Executor:
    """Where shards run: in `workers` processes of this machine, where 1 is this process, or in those of the Dask cluster whose
    scheduler has the address `cluster`. Its workers have n2d2py, and see the same files under the same paths."""

    workers: int = 1
    cluster: str = ""

    def run(self, function: Callable[[S], R], shards: Sequence[S]) -> Iterator[tuple[int, R]]:
        """Yield (number of the shard, function(shard)) as the shards finish. Other processes import `function`, so it is one of
        a module. An exception of `function` ends all. Raise E813 for a shard whose workers died, E814 for a cluster that does
        not start."""
        if self.cluster:
            return _on_cluster(self.cluster, function, shards)
        if self.workers > 1 and len(shards) > 1:
            return _in_processes(min(self.workers, len(shards)), function, shards)
        return ((number, function(shard)) for number, shard in enumerate(shards))


def add_options(parser: argparse.ArgumentParser, workers: int = 1) -> None:
    """-workers N, by default `workers`, and -cluster ADDRESS of a command; `of_options` reads them."""
    places = parser.add_mutually_exclusive_group()
    places.add_argument("-workers", type=int, default=workers, metavar="N", help=f"number of worker processes [{workers}]")
    about = "scheduler of a Dask cluster, such as tcp://host:8786, instead of -workers"
    places.add_argument("-cluster", default="", metavar="ADDRESS", help=about)


def of_options(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Executor:
    """Return the executor that the options of `add_options` ask for; end the command if they are wrong."""
    if arguments.workers < 1:
        parser.error(f"-workers {arguments.workers}: give 1 or more")
    return Executor(arguments.workers, arguments.cluster)


def _in_processes(count: int, function: Callable[[S], R], shards: Sequence[S]) -> Iterator[tuple[int, R]]:
    """Run the shards in a pool of processes. A dead process breaks its pool: running shards start again in a new one, those
    that died before alone."""
    waiting, begun = list(range(len(shards))), [0] * len(shards)
    while waiting:
        alone = [number for number in waiting if begun[number] > 1]
        todo = alone[:1] or waiting
        with ProcessPoolExecutor(min(count, len(todo)), mp_context=get_context("spawn")) as pool:
            running: dict[Future[R], int] = {}
            queue = iter(todo)
            try:
                while True:
                    while len(running) < count and (number := next(queue, None)) is not None:
                        begun[number] += 1
                        running[pool.submit(function, shards[number])] = number
                    if not running:
                        break
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        number = running[future]
                        result = future.result()
                        del running[future]
                        waiting.remove(number)
                        yield number, result
            except BrokenProcessPool:
                dead = [number for number in running.values() if begun[number] >= ATTEMPTS]
                if dead:
                    raise _died(dead[0], shards[dead[0]]) from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _on_cluster(address: str, function: Callable[[S], R], shards: Sequence[S]) -> Iterator[tuple[int, R]]:
    """Dask sends what a dead worker had to others, as often as its setting distributed.scheduler.allowed-failures says."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError as error:
        raise N2D2Error("E814", "-cluster requires Dask", remedy="pip install 'n2d2py[cluster]'") from error
    try:
        client: Any = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        what = f"no scheduler answers at {address}: {reason}"
        raise N2D2Error("E814", what, remedy="start one with 'dask scheduler', or correct the address") from error
    number = 0
    with client:
        try:
            _check_workers(client, address)
            futures = {client.submit(_outcome, function, shard, pure=False): number for number, shard in enumerate(shards)}
            for future in as_completed(list(futures), loop=client.loop):
                number = futures.pop(future)
                result, error = future.result()
                if error is not None:
                    break
                future.release()
                yield number, result
            else:
                return
        except N2D2Error:
            raise
        except KilledWorker as killed:
            raise _died(number, shards[number]) from killed
        # Dask raises many kinds when it loses its scheduler, or when a worker cannot load the function
        except Exception as failure:
            reason = next((line for line in str(failure).splitlines() if line.strip()), type(failure).__name__)
            remedy = "check that its scheduler runs, and that its scheduler and workers have this version of n2d2py installed"
            raise N2D2Error("E814", f"the cluster at {address} failed: {reason}", remedy=remedy) from failure
    raise error


def _check_workers(client: Any, address: str) -> None:
    """Raise E814 if a worker cannot import this version: what it cannot unpickle stops it, and the scheduler waits for ever."""
    client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    for worker, version in client.run(resolve_name, "n2d2py.version:__version__", on_error="return").items():
        if version != __version__:
            reason = f"has {version}" if isinstance(version, str) else f"cannot import n2d2py ({version})"
            what = f"the worker {worker} of {address} {reason}, but version {__version__} is needed"
            raise N2D2Error("E814", what, remedy="install the same version of n2d2py on all workers")


def _outcome(function: Callable[[S], R], shard: S) -> tuple[R | None, Exception | None]:
    """Return (result, None), or (None, what the function raised): what else a worker raises is an error of the cluster."""
    try:
        return function(shard), None
    except Exception as error:
        return None, error


def _died(number: int, shard: object) -> N2D2Error:
    what = f"the worker died in each attempt at part {number + 1} ({str(shard)[:80]})"
    return N2D2Error("E813", what, remedy="use fewer workers, or a machine with more memory")
