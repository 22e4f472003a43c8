"""Scores of one target over a set of samples."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from n2d2py.targets.detections import Boxes, Words
from n2d2py.targets.pixels import Pixels


@dataclass(frozen=True)
class Metrics:
    """Metrics from TP, TN, FP, FN of a class against the others, in 0..1; NaN for a divisor of 0.

    sensitivity TP/(TP+FN), specificity TN/(TN+FP), precision TP/(TP+FP), accuracy (TP+TN)/all, f1 2TP/(2TP+FP+FN), informedness
    sensitivity + specificity - 1, iu TP/(TP+FP+FN) (intersection over union).
    """

    sensitivity: float
    specificity: float
    precision: float
    accuracy: float
    f1: float
    informedness: float
    iu: float


def class_metrics(confusion: np.ndarray) -> list[Metrics]:
    """Return the metrics of each class of a confusion matrix (K, K): rows are labels, columns estimates."""
    matrix = np.asarray(confusion, np.float64)
    tp, total = np.diag(matrix), matrix.sum()
    fn, fp = matrix.sum(axis=1) - tp, matrix.sum(axis=0) - tp
    tn = total - tp - fn - fp
    with np.errstate(invalid="ignore", divide="ignore"):
        recall, specificity = tp / (tp + fn), tn / (tn + fp)
        precision, accuracy, f1, iu = tp / (tp + fp), (tp + tn) / total, 2 * tp / (2 * tp + fp + fn), tp / (tp + fp + fn)
        rows = np.transpose([recall, specificity, precision, accuracy, f1, recall + specificity - 1, iu])
    return [Metrics(*row) for row in rows.tolist()]


def mean_metrics(confusion: np.ndarray) -> Metrics | None:
    """Return the mean of each metric over the classes that have it (no divisor of 0); None for an empty matrix."""
    if not np.any(confusion):
        return None
    table = np.array([astuple(metrics) for metrics in class_metrics(confusion)])
    columns = [column[~np.isnan(column)] for column in table.T]
    return Metrics(*(float(known.mean()) if known.size else float("nan") for known in columns))


def area_under_roc(values: np.ndarray, positive: np.ndarray) -> float | None:
    """Return P(value of a positive > value of a negative), ties counted half; None if a group is empty.

    values (n,) real, positive (n,) bool.
    """
    count = int(np.count_nonzero(positive))
    others = len(values) - count
    if not count or not others:
        return None
    _, inverse, members = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(members) - (members - 1) / 2  # mean rank of each group of equal values, from 1
    rank_sum = float(ranks[inverse[positive]].sum())
    return (rank_sum - count * (count + 1) / 2) / (count * others)


@dataclass(frozen=True)
class Miss:
    """A sample whose best output is not its label; `value` is the real value of the best output."""

    index: int
    name: str
    label: int
    estimated: int
    value: float


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """Quality of a target's outputs.

    A sample with label -1 is not counted, but its estimate is stored. All arrays have one entry per sample, in order of
    arrival.

    Attributes:
        classes: names of the outputs; two for a single output with a threshold; empty for auto-encoders.
        top_n: number of best outputs that may include the label.
        indices: int64, the number of each sample in its set; identifies samples when scores are compared.
        labels: int64, expected output, -1 if ignored.
        best: int64 (n, min(top_n, classes)) best outputs in descending order; (n, 1) for a single output.
        values: float64, real values of `best`.
        ranks: int64, number of outputs before the label; -1 if ignored.
        errors: float64 mean squared error of each sample, for targets whose data are the target.
        pixels: counts over positions, for outputs with a label at each; `labels`, `best` and `ranks` are then meaningless.
        detections: detected and labelled boxes or words; `labels`, `best` and `ranks` are then meaningless.
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
    detections: Boxes | Words | None = None
    margins: np.ndarray | None = None

    @staticmethod
    def of_detections(
        target: str, classes: tuple[str, ...], names: tuple[str, ...], indices: np.ndarray, detections: Boxes | Words
    ) -> Score:
        """Return the score of boxes or words in samples of these names and numbers, without labels of single outputs."""
        count = len(names)
        none, best = np.full(count, -1, np.int64), np.zeros((count, 1), np.int64)
        return Score(target, classes, 1, names, indices, none, best, np.zeros((count, 1)), none, detections=detections)

    def __repr__(self) -> str:
        value = (
            ""
            if self.percent is None
            else f"{'top-1' if self.detections is None else self.detections.metric} {self.percent:.2f} % of "
        )
        return f"Score({self.target}: {value}{self.stimuli} samples)"

    @property
    def stimuli(self) -> int:
        """Number of samples, with ignored ones."""
        return len(self.labels)

    @property
    def count(self) -> int:
        """Number of samples with a label that counts."""
        if self.pixels is not None:
            return int(np.count_nonzero(self.pixels.counted))
        return int(np.count_nonzero(self.labels >= 0))

    @property
    def correct(self) -> int:
        """Number of samples whose best output is the label; number of positions if each has a label."""
        if self.pixels is not None:
            return int(self.pixels.hits.sum())
        return int(np.count_nonzero(self.ranks == 0))

    @property
    def estimated(self) -> np.ndarray:
        """Best output of each sample (n,)."""
        return self.best[:, 0]

    @property
    def top1(self) -> float | None:
        """Top-1 accuracy in percent, over counted samples or, if each has a label, positions.

        None without labels, or for auto-encoders.
        """
        if self.pixels is not None:
            return 100.0 * self.correct / int(self.pixels.counted.sum()) if self.count else None
        return 100.0 * self.correct / self.count if self.count and self.errors is None else None

    @property
    def percent(self) -> float | None:
        """Main metric of the score: mAP of detections, accuracy of words, else `top1`."""
        return self.top1 if self.detections is None else self.detections.percent

    @property
    def topn(self) -> float | None:
        """Top-N accuracy in percent; None if top_n is 1, or as `top1`."""
        if self.top1 is None or self.top_n == 1 or self.pixels is not None:
            return None
        return 100.0 * int(np.count_nonzero((self.ranks >= 0) & (self.ranks < self.top_n))) / self.count

    @cached_property
    def confusion(self) -> np.ndarray:
        """Counts (K, K) int64: rows are labels, columns best outputs."""
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
        """Counted samples whose best output is not the label, in order."""
        return tuple(
            Miss(int(self.indices[i]), self.names[i], int(self.labels[i]), int(self.best[i, 0]), float(self.values[i, 0]))
            for i in np.flatnonzero(self.ranks > 0)
        )

    def misses_by_class(self, most: int) -> tuple[Miss, ...]:
        """Return at most `most` misclassified samples: the first of each label, then the second of each, and so on."""
        turns: dict[int, int] = {}
        ranked = []
        for miss in self.misclassified:
            turns[miss.label] = turns.get(miss.label, -1) + 1
            ranked.append((turns[miss.label], miss.label, miss))
        return tuple(miss for _, _, miss in sorted(ranked, key=lambda one: one[:2])[:most])

    @property
    def metrics(self) -> Metrics | None:
        """Mean metrics over the classes; None without labels."""
        return mean_metrics(self.confusion)

    @property
    def mse(self) -> float | None:
        """Mean squared error between outputs and inputs, for auto-encoders."""
        return float(self.errors.mean()) if self.errors is not None and self.errors.size else None

    @property
    def auc(self) -> float | None:
        """Area under the ROC of the error as a detector of label 1 among labels 0 and 1, for auto-encoders."""
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
        f1 = class_metrics(self.confusion)[1].f1
        return None if np.isnan(f1) else f1


def common_positions(first: Score, second: Score) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions, in each of two scores, of their common samples."""
    _, left, right = np.intersect1d(first.indices, second.indices, assume_unique=True, return_indices=True)
    return left, right


def agreement(first: Score, second: Score) -> float | None:
    """Return the percentage of common samples with equal best output; None for auto-encoders, segmentation, detections, words or
    no samples."""
    left, right = common_positions(first, second)
    if not left.size or any(one is not None for one in (first.errors, first.pixels, first.detections)):
        return None
    return 100.0 * float(np.mean(first.estimated[left] == second.estimated[right]))
