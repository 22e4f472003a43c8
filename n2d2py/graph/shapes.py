"""Shapes are (N, C, H, W), (N, C, L) or (N, C) tuples with batch 1; these accessors name the axes."""

from __future__ import annotations

from math import prod

Shape = tuple[int, ...]

MAX_ELEMENTS = 1 << 28
"""Elements that a parameter may have: 1 GiB of float32, far beyond what the targets hold."""

MAX_TENSOR = 1 << 26
"""Elements that a tensor of the network may have: 256 MiB of float32."""

MAX_STEP = 1 << 20
"""Elements of a window or a stride along one axis."""

MAX_PAD = 1 << 12
"""Elements of a pad along one axis: beyond it, results would be made of little else."""


def channels(shape: Shape) -> int:
    """Size of the channel axis; 1 for a rank-1 shape."""
    return shape[1] if len(shape) > 1 else 1


def height(shape: Shape) -> int:
    """Number of lines; 1 below rank 4."""
    return shape[2] if len(shape) >= 4 else 1


def width(shape: Shape) -> int:
    """Number of columns; the length of a rank-3 shape, 1 below rank 3."""
    return shape[-1] if len(shape) >= 3 else 1


def elements(shape: Shape) -> int:
    """Number of elements of one stimulus."""
    return prod(shape[1:])


def n2d2_dims(shape: Shape) -> list[int]:
    """The dimensions in N2D2's order X Y C (width, height, channels), batch left out."""
    return [width(shape), height(shape), channels(shape)]
