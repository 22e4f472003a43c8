"""Multiples of a size, such as an alignment."""

from __future__ import annotations


def round_up(size: int, multiple: int) -> int:
    """Return the smallest multiple that holds `size`."""
    return -(-size // multiple) * multiple
