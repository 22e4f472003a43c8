"""Heat maps to points, boxes and maps of classes, in integers: the definition that `kernels/n2d2/heat_maps.hpp` computes too.

Stored values become fixed point once (`arithmetic/fixed_scale.py`). A heat map has columns x rows of cells over an image of
width x height pixels. Results are in 1/16 pixel:

    x = floor((16 * width * cells + columns / 2) / columns)      for a position in cells; the same of y

- Key point: the largest value of its map, of equal ones the first. On each axis where it has two neighbors l and r, it moves by
  a
  quarter of a cell to the larger one (Xiao et al. 2018, arXiv:1804.06208), or to the top of the parabola, (r - l) / (4 v - 2 l
  - 2 r).
- Box (Zhou et al. 2019, arXiv:1904.07850, "Objects as Points"): a cell whose score is the largest of its 3x3 neighbors and
  above the threshold; of equal neighbors the first one. It has a class, an offset in its cell and a size in cells.
"""

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic.detections import REACH, STEP, SUBPIXELS
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, FixedScale, logistic

LIMIT = 2**30
"""Bound of the values of heat maps."""

FRACTION = 256
"""Steps of a key point in a cell."""


@dataclass(frozen=True)
class HeatMaps:
    """`count` heat maps of columns x rows cells over an image of width x height pixels.

    `score`: conversion of the values to 1/65536, or of logits to 1/2048. `logits`: values go through the logistic function.
    """

    count: int
    columns: int
    rows: int
    width: int
    height: int
    score: FixedScale
    logits: bool = False

    def values(self, stored: np.ndarray) -> np.ndarray:
        """Return fixed point (maps, rows, columns) of stored values."""
        return self.score.of_stored(stored, LIMIT)

    def scores(self, values: np.ndarray) -> np.ndarray:
        """Return the scores in 1/65536 of values."""
        if self.logits:
            return logistic(np.clip(values, -16 * LOGIT, 16 * LOGIT))
        return np.clip(values, 0, ONE)

    def pixels(self, cells: np.ndarray, steps: int) -> np.ndarray:
        """Return the positions (..., x y x y ...) in 1 / `steps` cell, in 1/16 pixel."""
        sizes = (self.width, self.height) * (cells.shape[-1] // 2)
        counts = np.array((self.columns, self.rows) * (cells.shape[-1] // 2)) * steps
        return (cells * SUBPIXELS * np.array(sizes) + counts // 2) // counts


@dataclass(frozen=True)
class PointDecoder:
    """The integers of key points.

    `maps`: a heat map for each point. `refine`: of the position in its cell: "none", "quarter" or "quadratic". `centered`:
    whether a position is that of the center of its cell, else of its corner.
    """

    maps: HeatMaps
    refine: str = "quarter"
    centered: bool = False

    def points(self, stored: np.ndarray) -> np.ndarray:
        """Return points of stored heat maps (maps, rows, columns), int64 (maps, 3): score in 1/65536, x, y in 1/16 pixel."""
        maps, values = self.maps, self.maps.values(stored)
        cells = values.reshape(maps.count, -1).argmax(1)
        result = np.zeros((maps.count, 3), np.int64)
        for point, (row, column) in enumerate(zip(*np.divmod(cells, maps.columns), strict=True)):
            lines = (values[point, row, :], column), (values[point, :, column], row)
            place = [FRACTION * index + self._moved(line, index) + self.centered * FRACTION // 2 for line, index in lines]
            result[point, 1:] = maps.pixels(np.array(place), FRACTION)
            result[point, 0] = maps.scores(values[point, row, column])
        return result

    def _moved(self, line: np.ndarray, index: int) -> int:
        """Return the way from the largest value of a line to its top, in 1/256 cell."""
        if self.refine == "none" or not 0 < index < len(line) - 1:
            return 0
        left, value, right = (int(one) for one in line[index - 1 : index + 2])
        if self.refine == "quarter":
            return FRACTION // 4 * ((right > left) - (right < left))
        bend = 2 * value - left - right
        return (FRACTION // 2 * (right - left) + (bend >> 1)) // bend if bend else 0


@dataclass(frozen=True)
class CenterDecoder:
    """The integers of at most `most` boxes around peaks of the maps, one for each class.

    `size`, `offset`: conversion of sizes and offsets in cells to 1/4096. `threshold`: scores above it count, in 1/65536.
    """

    maps: HeatMaps
    size: FixedScale
    offset: FixedScale | None
    threshold: int
    most: int

    def boxes(self, stored: np.ndarray, sizes: np.ndarray, offsets: np.ndarray | None) -> np.ndarray:
        """Return the boxes of stored heat maps, sizes and offsets (2, rows, columns; x first), as `BoxDecoder.detect`."""
        maps, values = self.maps, self.maps.values(stored)
        scores = maps.scores(values)
        place = np.stack(np.meshgrid(np.arange(maps.columns), np.arange(maps.rows)))
        centers = place * STEP
        if self.offset is not None and offsets is not None:
            centers = centers + self.offset.of_stored(offsets, 32 * STEP)
        half = self.size.of_stored(sizes, 1024 * STEP)  # in 1/8192 cell
        ends = np.moveaxis(np.concatenate([2 * centers - half, 2 * centers + half]), 0, -1)
        corners = np.clip(maps.pixels(ends, 2 * STEP), -REACH, REACH)
        cut = np.clip(corners, 0, SUBPIXELS * np.array([maps.width, maps.height] * 2))
        inside = (cut[..., :2] < cut[..., 2:]).all(-1)
        peaks = np.moveaxis(_peaks(values) & (scores > self.threshold) & inside, 0, -1)
        rows, columns, labels = np.nonzero(peaks)
        best = scores[labels, rows, columns]
        order = np.argsort(-best, kind="stable")[: self.most]
        return np.concatenate([labels[order, None], best[order, None], cut[rows, columns][order]], 1)


def _peaks(values: np.ndarray) -> np.ndarray:
    """True for each value (maps, rows, columns) that is the largest of its 3x3 neighbors, of equal ones the first."""
    rows, columns = values.shape[1:]
    padded = np.pad(values, ((0, 0), (1, 1), (1, 1)), constant_values=-LIMIT - 1)
    peaks = np.ones(values.shape, bool)
    for index in (one for one in range(9) if one != 4):
        other = padded[:, index // 3 : index // 3 + rows, index % 3 : index % 3 + columns]
        peaks &= values > other if index < 4 else values >= other
    return peaks


@dataclass(frozen=True)
class ClassMap:
    """The integers of the classes of positions.

    `classes`, `rows`, `columns`: shape of the scores. `score`: conversion of the scores to 1/65536. `threshold`: of one
    class, in 1/65536: positions above it are of the class.
    """

    classes: int
    rows: int
    columns: int
    score: FixedScale
    threshold: int

    def best(self, stored: np.ndarray) -> np.ndarray:
        """Return the class of each position, uint8 (rows, columns), of stored scores (classes, rows, columns).

        Of equal ones the first; of one class 1 where its score is above the threshold, else 0. NaN is the least.
        """
        if self.classes == 1:
            return (self.score.of_stored(stored[0], LIMIT) > self.threshold).astype(np.uint8)
        if stored.dtype.kind != "f":
            return stored.argmax(0).astype(np.uint8)
        known = ~np.isnan(stored)
        values = np.where(known, stored, -np.inf)
        return np.where(np.isneginf(values.max(0)), known.argmax(0), values.argmax(0)).astype(np.uint8)
