"""Where spaces go in the arena: N2D2's online first fit, and its first fit over sorted spaces.

All offsets are multiples of `unit`, the largest element size, so that every access is aligned.
"""

from __future__ import annotations

from collections.abc import Callable

from n2d2py.memory.manager import Space


def _largest_hole(space: Space) -> int:
    """Over the births in the space: the most bytes that the planes born together leave unused."""
    born: dict[int, int] = {}
    for plane in space.planes:
        born[plane.allocated] = born.get(plane.allocated, 0) + plane.form.bytes
    return max(max(0, space.size - used) for used in born.values())


ORDERS: dict[str, Callable[[Space], tuple[int, ...]] | None] = {
    "None": None,
    "OptimizeMaxLifetimeMinSizeFirst": lambda space: (-space.lifetime, space.size),
    "OptimizeMaxLifetimeMaxSizeFirst": lambda space: (-space.lifetime, -space.size),
    "OptimizeMaxHoleMaxLifetimeFirst": lambda space: (-_largest_hole(space), -space.lifetime),
}


def place_online(spaces: list[Space], unit: int = 1) -> None:
    """Places each space, in the order of allocation, in the lowest gap among the spaces live at
    that clock.
    """
    for index, space in enumerate(spaces):
        busy = [(other.offset, other.offset + other.size) for other in spaces[:index] if other.released >= space.allocated]
        space.offset = _lowest_gap(busy, space.size, unit)


def place_sorted(spaces: list[Space], order: Callable[[Space], tuple[int, ...]], unit: int = 1) -> None:
    """Places the spaces in `order` (stable), each in the lowest gap over its whole lifetime.

    A placed space is busy where it has live planes: the parts that its planes do not use are free.
    """
    placed: list[Space] = []
    for space in sorted(spaces, key=order):
        busy = [
            (other.offset + begin, other.offset + end)
            for other in placed
            if other.allocated <= space.released and space.allocated <= other.released
            for plane in other.planes
            if plane.allocated <= space.released and space.allocated <= plane.released
            for begin, end in plane.intervals
        ]
        space.offset = _lowest_gap(busy, space.size, unit)
        placed.append(space)


def _lowest_gap(busy: list[tuple[int, int]], size: int, unit: int) -> int:
    """The lowest multiple of `unit` from which `size` bytes are free."""
    at = 0
    for begin, end in sorted(busy):
        if begin >= at + size:
            break
        at = max(at, -(-end // unit) * unit)
    return at
