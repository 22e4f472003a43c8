"""Stimuli in text files (.csv, .dat, .txt), as N2D2's CsvDataFile reads them: a line of numbers for each row."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from n2d2py.data.text import read_lines
from n2d2py.errors import N2D2Error

TABLES = (".csv", ".dat", ".txt")
_DELIMITERS = re.compile(r"[,; \t]+")


def read_table(path: Path, name: str) -> np.ndarray:
    """Return the numbers of a file as (H, W, 1) float32; commas, semicolons, blanks and tabs separate them, # begins a comment.

    Raises:
        N2D2Error: E401 unreadable, E402 no numbers, or rows of different lengths.
    """
    rows = []
    for number, line in read_lines(path, comment="#"):
        try:
            rows.append([float(word) for word in _DELIMITERS.split(line) if word])
        except ValueError:
            raise _damaged(name, f"line {number} does not hold numbers") from None
        if len(rows[-1]) != len(rows[0]):
            raise _damaged(name, f"line {number} has {len(rows[-1])} numbers, the first one {len(rows[0])}")
    found = np.array(rows, np.float32)
    if not found.size or not np.isfinite(found).all():
        raise _damaged(name, "it holds no numbers" if not found.size else "it holds values that are not finite")
    return found[:, :, None]


def _damaged(name: str, what: str) -> N2D2Error:
    return N2D2Error("E402", f"{name}: {what}", remedy="store a line of numbers for each row, all of the same length")
