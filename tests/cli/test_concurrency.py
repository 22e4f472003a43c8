"""The threads of a process: order, errors, work inside work, and forks."""

from __future__ import annotations

import os
import threading
import time

import pytest

from n2d2py.concurrency import cores, ordered_map, together


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
        return sum(together(lambda: inner(x), lambda: inner(x + 1)))

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
        together(first, second)
    assert done == [1]


def test_an_error_of_the_second_is_raised():
    with pytest.raises(ZeroDivisionError):
        together(lambda: 1, lambda: 1 // 0)


def test_without_threads_one_follows_the_other():
    order: list[int] = []
    together(lambda: order.append(1), lambda: order.append(2), threads=False)
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
