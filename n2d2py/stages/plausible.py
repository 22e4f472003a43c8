"""Whether a score of the float network can be meant: chance, or labels that are one class off."""

from __future__ import annotations

import numpy as np

from n2d2py import log
from n2d2py.targets import Score

_FEWEST = 20
"""Labelled stimuli below which nothing can be said."""


def warn_of_score(score: Score) -> None:
    """W409 for a float network that finds no more labels than chance, W410 for labels one class off."""
    if score.errors is not None or score.pixels is not None or len(score.classes) < 2:
        return
    counted = score.labels >= 0
    labels, found = score.labels[counted], score.estimated[counted]
    count, classes = len(labels), len(score.classes)
    if count < _FEWEST or len(np.unique(labels)) < 2:
        return
    correct = int(np.count_nonzero(labels == found))
    shifted = {step: int(np.count_nonzero(found - labels == step)) for step in (-1, 1)}
    step = max(shifted, key=lambda one: shifted[one])
    if classes > 2 and shifted[step] > max((count - correct) / 2, 2 * correct, 3 * (classes > 3) + count / classes * 2):
        log.warning(
            "W410",
            f"{shifted[step]} of {count} samples are classified one class {'above' if step > 0 else 'below'} their label",
            where=f"[{score.target}]",
            remedy="number the labels like the outputs; with folders, name all outputs with -class-names, including a "
            "background class",
        )
        return
    shares = (np.bincount(values, minlength=classes) / count for values in (labels, found))
    chance = float(np.prod(list(shares), axis=0).sum())
    if correct <= count * chance + 2 * np.sqrt(count * chance * (1 - chance)):
        log.warning(
            "W409",
            f"the float model classifies {correct} of {count} samples correctly, no more than chance ({100 * chance:.0f} %)",
            where=f"[{score.target}]",
            remedy="check the preprocessing (-mean, -std and -scale or -input-range, -bgr) and the order of the classes",
        )
