"""Ordered work on the machine's cores, with bounded look-ahead."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Return the number of processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads of this process, as many as it has cores. A fork has none of them."""
    return ThreadPoolExecutor(cores(), "n2d2py")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)


def _run_or_wait(future: Future[R], function: Callable[..., R], *arguments: object) -> R:
    """Return the result of a function submitted to the threads; call it here if no thread has begun. A thread thus never waits
    for work that waits for it."""
    return function(*arguments) if future.cancel() else future.result()


def _stop(futures: Iterable[Future[R]]) -> None:
    """Cancel what has not begun, and wait for the rest: nothing continues after the caller's back."""
    wait([future for future in futures if not future.cancel()])


def ordered_map(function: Callable[[T], R], items: Iterable[T], threads: bool = True) -> Generator[R, None, None]:
    """function(item) for each item, in order, computed by threads; at most one result more than there are cores waits. An
    exception in `function`, or the consumer's stopping early, cancels what has not started, and waits for the rest. A sequence
    of one item needs no thread; neither does work that would take too much memory at once (`threads` False)."""
    if not threads or (isinstance(items, Sequence) and len(items) < 2):
        yield from map(function, items)
        return
    count = cores()
    waiting: deque[tuple[Future[R], T]] = deque()
    try:
        for item in items:
            waiting.append((_threads().submit(function, item), item))
            if len(waiting) > count:
                future, first = waiting.popleft()
                yield _run_or_wait(future, function, first)
        while waiting:
            future, first = waiting.popleft()
            yield _run_or_wait(future, function, first)
    finally:
        _stop(future for future, _ in waiting)


def run_both(first: Callable[[], T], second: Callable[[], R], threads: bool = True) -> tuple[T, R]:
    """Return the results of both; with `threads` another thread computes the second one meanwhile."""
    if not threads:
        return first(), second()
    other = _threads().submit(second)
    try:
        result = first()
    except BaseException:
        _stop([other])
        raise
    return result, _run_or_wait(other, second)
