"""Batches of training samples: cached in memory, or read by threads or by processes of PyTorch's DataLoader."""

# PyTorch is an extra: pyright runs without it too, and then takes n2d2py/torch.py for it
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from n2d2py.concurrency import ordered_map
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error

_CACHE_BYTES = 1 << 30
"""Samples up to this size are read once and cached."""


class Source:
    """Samples by position; cached if they fit into memory and do not differ between epochs."""

    def __init__(self, stimuli: Stimuli, epoch_stimuli: Callable[[int], Stimuli] | None = None, workers: int = 0):
        """`epoch_stimuli` returns the samples of an epoch, if they differ; `workers` processes read them, 0: threads of this
        process."""
        self.stimuli = stimuli
        self._epoch_stimuli = epoch_stimuli
        self._workers = workers
        self._held: tuple[np.ndarray, np.ndarray] | None = None
        if epoch_stimuli is None and len(stimuli) * int(np.prod(stimuli.shape)) * 4 <= _CACHE_BYTES:
            x = np.concatenate([x for x, _, _ in stimuli.watched_batches(256, "reading")])
            self._held = x, _labels(stimuli, np.arange(len(stimuli)))

    def batches(self, parts: Sequence[np.ndarray], epoch: int = 0) -> Iterator[tuple[Tensor, np.ndarray]]:
        """Yield (x float32 (n, *shape), labels) at the positions of each part, for an epoch; labels (n,), or (n, H, W) for
        pixels.

        All parts but the last have equal size. The next batches are read while one is trained on.

        Raises:
            N2D2Error: errors of reading a sample, and E434 if a reading process dies.
        """
        if self._held is not None:
            samples, labels = self._held
            return ((torch.from_numpy(samples[part]), labels[part]) for part in parts)
        stimuli = self.stimuli if self._epoch_stimuli is None else self._epoch_stimuli(epoch)
        if not parts:
            return iter(())
        if self._workers:
            return _read_by_processes(stimuli, parts, self._workers)
        batches = stimuli.take(np.concatenate(parts)).batches(len(parts[0]))
        labels = ordered_map(partial(_labels, stimuli), parts)
        return ((torch.from_numpy(x), each) for (x, _, _), each in zip(batches, labels, strict=True))


def _labels(stimuli: Stimuli, positions: np.ndarray) -> np.ndarray:
    """Return the labels at positions: ids (n,), or (n, H, W) if each pixel has one."""
    if stimuli.label_map is None:
        return stimuli.labels[positions]
    return np.stack([stimuli.label_map(int(position)).astype(np.int32) for position in positions])


class _Batches(Dataset):
    """Dataset of whole batches with labels. An error with a code is an item too, since PyTorch does not pass it on intact."""

    def __init__(self, stimuli: Stimuli):
        self._stimuli = stimuli

    def __getitems__(self, positions: list[int]) -> tuple[Tensor, Tensor] | N2D2Error:
        try:
            x = np.stack([self._stimuli[position] for position in positions])
            return torch.from_numpy(x), torch.from_numpy(_labels(self._stimuli, np.array(positions)))
        except N2D2Error as error:
            return error


def _read_by_processes(stimuli: Stimuli, parts: Sequence[np.ndarray], workers: int) -> Iterator[tuple[Tensor, np.ndarray]]:
    # forked: what reads a stimulus is a chain of functions that no other process could be sent
    loader: Any = DataLoader(
        _Batches(stimuli),
        batch_sampler=[part.tolist() for part in parts],
        num_workers=workers,
        collate_fn=_identity,
        multiprocessing_context="fork",
    )
    batches = iter(loader)
    for _ in parts:
        try:
            batch = next(batches)
        except RuntimeError as error:
            what = f"a worker process that reads stimuli died: {str(error).splitlines()[0]}"
            raise N2D2Error("E434", what, remedy="give a smaller -learn-workers, or 0") from None
        if isinstance(batch, N2D2Error):
            raise batch
        yield batch[0], batch[1].numpy()


def _identity(batch: Any) -> Any:
    return batch
