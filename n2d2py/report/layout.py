"""Layered layout of a directed acyclic graph: ranks downwards, folded into columns.

The usual steps (Sugiyama, Tagawa, Toda 1981): rank by longest path, a bend point in each rank that an
edge passes, order by barycentres, then positions by least squares under the order (pooling adjacent
violators). Long networks are folded where few edges cross.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

_BEND_WIDTH = 14.0
_SWEEPS = 10
_STIFF = 1e4
"""Weight of a box against that of a bend point in keeping its place."""


@dataclass
class Item:
    """A box, or a bend point of an edge (`key` None). (x, y) is the centre; column counts from 0."""

    key: int | None
    rank: int
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    column: int = 0
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)


@dataclass
class Layout:
    """Items by number (boxes first, in the order given), and each edge as the items that it passes."""

    items: list[Item]
    edges: list[list[int]]
    width: float
    height: float


_GAP, _MARGIN = (26.0, 22.0), 30.0
"""Pixels between boxes, across and down, and around the drawing."""
_COLUMN_RANKS = 26
"""Ranks of a column: 1.2 times as many are folded into several columns."""


def lay_out(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Layout:
    """Place boxes of `sizes` (width, height); edges (from, to) go to a later box."""
    items = _ranked(sizes, edges)
    routes = _bent(items, edges)
    rows: list[list[int]] = [[] for _ in range(max((item.rank for item in items), default=-1) + 1)]
    for index, item in enumerate(items):
        rows[item.rank].append(index)
    _order(items, rows)
    _position(items, rows)
    width, height = _fold(items, rows, routes)
    return Layout(items, routes, width, height)


def _ranked(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> list[Item]:
    ranks = [0] * len(sizes)
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        ranks[target] = max(ranks[target], ranks[source] + 1)
    return [Item(key, rank, *size) for key, (rank, size) in enumerate(zip(ranks, sizes, strict=True))]


def _bent(items: list[Item], edges: list[tuple[int, int]]) -> list[list[int]]:
    """Add the bend points; return the route of each edge."""
    routes = []
    for source, target in edges:
        route = [source]
        for rank in range(items[source].rank + 1, items[target].rank):
            items.append(Item(None, rank, _BEND_WIDTH, 0.0))
            route.append(len(items) - 1)
        route.append(target)
        for upper, lower in pairwise(route):
            items[upper].below.append(lower)
            items[lower].above.append(upper)
        routes.append(route)
    return routes


def _order(items: list[Item], rows: list[list[int]]) -> None:
    """Sort each row by the mean place of the neighbours, downwards and upwards in turn; ties keep their order."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        place = {index: k for row in rows for k, index in enumerate(row)}
        for row in rows if down else rows[::-1]:
            centre = {}
            for index in row:
                near = items[index].above if down else items[index].below
                centre[index] = sum(place[n] for n in near) / len(near) if near else place[index]
            row.sort(key=lambda index: centre[index])
            place.update({index: k for k, index in enumerate(row)})


def _wish(items: list[Item], index: int, down: bool) -> float:
    """Where an item would like to be: at the mean of its neighbours, boxes listening to boxes first."""
    item = items[index]
    near = (item.above or item.below) if down else (item.below or item.above)
    boxes = [n for n in near if items[n].key is not None]
    chosen = boxes if item.key is not None and boxes else near
    return sum(items[n].x for n in chosen) / len(chosen) if chosen else item.x


def _position(items: list[Item], rows: list[list[int]]) -> None:
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else rows[::-1]:
            wishes = [_wish(items, index, down) for index in row]
            half = [items[index].width / 2 for index in row]
            offsets = np.concatenate([[0.0], np.cumsum([a + b + _GAP[0] for a, b in pairwise(half)])])
            weights = [_STIFF if items[index].key is not None else 1.0 for index in row]
            for index, x in zip(row, _monotone(np.array(wishes) - offsets, weights) + offsets, strict=True):
                items[index].x = float(x)


def _monotone(wishes: np.ndarray, weights: list[float]) -> np.ndarray:
    """Return the non-decreasing sequence with the least weighted squared distance to `wishes`."""
    blocks: list[tuple[float, float, int]] = []
    for wish, weight in zip(wishes, weights, strict=True):
        value, total, count = float(wish), weight, 1
        while blocks and blocks[-1][0] > value:
            before, mass, members = blocks.pop()
            value = (before * mass + value * total) / (mass + total)
            total, count = total + mass, count + members
        blocks.append((value, total, count))
    return np.concatenate([np.full(count, value) for value, _, count in blocks])


def _cuts(items: list[Item], routes: list[list[int]], ranks: int) -> list[int]:
    """First ranks of the columns: near equal parts, where the fewest sources reach across."""
    if ranks <= 1.2 * _COLUMN_RANKS:
        return [0]
    sources: list[set[int]] = [set() for _ in range(ranks)]
    for route in routes:
        for lower in route[1:]:
            sources[items[lower].rank].add(route[0])
    columns = -(-ranks // _COLUMN_RANKS)
    starts = [0]
    for column in range(1, columns):
        ideal = ranks * column / columns
        near = [r for r in range(ranks) if abs(r - ideal) <= _COLUMN_RANKS / 4 and r > starts[-1]]
        starts.append(min(near, key=lambda r: (len(sources[r]), abs(r - ideal))))
    return starts


def _fold(items: list[Item], rows: list[list[int]], routes: list[list[int]]) -> tuple[float, float]:
    """Set columns and y, move each column's x to its place; return (width, height)."""
    starts = _cuts(items, routes, len(rows))
    left, tallest = _MARGIN, 0.0
    for column, start in enumerate(starts):
        stop = starts[column + 1] if column + 1 < len(starts) else len(rows)
        members = [index for row in rows[start:stop] for index in row]
        if not members:
            continue
        low = min(items[index].x - items[index].width / 2 for index in members)
        high = max(items[index].x + items[index].width / 2 for index in members)
        y = _MARGIN
        for row in rows[start:stop]:
            height = max(items[index].height for index in row)
            for index in row:
                items[index].y = y + height / 2
                items[index].height = height if items[index].key is None else items[index].height
            y += height + _GAP[1]
        for index in members:
            items[index].x += left - low
            items[index].column = column
        tallest = max(tallest, y - _GAP[1])
        left += high - low + 2 * _MARGIN
    return left - _MARGIN, tallest + _MARGIN
