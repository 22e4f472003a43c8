"""The result of scoring one target over a set of stimuli."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from n2d2py.targets.boxes import Boxes
from n2d2py.targets.metrics import Metrics, area_under_roc, class_metrics, mean_metrics
from n2d2py.targets.pixels import Pixels


@dataclass(frozen=True)
class Miss:
    """A stimulus whose best output is not its label; `value` is the real value of the best output."""

    index: int
    name: str
    label: int
    estimated: int
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """Quality of a target's outputs.

    A stimulus with label -1 is not counted, but its estimation is kept. All arrays have one entry
    per stimulus, in the order in which they came.

    Attributes:
        target: name of the target.
        classes: names of the outputs; two for a single thresholded output; empty for auto-encoders.
        top_n: how many of the best outputs may hold the label.
        names: of the stimuli.
        indices: int64, the number of each stimulus in its set; scores are compared by it.
        labels: int64, output that is expected, -1 when ignored.
        best: int64 (n, min(top_n, classes)) best outputs, best first; (n, 1) for a single output.
        values: float64, real values of `best`.
        ranks: int64, how many outputs come before the label; -1 when ignored.
        errors: float64 mean squared error of each stimulus, for targets whose data are the target.
        pixels: counts over positions, for outputs with a label for each; `labels`, `best` and `ranks` say nothing then.
        margins: float64, of two classes: value of class 1, less that of class 0 where there is one.
        boxes: detections and labelled boxes; `labels`, `best` and `ranks` say nothing then.
    """

    target: str
    classes: tuple[str, ...]
    top_n: int
    names: tuple[str, ...]
    indices: np.ndarray
    labels: np.ndarray
    best: np.ndarray
    values: np.ndarray
    ranks: np.ndarray
    errors: np.ndarray | None = None
    pixels: Pixels | None = None
    boxes: Boxes | None = None
    margins: np.ndarray | None = None

    def __repr__(self) -> str:
        value = "" if self.percent is None else f"{'top-1' if self.boxes is None else 'mAP'} {self.percent:.2f} % of "
        return f"Score({self.target}: {value}{self.stimuli} samples)"

    @property
    def stimuli(self) -> int:
        """Number of given ones, ignored ones included."""
        return len(self.labels)

    @property
    def count(self) -> int:
        """Number with a label that counts."""
        if self.pixels is not None:
            return int(np.count_nonzero(self.pixels.counted))
        return int(np.count_nonzero(self.labels >= 0))

    @property
    def correct(self) -> int:
        """Number with their label as best output; positions, not stimuli, where each has a label."""
        if self.pixels is not None:
            return int(self.pixels.hits.sum())
        return int(np.count_nonzero(self.ranks == 0))

    @property
    def estimated(self) -> np.ndarray:
        """Best output of each stimulus (n,)."""
        return self.best[:, 0]

    @property
    def top1(self) -> float | None:
        """Percent of the counted stimuli (positions, where each has a label) whose best output is the label.

        None without labels, or for auto-encoders.
        """
        if self.pixels is not None:
            return 100.0 * self.correct / int(self.pixels.counted.sum()) if self.count else None
        return 100.0 * self.correct / self.count if self.count and self.errors is None else None

    @property
    def percent(self) -> float | None:
        """The one figure of the score: mAP of detections, else `top1`."""
        return self.top1 if self.boxes is None else self.boxes.percent

    @property
    def topn(self) -> float | None:
        """Percent whose label is among the `top_n` best outputs; None when top_n is 1, or as `top1`."""
        if self.top1 is None or self.top_n == 1 or self.pixels is not None:
            return None
        return 100.0 * int(np.count_nonzero((self.ranks >= 0) & (self.ranks < self.top_n))) / self.count

    @cached_property
    def confusion(self) -> np.ndarray:
        """Counts (K, K) int64: rows are labels, columns are best outputs."""
        if self.pixels is not None:
            return self.pixels.confusion
        size = len(self.classes)
        counted = self.labels >= 0
        if self.errors is not None or not size:
            return np.zeros((0, 0), np.int64)
        flat = self.labels[counted] * size + self.estimated[counted]
        return np.bincount(flat, minlength=size * size).reshape(size, size)

    @cached_property
    def misclassified(self) -> tuple[Miss, ...]:
        """The counted stimuli whose best output is not the label, in order."""
        return tuple(
            Miss(int(self.indices[i]), self.names[i], int(self.labels[i]), int(self.best[i, 0]), float(self.values[i, 0]))
            for i in np.flatnonzero(self.ranks > 0)
        )

    def misses_of_classes(self, most: int) -> tuple[Miss, ...]:
        """At most `most` misclassified stimuli: the first of each label, then the second of each, and so on."""
        turns: dict[int, int] = {}
        ranked = []
        for miss in self.misclassified:
            turns[miss.label] = turns.get(miss.label, -1) + 1
            ranked.append((turns[miss.label], miss.label, miss))
        return tuple(miss for _, _, miss in sorted(ranked, key=lambda one: one[:2])[:most])

    @property
    def metrics(self) -> Metrics | None:
        """Means over the classes; None without labels."""
        return mean_metrics(self.confusion)

    @property
    def mse(self) -> float | None:
        """Mean squared error between outputs and inputs, for auto-encoders."""
        return float(self.errors.mean()) if self.errors is not None and self.errors.size else None

    @property
    def auc(self) -> float | None:
        """Area under the ROC of label 1 among labels 0 and 1: of the error of auto-encoders, or the margin of two classes."""
        values = self.errors if self.errors is not None else self.margins
        if values is None or np.any(self.labels > 1):
            return None
        counted = self.labels >= 0
        return area_under_roc(values[counted], self.labels[counted] == 1)

    @property
    def f1(self) -> float | None:
        """F1 of class 1 of two, 0 to 1; None for others, and where nothing is or should be of it."""
        if self.margins is None or not self.count:
            return None
        found = class_metrics(self.confusion)[1].f1
        return None if np.isnan(found) else found


def common(first: Score, second: Score) -> tuple[np.ndarray, np.ndarray]:
    """Positions, in each of two scores, of the stimuli that both have."""
    _, left, right = np.intersect1d(first.indices, second.indices, assume_unique=True, return_indices=True)
    return left, right


def agreement(first: Score, second: Score) -> float | None:
    """Percent of the stimuli of both scores with the same best output; None for auto-encoders, segmentation, detections or without any."""
    left, right = common(first, second)
    if not left.size or any(one is not None for one in (first.errors, first.pixels, first.boxes)):
        return None
    return 100.0 * float(np.mean(first.estimated[left] == second.estimated[right]))
