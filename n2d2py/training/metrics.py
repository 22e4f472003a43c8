"""Validation metrics, computed from the accuracy. This module needs no PyTorch."""

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
"""Metrics by name, as functions of the accuracy and the number of classes.

As in N2D2, all classes are counted together. A wrong label is one false negative and one false positive. With accuracy r and K
classes, each sample counts TP = r, FN = FP = 1 - r, TN = K - 2 + r.
"""


def _specificity(right: float, classes: int) -> float:
    return (classes - 2 + right) / (classes - 1)
