"""Stimuli streamed in batches: read and prepared by threads, in order, never all in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.errors import InternalError

Batch = tuple[np.ndarray, np.ndarray, list[str]]

_CHUNK = 8
"""Stimuli that a thread reads at a time."""


def even_positions(total: int, count: int) -> np.ndarray:
    """Return at most `count` of `total` positions, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, max(total - 1, 0), min(count, total)).round().astype(np.int64))


@dataclass(eq=False, repr=False)
class Stimuli:
    """A sequence of stimuli: names, labels, and arrays made on demand. Its functions are called from several threads.

    Attributes:
        names: names in messages and result files.
        labels: int64, -1 for none.
        shape: shape of one stimulus, (C, H, W) or (F,).
        load: returns the stimulus at a position, float32 of `shape`.
        label_map: returns the pixel-wise label ids (H, W) at a position; None if stimuli have one label each.
        boxes: labelled boxes of each stimulus, (m, 6): class, 1 for a crowd, left, top, right, bottom in pixels of the input, or None;
            None if stimuli have none.
        raw: returns the values that an export converts to the stimulus at a position; None if it converts none.
        calls: number of consecutive stimuli between resets of a stateful network; 0: stimuli are independent.
    """

    names: Sequence[str]
    labels: np.ndarray
    shape: tuple[int, ...]
    load: Callable[[int], np.ndarray]
    label_map: Callable[[int], np.ndarray] | None = None
    boxes: Sequence[np.ndarray | None] | None = None
    raw: Callable[[int], np.ndarray] | None = None
    calls: int = 0

    def __post_init__(self) -> None:
        self.labels = np.asarray(self.labels, np.int64)
        if len(self.names) != len(self.labels):
            raise InternalError(f"{len(self.names)} names for {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, position: int) -> np.ndarray:
        if not 0 <= position < len(self):
            raise IndexError(f"stimulus {position} of {len(self)}")
        return self.load(position)

    def take(self, positions: Sequence[int] | np.ndarray) -> Stimuli:
        """Return the stimuli at these positions, in this order, as independent ones."""
        chosen: list[int] = np.asarray(positions, np.int64).reshape(-1).tolist()
        if chosen and not (min(chosen) >= 0 and max(chosen) < len(self)):
            raise IndexError(f"positions outside the {len(self)} stimuli")

        def at(read: Callable[[int], np.ndarray]) -> Callable[[int], np.ndarray]:
            return lambda position: read(chosen[position])

        return Stimuli(
            [self.names[position] for position in chosen],
            self.labels[chosen],
            self.shape,
            at(self.load),
            self.label_map and at(self.label_map),
            self.boxes and [self.boxes[position] for position in chosen],
            self.raw and at(self.raw),
        )

    def as_calls(self, calls: int) -> Stimuli:
        """Return the same stimuli as calls of a stateful network, with a reset after `calls`."""
        return replace(self, calls=calls)

    def sample_evenly(self, count: int) -> Stimuli:
        """Return `count` evenly spaced stimuli (-1: all), which sample sorted sets over all classes; of calls, the first ones."""
        if not 0 <= count < len(self):
            return self
        if self.calls:
            return self.take(range(count)).as_calls(self.calls)
        return self.take(even_positions(len(self), count))

    def batches(self, size: int) -> Iterator[Batch]:
        """Yield batches of `size` (the last may be smaller), of calls from reset to reset: x float32 (n, *shape), labels (n,),
        names.

        Chunks of stimuli are read by threads, at most one more than there are cores ahead. The first error of a stimulus is
        raised in its turn.
        """
        if size < 1:
            raise InternalError(f"batches of {size} stimuli")
        size = self.calls or size
        batches = [range(start, min(start + size, len(self))) for start in range(0, len(self), size)]
        chunks = (batch[first : first + _CHUNK] for batch in batches for first in range(0, len(batch), _CHUNK))
        arrays = ordered_map(lambda chunk: [self.load(position) for position in chunk], chunks)
        try:
            for batch in batches:
                x = np.empty((len(batch), *self.shape), np.float32)
                for first in range(0, len(batch), _CHUNK):
                    x[first : first + _CHUNK] = next(arrays)
                yield x, self.labels[batch.start : batch.stop], list(self.names[batch.start : batch.stop])
        finally:
            arrays.close()

    def watched_batches(self, size: int, activity: str) -> Iterator[Batch]:
        """Yield `batches` with a progress bar; `activity`: its title."""
        count = -(-len(self) // (self.calls or size))
        return log.progress(self.batches(size), activity, total=count, unit="batch")

    def array(self, size: int) -> np.ndarray:
        """Return all stimuli as one array (n, *shape), read in batches of `size`."""
        return np.concatenate([x for x, _, _ in self.batches(size)])
