"""Threads and shards of work: order, errors, forks, and the same results however many workers there are."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from support.errors import error_of

from n2d2py.concurrency import cores, ordered_map, run_both
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.executor import ATTEMPTS, Executor


def results(executor: Executor, function, shards) -> list:
    """The result of each shard, in their order."""
    return [result for _, result in sorted(executor.run(function, shards))]


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
    assert results(Executor(workers), square, range(9)) == [n * n for n in range(9)]
    assert results(Executor(workers), square, []) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_ends_all(workers):
    with pytest.raises(ValueError, match="three"):
        results(Executor(workers), fails, list(range(6)))


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_with_codes_come_back_whole(workers):
    found = error_of(lambda: results(Executor(workers), refuses, [7, 7]))
    assert [error.line() for error in found.errors] == [
        "N2D2-E204: net.ini:7 [conv]: an odd number; take another",
        "N2D2-E401: no file",
    ]


def test_a_shard_whose_worker_is_killed_is_done_again(tmp_path):
    jobs = [(number, str(tmp_path)) for number in range(8)]
    assert results(Executor(2), dies_once, jobs) == [n * n for n in range(8)]
    assert (tmp_path / "died").exists()


def test_a_shard_that_kills_each_worker_is_named():
    error = error_of(lambda: results(Executor(2), always_dies, [0, 1, 2, 3]))
    assert error.code == "E813" and "part 2" in error.what and ATTEMPTS == 3


def test_a_scheduler_that_is_not_there_is_named(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("n2d2py.executor._CONNECT_SECONDS", 2)
    error = error_of(lambda: results(Executor(cluster="tcp://127.0.0.1:9"), square, [1, 2]))
    assert error.code == "E814" and "127.0.0.1:9" in error.what


def test_a_cluster_of_two_processes_with_one_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        jobs = [(number, str(tmp_path)) for number in range(12)]
        found = results(Executor(cluster=cluster.scheduler_address), dies_once, jobs)
    assert found == [n * n for n in range(12)] and (tmp_path / "died").exists()


def test_results_are_in_order_and_few_wait():
    taken = []
    found = ordered_map(lambda x: x * x, (taken.append(i) or i for i in range(50)))
    assert next(found) == 0
    assert len(taken) <= cores() + 1
    assert [*found] == [i * i for i in range(1, 50)]


def test_an_error_reaches_the_caller_in_its_turn():
    found = ordered_map(lambda x: 1 // x, [2, 1, 0, 1])
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_what_has_begun_has_ended_when_an_error_is_seen():
    begun, ended = threading.Event(), []

    def work(x: int) -> int:
        if x == 0:
            begun.wait(10)
            raise ValueError
        begun.set()
        time.sleep(0.2)
        ended.append(x)
        return x

    with pytest.raises(ValueError):
        list(ordered_map(work, [0, 1]))
    assert ended == [1] or cores() == 1


def test_work_inside_work_comes_to_an_end():
    def inner(x: int) -> int:
        return sum(ordered_map(lambda y: x + y, range(20)))

    def both(x: int) -> int:
        return sum(run_both(lambda: inner(x), lambda: inner(x + 1)))

    wanted = [sum(x + y for y in range(20)) + sum(x + 1 + y for y in range(20)) for x in range(20)]
    results: list[int] = []
    worker = threading.Thread(target=lambda: results.extend(ordered_map(both, range(20))), daemon=True)
    worker.start()
    worker.join(60)
    assert results == wanted


def test_the_second_ends_before_the_error_of_the_first_is_seen():
    begun, done = threading.Event(), []

    def first() -> None:
        begun.wait(10)
        raise ValueError

    def second() -> None:
        begun.set()
        done.append(1)

    with pytest.raises(ValueError):
        run_both(first, second)
    assert done == [1]


def test_an_error_of_the_second_is_raised():
    with pytest.raises(ZeroDivisionError):
        run_both(lambda: 1, lambda: 1 // 0)


def test_without_threads_one_follows_the_other():
    order: list[int] = []
    run_both(lambda: order.append(1), lambda: order.append(2), threads=False)
    assert order == [1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_has_threads_of_its_own():
    assert [*ordered_map(abs, [-1, -2, -3])] == [1, 2, 3]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, bytes(ordered_map(abs, [-4, -5, -6])))
        os._exit(0)
    os.close(writer)
    try:
        assert os.read(reader, 3) == bytes([4, 5, 6])
    finally:
        os.close(reader)
        os.waitpid(child, 0)
