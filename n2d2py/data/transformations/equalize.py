"""EqualizeTransformation: histogram equalization, of the whole image or adaptive (CLAHE)."""

from __future__ import annotations

import numpy as np

from n2d2py.data.transformations.base import Inapplicable, Range, Transformation, require_bytes, transformation
from n2d2py.data.transformations.borders import add_border
from n2d2py.data.transformations.colorspaces import lab, lab_to_bgr
from n2d2py.ini import Kind, parameter


def equalize(plane: np.ndarray) -> np.ndarray:
    """Return bytes (H, W) with equalized histogram."""
    counts = np.bincount(plane.reshape(-1), minlength=256)
    first = int(np.argmax(counts > 0))
    rest = plane.size - counts[first]
    if not rest:
        return plane
    counts[: first + 1] = 0
    scale = np.float32(255) / np.float32(rest)
    table = np.rint(np.cumsum(counts).astype(np.float32) * scale)
    return np.clip(table, 0, 255).astype(np.uint8)[plane]


def clahe(plane: np.ndarray, clip: float, grid: int) -> np.ndarray:
    """Return bytes (H, W) after contrast-limited adaptive histogram equalization with grid x grid tiles.

    The counts of a tile's histogram are clipped at clip * pixels / 256, and the excess is spread over all levels. Between the
    centres of the tiles, their maps are interpolated.
    """
    height, width = plane.shape
    padded = plane
    if height % grid or width % grid:
        pads = (0, grid - height % grid, 0, grid - width % grid)
        padded = add_border(plane[:, :, None], pads, "MinusOneReflectBorder")[:, :, 0]
    tile_height, tile_width = padded.shape[0] // grid, padded.shape[1] // grid
    spans = [(slice(k * tile_height, (k + 1) * tile_height), slice(k * tile_width, (k + 1) * tile_width)) for k in range(grid)]
    tables = np.stack([_clipped_table(padded[rows, columns], clip) for rows, _ in spans for _, columns in spans])
    tables = tables.reshape(grid, grid, 256).astype(np.float32)
    top, bottom, down = _tile_weights(height, tile_height, grid)
    left, right, across = _tile_weights(width, tile_width, grid)
    top, bottom, down = top[:, None], bottom[:, None], down[:, None]
    upper = tables[top, left, plane] * (1 - across) + tables[top, right, plane] * across
    lower = tables[bottom, left, plane] * (1 - across) + tables[bottom, right, plane] * across
    return np.clip(np.rint(upper * (1 - down) + lower * down), 0, 255).astype(np.uint8)


def _clipped_table(tile: np.ndarray, clip: float) -> np.ndarray:
    counts = np.bincount(tile.reshape(-1), minlength=256)
    if clip > 0:
        limit = max(int(clip * tile.size / 256), 1)
        excess = int(np.maximum(counts - limit, 0).sum())
        counts = np.minimum(counts, limit) + excess // 256
        left = excess % 256
        if left:
            step = max(256 // left, 1)
            counts[: step * left : step] += 1
    scale = np.float32(255) / np.float32(tile.size)
    return np.clip(np.rint(np.cumsum(counts).astype(np.float32) * scale), 0, 255)


def _tile_weights(size: int, tile: int, grid: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each pixel of an axis, the tiles before and after it, and the weight of the second."""
    position = np.arange(size, dtype=np.float32) * (np.float32(1) / np.float32(tile)) - np.float32(0.5)
    first = np.floor(position).astype(np.int64)
    return (np.maximum(first, 0), np.minimum(first + 1, grid - 1), position - first.astype(np.float32))


@transformation("Equalize", doc="Equalize the histogram of 8-bit images.")
class Equalize(Transformation):
    """Histogram equalization of a gray image, or of the lightness (CIELab) of a colour image."""

    method: str = parameter(
        "Method", Kind.ENUM, "Standard", "Standard: the whole image. CLAHE: adaptively.", choices=("Standard", "CLAHE")
    )
    clip: float = parameter("CLAHE_ClipLimit", Kind.FLOAT, 40.0, "Contrast limit of CLAHE.", minimum=0)
    grid: int = parameter("CLAHE_GridSize", Kind.UINT, 8, "Tiles per side of CLAHE.", minimum=1, maximum=1024)

    def apply(self, image: np.ndarray) -> np.ndarray:
        require_bytes(image, 1, 3, 4)
        if image.shape[2] == 1:
            return self._plane(image[:, :, 0])[:, :, None]
        converted = lab(image)
        converted[:, :, 0] = self._plane(converted[:, :, 0])
        return lab_to_bgr(converted)

    def _plane(self, plane: np.ndarray) -> np.ndarray:
        if self.method == "Standard":
            return equalize(plane)
        if min(plane.shape) < self.grid:
            what = f"{self.grid} tiles do not fit {plane.shape[1]}x{plane.shape[0]}"
            raise Inapplicable(what, "give a smaller CLAHE_GridSize")
        return clahe(plane, self.clip, self.grid)

    def map_range(self, bounds: Range) -> Range:
        return 0.0, 255.0
