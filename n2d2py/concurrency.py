"""Ordered work on the machine's cores, with bounded look-ahead."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def ordered_map(function: Callable[[T], R], items: Iterable[T], workers: int | None = None) -> Iterator[R]:
    """function(item) for each item, in order, computed by threads; at most `workers` + 1 results wait.

    An exception in `function`, or the consumer's stopping early, cancels what has not started. A sequence of one item needs no thread.
    """
    if isinstance(items, Sequence) and len(items) < 2:
        yield from map(function, items)
        return
    count = workers or cores()
    with ThreadPoolExecutor(count) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def together(first: Callable[[], T], second: Callable[[], R], threads: bool = True) -> tuple[T, R]:
    """The results of both, with `threads` the second one computed by another thread meanwhile."""
    if not threads:
        return first(), second()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(second)
        return first(), other.result()
