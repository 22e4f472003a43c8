"""Stimuli streamed in batches: read and prepared by threads, in order, never all in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy

import numpy as np

from n2d2py.errors import InternalError

Batch = tuple[np.ndarray, np.ndarray, list[str]]

_CHUNK = 8
_MAX_WORKERS = 8


def default_workers() -> int:
    """Return the number of cores of this process, at most 8: decoding and NumPy run in parallel."""
    available = getattr(os, "sched_getaffinity", None)
    return min(len(available(0)) if available else os.cpu_count() or 1, _MAX_WORKERS)


def even_positions(total: int, count: int) -> np.ndarray:
    """Return at most `count` of `total` positions, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, max(total - 1, 0), min(count, total)).round().astype(np.int64))


class Stimuli:
    """A sequence of stimuli: names, labels, and arrays made on demand.

    Attributes:
        names: names in messages and result files.
        labels: int64, -1 for none.
        shape: shape of one stimulus, (C, H, W) or (F,).
        label_map: returns the pixel-wise label ids (H, W) at a position; None if stimuli have one label each.
        boxes: labelled boxes of each stimulus, (m, 6): class, 1 for a crowd, left, top, right, bottom in pixels of the input, or None;
            None if stimuli have none.
        calls: number of consecutive stimuli between resets of a stateful network; 0: stimuli are independent.
    """

    calls: int = 0
    raw: Callable[[int], np.ndarray] | None = None

    def __init__(
        self,
        names: Sequence[str],
        labels: np.ndarray,
        shape: tuple[int, ...],
        load: Callable[[int], np.ndarray],
        label_map: Callable[[int], np.ndarray] | None = None,
        boxes: Sequence[np.ndarray | None] | None = None,
    ):
        """`load` returns the float32 array of the stimulus at a position; called from threads, as is `label_map`."""
        self.names = names
        self.labels = np.asarray(labels, np.int64)
        self.shape = shape
        self._load = load
        self.label_map = label_map
        self.boxes = boxes
        if len(names) != len(self.labels):
            raise InternalError(f"{len(names)} names for {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> np.ndarray:
        """Return one stimulus, float32 of `shape`."""
        if not 0 <= position < len(self):
            raise IndexError(f"stimulus {position} of {len(self)}")
        return self._load(position)

    def take(self, positions: Sequence[int] | np.ndarray) -> Stimuli:
        """Return the stimuli at these positions, in this order."""
        chosen = np.asarray(positions, np.int64).reshape(-1)
        if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise IndexError(f"positions outside the {len(self)} stimuli")
        names = [self.names[int(position)] for position in chosen]
        inner, raw = self.label_map, self.raw
        taken = Stimuli(
            names,
            self.labels[chosen],
            self.shape,
            lambda position: self._load(int(chosen[position])),
            None if inner is None else lambda position: inner(int(chosen[position])),
            None if self.boxes is None else [self.boxes[int(position)] for position in chosen],
        )
        taken.raw = None if raw is None else lambda position: raw(int(chosen[position]))
        return taken

    def from_raw(self, raw: Callable[[int], np.ndarray]) -> Stimuli:
        """The same stimuli, which the export makes of what `raw` gives."""
        other = copy(self)
        other.raw = raw
        return other

    def as_calls(self, calls: int) -> Stimuli:
        """Return the same stimuli as calls of a stateful network, with a reset after `calls`."""
        other = copy(self)
        other.calls = calls
        return other

    def sample_evenly(self, count: int) -> Stimuli:
        """Return `count` evenly spaced stimuli, which sample sorted sets over all classes; of calls, the first ones."""
        if count >= len(self):
            return self
        if self.calls:
            return self.take(range(count)).as_calls(self.calls)
        return self.take(even_positions(len(self), count))

    def batches(self, size: int, workers: int | None = None) -> Iterator[Batch]:
        """Yield batches of `size` (the last may be smaller), of calls from reset to reset: x float32 (n, *shape), labels (n,),
        names.

        At most a few chunks of stimuli are read ahead. The first error of a stimulus is raised in its turn.
        """
        if size < 1:
            raise InternalError(f"batches of {size} stimuli")
        size = self.calls or size
        starts = range(0, len(self), size)
        chunks = self._chunks(size, workers or default_workers())
        for start in starts:
            stop = min(start + size, len(self))
            x = np.empty((stop - start, *self.shape), np.float32)
            for first in range(start, stop, _CHUNK):
                part = next(chunks)
                x[first - start : first - start + len(part)] = part
            yield x, self.labels[start:stop], list(self.names[start:stop])

    def _chunks(self, size: int, workers: int) -> Iterator[list[np.ndarray]]:
        """Yield runs of stimuli in order; no run crosses a multiple of `size`."""
        runs = (
            range(first, min(first + _CHUNK, start + size, len(self)))
            for start in range(0, len(self), size)
            for first in range(start, min(start + size, len(self)), _CHUNK)
        )
        pool = ThreadPoolExecutor(workers, thread_name_prefix="stimuli")
        waiting: deque[Future[list[np.ndarray]]] = deque()
        try:
            for run in runs:
                waiting.append(pool.submit(self._run, run))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, positions: range) -> list[np.ndarray]:
        return [self._load(position) for position in positions]
