"""Scoring of targets with a label for each position: segmentation."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class SegmentedSample:
    """Values of a sample to draw: estimated and expected outputs, int16 (H, W); -1 for no expected output."""

    index: int
    estimated: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class Pixels:
    """Counts over the positions of the samples.

    Attributes:
        hits: int64 (n,), positions whose best output is the label.
        counted: int64 (n,), positions with a label.
        confusion: int64 (K, K), rows are labels, columns best outputs.
        shown: the first samples, for images.
    """

    hits: np.ndarray
    counted: np.ndarray
    confusion: np.ndarray
    shown: tuple[SegmentedSample, ...] = ()


def fit_labels(labels: np.ndarray, size: tuple[int, int], classes: int) -> np.ndarray:
    """Return labels (n, H, W) at the positions of an output of `size`, int64 (n, h, w).

    If the output is smaller: the most frequent label of the pixels of a position (the first one for a tie), -1 without a label.
    Else the label of the pixel at the position.
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
    """Return hits (n,), counted (n,) and the confusion matrix (K, K) of maps (n, h, w); labels below 0 do not count."""
    known = labels >= 0
    flat = labels[known] * classes + estimated[known]
    matrix = np.bincount(flat, minlength=classes * classes).reshape(classes, classes)
    axes = tuple(range(1, labels.ndim))
    return np.sum(known & (estimated == labels), axis=axes), np.sum(known, axis=axes), matrix
