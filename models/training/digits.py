"""The digits as the networks see them: IDX files, enlarged to 32x32, with random deformations.

The enlargement is that of RescaleTransformation in the INI files: bilinear, half-pixel centres, no
antialiasing, edge pixels repeated, rounded to bytes. From 8 to 32 pixels every weight is a multiple
of 1/8, so the arithmetic below is exact.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "data" / "digits"
SIZE = 32


def read_idx(path: Path) -> np.ndarray:
    """The unsigned byte array of an IDX file."""
    content = path.read_bytes()
    zero, kind, rank = struct.unpack(">HBB", content[:4])
    if zero != 0 or kind != 8:
        raise ValueError(f"{path} is not an IDX file of unsigned bytes")
    shape = struct.unpack(f">{rank}I", content[4 : 4 + 4 * rank])
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def bilinear_weights(size_in: int, size_out: int) -> np.ndarray:
    """W (size_out, size_in), rows summing to 1: out = W @ in along one axis."""
    centres = (np.arange(size_out) + 0.5) * size_in / size_out - 0.5
    low = np.floor(centres).astype(int)
    weights = np.zeros((size_out, size_in))
    for row, (left, fraction) in enumerate(zip(low, centres - low, strict=True)):
        weights[row, np.clip(left, 0, size_in - 1)] += 1 - fraction
        weights[row, np.clip(left + 1, 0, size_in - 1)] += fraction
    return weights


def enlarge(images: np.ndarray, size: int = SIZE) -> np.ndarray:
    """Bytes (N, h, w) resized to bytes (N, size, size), ties rounded up."""
    rows = bilinear_weights(images.shape[1], size)
    columns = bilinear_weights(images.shape[2], size)
    exact = np.einsum("yh,nhw,xw->nyx", rows, images.astype(np.float64), columns)
    return np.floor(exact + 0.5).astype(np.uint8)


def load(part: str) -> tuple[np.ndarray, np.ndarray]:
    """`part` is "train" or "t10k": images float32 (N, 1, 32, 32) in [0, 1], labels int64 (N)."""
    images = enlarge(read_idx(DATA / f"{part}-images-idx3-ubyte"))
    labels = read_idx(DATA / f"{part}-labels-idx1-ubyte")
    return images[:, None].astype(np.float32) / np.float32(255), labels.astype(np.int64)
