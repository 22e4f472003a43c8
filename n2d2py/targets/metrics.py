"""Metrics of a confusion matrix, each class against all others."""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np


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
    true_positive = np.diag(matrix)
    false_negative = matrix.sum(axis=1) - true_positive
    false_positive = matrix.sum(axis=0) - true_positive
    total = matrix.sum()
    true_negative = total - true_positive - false_negative - false_positive
    with np.errstate(invalid="ignore", divide="ignore"):
        sensitivity = true_positive / (true_positive + false_negative)
        specificity = true_negative / (true_negative + false_positive)
        columns = (
            sensitivity,
            specificity,
            true_positive / (true_positive + false_positive),
            (true_positive + true_negative) / total,
            2 * true_positive / (2 * true_positive + false_positive + false_negative),
            sensitivity + specificity - 1,
            true_positive / (true_positive + false_positive + false_negative),
        )
    return [Metrics(*(float(column[k]) for column in columns)) for k in range(len(matrix))]


def mean_metrics(confusion: np.ndarray) -> Metrics | None:
    """Return the mean of each metric over the classes that have it (no divisor of 0); None for an empty matrix."""
    if not np.any(confusion):
        return None
    table = np.array([astuple(metrics) for metrics in class_metrics(confusion)])
    means = []
    for column in table.T:
        known = column[~np.isnan(column)]
        means.append(float(known.mean()) if known.size else float("nan"))
    return Metrics(*means)


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
