"""Batches of stimuli for a training: held in memory, read by threads, or by processes of PyTorch's DataLoader."""

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

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error

_HELD = 1 << 30
"""Bytes of stimuli up to which they are read once and held."""


class Source:
    """Stimuli by positions; read once where they fit into memory and nothing is drawn."""

    def __init__(self, stimuli: Stimuli, drawn: Callable[[int], Stimuli] | None = None, workers: int = 0):
        """`drawn` gives the stimuli of an epoch, where those differ; `workers` processes read those, 0: threads of this one."""
        self.stimuli = stimuli
        self._drawn = drawn
        self._workers = workers
        self._held: tuple[np.ndarray, np.ndarray] | None = None
        if drawn is None and len(stimuli) * int(np.prod(stimuli.shape)) * 4 <= _HELD:
            batches = log.progress(stimuli.batches(256), "reading", total=-(-len(stimuli) // 256), unit="batch")
            self._held = np.concatenate([x for x, _, _ in batches]), _labels(stimuli, np.arange(len(stimuli)))

    def batches(self, parts: Sequence[np.ndarray], epoch: int = 0) -> Iterator[tuple[Tensor, np.ndarray]]:
        """(x float32 (n, *shape), labels) at the positions of each part, as an epoch learns them; labels (n,), or (n, H, W) of pixels.

        All parts but the last have one size: reading continues while a batch is learned.

        Raises:
            N2D2Error: what reading a stimulus raises, E434 when a process that reads dies.
        """
        if self._held is not None:
            held, labels = self._held
            return ((torch.from_numpy(held[part]), labels[part]) for part in parts)
        stimuli = self.stimuli if self._drawn is None else self._drawn(epoch)
        if not parts:
            return iter(())
        if self._workers:
            return _read_by_processes(stimuli, parts, self._workers)
        batches = stimuli.take(np.concatenate(parts)).batches(len(parts[0]))
        labels = ordered_map(partial(_labels, stimuli), parts)
        return ((torch.from_numpy(x), each) for (x, _, _), each in zip(batches, labels, strict=True))


def _labels(stimuli: Stimuli, positions: np.ndarray) -> np.ndarray:
    """The labels at positions: ids (n,), or (n, H, W) where each pixel has one."""
    if stimuli.label_map is None:
        return stimuli.labels[positions]
    return np.stack([stimuli.label_map(int(position)).astype(np.int32) for position in positions])


class _Batches(Dataset):
    """Whole batches of stimuli with labels, or what reading one raised: an error with a code does not pass PyTorch's own way whole."""

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
        collate_fn=_as_it_is,
        multiprocessing_context="fork",
    )
    found = iter(loader)
    for _ in parts:
        try:
            batch = next(found)
        except RuntimeError as error:
            what = f"a worker process that reads stimuli died: {str(error).splitlines()[0]}"
            raise N2D2Error("E434", what, remedy="give a smaller -learn-workers, or 0") from None
        if isinstance(batch, N2D2Error):
            raise batch
        yield batch[0], batch[1].numpy()


def _as_it_is(batch: Any) -> Any:
    return batch
