"""Lines of data in entries of the convolution buffer.

Feature data: entries hold as many atoms of one pixel as fit; the last atoms of two or four neighbouring pixels share an
entry where they fit. Images: the padded line as bytes.
"""

from __future__ import annotations

import numpy as np

from n2d2py_nvdla.config import HardwareConfig


def _together(config: HardwareConfig, atoms: int) -> tuple[int, int, int, int]:
    """(atoms of an entry, full entries of a pixel, atoms that remain, pixels that share an entry for them)."""
    per_entry = config.width // config.atom
    full, rest = divmod(atoms, per_entry)
    return per_entry, full, rest, (per_entry // rest if rest and 2 * rest <= per_entry else 1)


def feature_entries(config: HardwareConfig, x: np.ndarray) -> np.ndarray:
    """(C, H, W) with whole atoms as (H, entries, width) bytes."""
    c, h, w = x.shape
    lanes = config.atom // x.dtype.itemsize
    atoms = np.ascontiguousarray(x.reshape(-1, lanes, h, w).transpose(2, 0, 3, 1)).view(np.uint8)  # (H, A, W, bytes)
    per_entry, full, rest, pixels = _together(config, c // lanes)
    parts = []
    if full:
        whole = atoms[:, : full * per_entry].reshape(h, full, per_entry, w, config.atom)
        parts.append(whole.transpose(0, 1, 3, 2, 4).reshape(h, full * w, config.width))
    if rest:
        shared = -(-w // pixels)
        last = np.zeros((h, shared * pixels, config.width // pixels), np.uint8)
        last[:, :w, : rest * config.atom] = atoms[:, full * per_entry :].transpose(0, 2, 1, 3).reshape(h, w, -1)
        parts.append(last.reshape(h, shared, config.width))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def feature_lines(config: HardwareConfig, entries: np.ndarray, atoms: int, w: int, dtype: np.dtype) -> np.ndarray:
    """Return the inverse of `feature_entries` for lines of `w` pixels of so many atoms: (C, H, W)."""
    h = len(entries)
    per_entry, full, rest, pixels = _together(config, atoms)
    found = np.zeros((h, atoms, w, config.atom), np.uint8)
    if full:
        whole = entries[:, : full * w].reshape(h, full, w, per_entry, config.atom)
        found[:, : full * per_entry] = whole.transpose(0, 1, 3, 2, 4).reshape(h, full * per_entry, w, config.atom)
    if rest:
        last = entries[:, full * w :].reshape(h, -1, config.width // pixels)[:, :w, : rest * config.atom]
        found[:, full * per_entry :] = last.reshape(h, w, rest, config.atom).transpose(0, 2, 1, 3)
    values = found.view(dtype)  # (H, A, W, lanes)
    return values.transpose(1, 3, 0, 2).reshape(-1, h, w)


def image_entries(config: HardwareConfig, x: np.ndarray, left: int, right: int, pad: int | np.float16) -> np.ndarray:
    """(C, H, W) with padding on both sides as (H, entries, width) bytes."""
    c, h, w = x.shape
    line = np.full((h, left + w + right, c), pad, x.dtype)
    line[:, left : left + w] = x.transpose(1, 2, 0)
    data = line.reshape(h, -1).view(np.uint8)
    count = -(-data.shape[1] // config.width)
    found = np.zeros((h, count * config.width), np.uint8)
    found[:, : data.shape[1]] = data
    return found.reshape(h, count, config.width)


def image_lines(entries: np.ndarray, channels: int, left: int, w: int, dtype: np.dtype) -> np.ndarray:
    """Return the inverse of `image_entries`: (C, H, W) without the padding."""
    h = len(entries)
    values = entries.reshape(h, -1).view(dtype)[:, left * channels : (left + w) * channels]
    return values.reshape(h, w, channels).transpose(2, 0, 1)
