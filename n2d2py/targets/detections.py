"""Evaluation of decisions in whole samples: average precision of boxes as in COCO (https://cocodataset.org/#detection-eval), accuracy of
spoken words as in speech recognition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

IOUS = np.linspace(0.5, 0.95, 10)
"""Thresholds of intersection over union for a detection to match a labelled box."""
_RECALLS = np.linspace(0, 1, 101)
_MAX_DETECTIONS = 100
"""Limit of detections per image; the highest scores count."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Detections and labelled boxes, one array for each sample.

    Attributes:
        detections: (n, 6) float64: class, score, x0, y0, x1, y1, in descending order of the score.
        labelled: (m, 6) float64: class, 1 for a crowd, whose detections do not count, x0, y0, x1, y1.
    """

    detections: tuple[np.ndarray, ...]
    labelled: tuple[np.ndarray, ...]

    metric: ClassVar = "mAP"

    def of(self, positions: np.ndarray) -> Boxes:
        """Return the boxes of the samples at these positions."""
        return Boxes(*(tuple(each[int(position)] for position in positions) for each in (self.detections, self.labelled)))

    @cached_property
    def precisions(self) -> dict[int, np.ndarray]:
        """Average precision (10,) at each of the IOUS, by class with labelled boxes."""
        classes = {int(label) for each in self.labelled for label in each[each[:, 1] == 0, 0]}
        return {label: self._precision(label) for label in sorted(classes)}

    @property
    def percent(self) -> float | None:
        """mAP in percent: mean over the classes and IOUS; None without labelled boxes."""
        return 100.0 * float(np.mean(list(self.precisions.values()))) if self.precisions else None

    @property
    def percent_50(self) -> float | None:
        """mAP at an intersection over union of 0.5, in percent."""
        return 100.0 * float(np.mean([one[0] for one in self.precisions.values()])) if self.precisions else None

    @property
    def details(self) -> dict[str, str]:
        """Further columns of a table."""
        return {"mAP 0.5": "-" if self.percent_50 is None else f"{self.percent_50:.2f}%"}

    def _precision(self, label: int) -> np.ndarray:
        count, scores, hits, counted = 0, [], [], []
        for detections, labelled in zip(self.detections, self.labelled, strict=True):
            mine, truth = (
                detections[:_MAX_DETECTIONS][detections[:_MAX_DETECTIONS, 0] == label],
                labelled[labelled[:, 0] == label],
            )
            truth = truth[np.argsort(truth[:, 1], kind="stable")]  # crowds last
            hit, ignored = _match_detections(mine[:, 2:], truth[:, 2:], truth[:, 1] == 1)
            count += int(np.count_nonzero(truth[:, 1] == 0))
            scores.append(mine[:, 1])
            hits.append(hit)
            counted.append(~ignored)
        order = np.argsort(-np.concatenate(scores), kind="stable")
        right, known = np.concatenate(hits, 1)[:, order], np.concatenate(counted, 1)[:, order]
        return np.array([_interpolated_precision(one[two], count) for one, two in zip(right, known, strict=True)])


def _interpolated_precision(hits: np.ndarray, count: int) -> float:
    """Return the mean precision at 101 recalls, each the best precision at this recall or above; detections by descending
    score."""
    right = np.cumsum(hits)
    precision = np.maximum.accumulate((right / np.arange(1, len(hits) + 1))[::-1])[::-1]
    places = np.searchsorted(right / count, _RECALLS, side="left")
    return float(np.append(precision, 0.0)[places].mean())


def _match_detections(detections: np.ndarray, labelled: np.ndarray, crowd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (10, n), by descending score: is the detection a labelled box, and is it ignored.

    A detection matches the unmatched box with the largest overlap. Boxes of crowds, the last ones, match any number of
    detections.
    """
    overlaps = _intersection_over_union(detections, labelled, crowd)
    hits, ignored = np.zeros((2, len(IOUS), len(detections)), bool)
    for index, limit in enumerate(np.minimum(IOUS, 1 - 1e-10)):
        free = np.ones(len(labelled), bool)
        for number, row in enumerate(overlaps):
            for group in (~crowd, crowd):
                able = np.where(free & group, row, -1.0)
                best = len(able) - 1 - int(np.argmax(able[::-1])) if len(able) else 0
                if len(able) and able[best] >= limit:
                    (ignored if crowd[best] else hits)[index, number] = True
                    free[best] = crowd[best]
                    break
    return hits, ignored


def _intersection_over_union(detections: np.ndarray, labelled: np.ndarray, crowd: np.ndarray) -> np.ndarray:
    """Return the intersection over union (n, m); for crowds, the intersection over the detection's area."""
    a, b = detections[:, None], labelled[None]
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    common = np.prod(np.maximum(sides, 0), axis=2)
    areas = [np.prod(each[..., 2:] - each[..., :2], axis=2) for each in (a, b)]
    whole = np.where(crowd, areas[0], areas[0] + areas[1] - common)
    return np.divide(common, whole, out=np.zeros_like(common), where=whole > 0)


@dataclass(frozen=True, eq=False)
class Words:
    """Decided and spoken words, class numbers in their order, for each recording."""

    detected: tuple[tuple[int, ...], ...]
    spoken: tuple[tuple[int, ...], ...]

    metric: ClassVar = "word accuracy"

    def of(self, positions: np.ndarray) -> Words:
        """Return the words of the recordings at these positions."""
        return Words(*(tuple(each[int(index)] for index in positions) for each in (self.detected, self.spoken)))

    @cached_property
    def errors(self) -> tuple[int, int, int]:
        """Wrong, missing and extra words of the alignments with the fewest errors."""
        wrong, missing, extra = np.sum(
            [_errors(*each) for each in zip(self.detected, self.spoken, strict=True)], axis=0
        ).tolist()
        return wrong, missing, extra

    @property
    def count(self) -> int:
        """Number of spoken words."""
        return sum(map(len, self.spoken))

    @property
    def percent(self) -> float | None:
        """Word accuracy in percent: 1 - errors / words, below 0 for many extra words; None without words."""
        return 100.0 * (1 - sum(self.errors) / self.count) if self.count else None

    @property
    def details(self) -> dict[str, str]:
        """Further columns of a table."""
        return dict(zip(("words", "wrong", "missing", "extra"), map(str, (self.count, *self.errors)), strict=True))


def _errors(detected: Sequence[int], spoken: Sequence[int]) -> tuple[int, int, int]:
    """Return wrong, missing and extra words with the least sum, by dynamic programming; of equal sums the fewest wrong ones."""
    row = [(at, 0, 0, at) for at in range(len(detected) + 1)]  # sum, wrong, missing, extra
    for word in spoken:
        above, row = row, [(row[0][0] + 1, row[0][1], row[0][2] + 1, row[0][3])]
        for at, heard in enumerate(detected):
            differs = int(heard != word)
            steps = ((above[at], differs, 0, 0), (above[at + 1], 0, 1, 0), (row[at], 0, 0, 1))
            row.append(min((c + a + b + d, w + a, m + b, e + d) for (c, w, m, e), a, b, d in steps))
    return row[-1][1:]
