"""Targets with a label for each position: segmentation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Shown:
    """Drawn values of a stimulus: estimated and expected outputs, int16 (H, W), -1 where none is expected."""

    index: int
    estimated: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class Pixels:
    """Counts over the positions of the stimuli.

    Attributes:
        hits: int64 (n,), positions whose best output is the label.
        counted: int64 (n,), positions with a label.
        confusion: int64 (K, K), rows are labels, columns best outputs.
        shown: the first stimuli, to be drawn.
    """

    hits: np.ndarray
    counted: np.ndarray
    confusion: np.ndarray
    shown: tuple[Shown, ...] = ()


def fitted_labels(labels: np.ndarray, size: tuple[int, int], classes: int) -> np.ndarray:
    """Labels (n, H, W) at the positions of an output of `size`, int64 (n, h, w).

    Where the output is smaller: the label that most pixels of a position have (of equals the first), -1 where none
    has one; else the pixel that the position lies on.
    """
    before = labels.shape[1:]
    if before == size:
        return labels
    if size[0] > before[0] or size[1] > before[1]:
        rows, columns = (np.arange(after) * whole // after for whole, after in zip(before, size, strict=True))
        return labels[:, rows[:, None], columns]
    best, result = np.zeros((len(labels), *size), np.int64), np.full((len(labels), *size), -1, np.int64)
    starts = [np.arange(after) * whole // after for whole, after in zip(before, size, strict=True)]
    for label in range(classes):
        counts = np.add.reduceat(np.add.reduceat((labels == label).astype(np.int64), starts[0], axis=1), starts[1], axis=2)
        more = counts > best
        best[more], result[more] = counts[more], label
    return result


def count_pixels(estimated: np.ndarray, labels: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """hits (n,), counted (n,) and the confusion matrix (K, K) of maps (n, h, w); labels below 0 do not count."""
    known = labels >= 0
    flat = labels[known] * classes + estimated[known]
    matrix = np.bincount(flat, minlength=classes * classes).reshape(classes, classes)
    axes = tuple(range(1, labels.ndim))
    return np.sum(known & (estimated == labels), axis=axes), np.sum(known, axis=axes), matrix
