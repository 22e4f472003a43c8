"""Metrics of a validation, from the share of right labels. No PyTorch here."""

from __future__ import annotations

from collections.abc import Callable

METRICS: dict[str, Callable[[float, int], float]] = {
    "Sensitivity": lambda right, classes: right,
    "Specificity": lambda right, classes: _specificity(right, classes),
    "Precision": lambda right, classes: right,
    "NPV": lambda right, classes: _specificity(right, classes),
    "MissRate": lambda right, classes: 1 - right,
    "FallOut": lambda right, classes: 1 - _specificity(right, classes),
    "FDR": lambda right, classes: 1 - right,
    "FOR": lambda right, classes: 1 - _specificity(right, classes),
    "Accuracy": lambda right, classes: 1 - 2 * (1 - right) / classes,
    "F1Score": lambda right, classes: right,
    "Informedness": lambda right, classes: right + _specificity(right, classes) - 1,
    "Markedness": lambda right, classes: right + _specificity(right, classes) - 1,
}
"""Name -> metric of a share of right labels and a number of classes.

As N2D2 does, it counts all classes together. A wrong label is then one false negative and one false positive, so with r the
share of right
labels and K classes, for each sample: TP = r, FN = FP = 1 - r, TN = K - 2 + r.
"""


def _specificity(right: float, classes: int) -> float:
    """TN / (TN + FP)."""
    return (classes - 2 + right) / (classes - 1)
