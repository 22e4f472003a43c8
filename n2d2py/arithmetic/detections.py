"""Boxes and scores of a detector to detections, in integers: the definition that `kernels/n2d2/detections.hpp` computes too.

Stored values become fixed point once (`arithmetic/fixed_scale.py`), and all that follows is integers.

Coordinates are in 1/16 pixel: a center c and a size s are the corners fixed(2 * c - s) and fixed(2 * c + s), with half the
multiplier. Relative to an anchor (center, size), a step t of the center and a growth g of the size are fixed point in 1/4096:

    center + ((t * size + 2^11) >> 12)  -+  half_grown(size, g), which is size * exp(g / 4096) / 2

Scores are in 1/65536; a logit is fixed point in 1/2048 and goes through the table `SIGMOID`. Then: best class, threshold,
and the non-maximum suppression of each class, the highest score first, of equal scores the first box.
"""

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, POWERS, FixedScale, between, logistic, signed

SUBPIXELS = 16
"""Steps of a coordinate in a pixel."""

REACH = 2**20
"""Largest coordinate before the cut to the image."""

STEP = 4096
"""Steps of what is relative to an anchor; a growth is held within -6 to 6."""


@dataclass(frozen=True)
class BoxDecoder:
    """The integers of a detector.

    Attributes:
        count, classes: boxes, and scores of a box.
        width, height: of the image, in pixels.
        x, y: conversions of the coordinates to 1/16 pixel; of a centre and a size, to 1/32.
        score: conversion of the scores, to 1/65536, or of logits to 1/2048.
        centered: a box is (x, y of the centre, width, height), else two corners (x, y, x, y).
        rows_first: y comes before x.
        anchors: (x, y of the centre, width, height) in 1/16 pixel that each box is relative to; () without.
        growth: conversion of the logarithms of relative sizes to 1/4096; `x` and `y` are those of relative centres then.
        logits: whether scores go through the logistic function.
        objectness: whether a score of the box comes before those of the classes; both are multiplied.
        label: conversion of the class that follows the score; None where each class has a score.
        threshold: scores above it count, in 1/65536.
        overlap: intersection / union above which the box of the lower score is dropped, in 1/65536.
        most: detections at most.
    """

    count: int
    classes: int
    width: int
    height: int
    x: FixedScale
    y: FixedScale
    score: FixedScale
    centered: bool = True
    rows_first: bool = False
    anchors: tuple[tuple[int, ...], ...] = ()
    growth: FixedScale = FixedScale()
    logits: bool = False
    objectness: bool = False
    label: FixedScale | None = None
    threshold: int = ONE // 4
    overlap: int = ONE * 9 // 20
    most: int = 100

    @property
    def values(self) -> int:
        """Values of a box after its four coordinates."""
        return self.classes + self.objectness + (self.label is not None)

    def detect(self, boxes: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return detections, int64 (n, 6): class, score in 1/65536, x0, y0, x1, y1 in 1/16 pixel, cut to the image.

        `boxes` (count, 4) and `scores` (count, values) are stored values. The highest score comes first.
        """
        corners = self._corners(boxes)
        limits = SUBPIXELS * np.array([self.width, self.height] * 2)
        cut = np.clip(corners, 0, limits)
        labels, best = self._best(scores)
        candidates = np.flatnonzero((best > self.threshold) & (cut[:, :2] < cut[:, 2:]).all(1))
        chosen: list[int] = []
        for box in candidates[np.argsort(-best[candidates], kind="stable")]:
            if len(chosen) == self.most:
                break
            rivals = [one for one in chosen if labels[one] == labels[box]]
            if not _overlaps(corners[box], corners[rivals], self.overlap).any():
                chosen.append(int(box))
        return np.concatenate([labels[chosen, None], best[chosen, None], cut[chosen]], axis=1)

    def _corners(self, boxes: np.ndarray) -> np.ndarray:
        """Return x0, y0, x1, y1 (count, 4) in 1/16 pixel."""
        values = signed(boxes, self.x.zero_point)[:, [1, 0, 3, 2] if self.rows_first else [0, 1, 2, 3]]
        first, second = values[:, :2], values[:, 2:]
        if self.anchors:
            anchors = np.array(self.anchors, np.int64)
            sizes, steps = anchors[:, 2:], self.x.fixed(first, -32 * STEP, 32 * STEP)
            centers = anchors[:, :2] + ((steps * sizes + STEP // 2) >> 12)
            halves = half_grown(sizes, self.growth.fixed(second, -6 * STEP, 6 * STEP))
            return np.clip(np.concatenate([centers - halves, centers + halves], 1), -REACH, REACH)
        with np.errstate(invalid="ignore", over="ignore"):
            ends = np.concatenate([2 * first - second, 2 * first + second], axis=1) if self.centered else values
        scales = (self.x, self.y, self.x, self.y)
        return np.stack([one.fixed(column, -REACH, REACH) for one, column in zip(scales, ends.T, strict=True)], 1)

    def _best(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return class and score in 1/65536 of each box."""
        values = signed(scores, self.score.zero_point)
        of_class = values[:, int(self.objectness) : int(self.objectness) + self.classes]
        labels = np.where(np.isnan(of_class), -np.inf, of_class).argmax(1) if values.dtype.kind == "f" else of_class.argmax(1)
        best = self._probability(np.take_along_axis(of_class, labels[:, None], 1)[:, 0])
        if self.objectness:
            best = (best * self._probability(values[:, 0]) + ONE // 2) >> 16
        return labels if self.label is None else self.label.fixed(values[:, -1], 0, REACH), best

    def _probability(self, values: np.ndarray) -> np.ndarray:
        if not self.logits:
            return self.score.fixed(values, 0, ONE)
        return logistic(self.score.fixed(values, -16 * LOGIT, 16 * LOGIT - 1))


def half_grown(sizes: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """Return half of sizes * exp(growth), for a growth of -6 to 6 in 1/4096."""
    octaves, rest = np.divmod((growth * 23637 + 2**13) >> 14, STEP)  # log2(e) in 1/16384
    return (sizes * between(POWERS, rest, 4) + (1 << (16 - octaves))) >> (17 - octaves)


def _overlaps(box: np.ndarray, others: np.ndarray, limit: int) -> np.ndarray:
    """True for each of the other boxes (N, 4) of which intersection / union with a box (4) is above the limit, in 1/65536."""
    sides = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0)
    shared = sides.prod(1)
    union = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - shared
    return shared * ONE > limit * union
