"""Shards of work: the same results however many workers there are, and after one was killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.executor import ATTEMPTS, Executor


def square(number: int) -> int:
    return number * number


def fails(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def refuses(number: int) -> int:
    where = Location("net.ini", number, "conv")
    raise ErrorList([N2D2Error("E204", "an odd number", where=where, remedy="take another"), N2D2Error("E401", "no file")])


def dies_once(job: tuple[int, str]) -> int:
    """Kills its process when it does number 2 for the first time."""
    number, folder = job
    mark = Path(folder) / "died"
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return number * number


def always_dies(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_in_the_order_of_the_shards(workers):
    assert Executor(workers).map(square, range(9)) == [n * n for n in range(9)]
    assert Executor(workers).map(square, []) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_ends_all(workers):
    with pytest.raises(ValueError, match="three"):
        Executor(workers).map(fails, list(range(6)))


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_with_codes_come_back_whole(workers):
    with pytest.raises(ErrorList) as caught:
        Executor(workers).map(refuses, [7, 7])
    assert [error.line() for error in caught.value.errors] == [
        "N2D2-E204: net.ini:7 [conv]: an odd number; take another",
        "N2D2-E401: no file",
    ]


def test_a_shard_whose_worker_is_killed_is_done_again(tmp_path):
    jobs = [(number, str(tmp_path)) for number in range(8)]
    assert Executor(2).map(dies_once, jobs) == [n * n for n in range(8)]
    assert (tmp_path / "died").exists()


def test_a_shard_that_kills_each_worker_is_named():
    with pytest.raises(N2D2Error) as caught:
        Executor(2).map(always_dies, [0, 1, 2, 3])
    assert caught.value.code == "E813" and "part 2" in caught.value.what and ATTEMPTS == 3


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("n2d2py.executor._CONNECT_SECONDS", 2)
    with pytest.raises(N2D2Error) as caught:
        Executor(cluster="tcp://127.0.0.1:9").map(square, [1, 2])
    assert caught.value.code == "E814" and "127.0.0.1:9" in caught.value.what


def test_a_cluster_of_two_processes_with_one_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        jobs = [(number, str(tmp_path)) for number in range(12)]
        found = Executor(cluster=cluster.scheduler_address).map(dies_once, jobs)
    assert found == [n * n for n in range(12)] and (tmp_path / "died").exists()
