"""Relaxation of a placement: in the arena found, layers overlap their inputs only where needed.

A layer that overlaps must store its rows in order, which prevents threads and reading the input in place. Few layers determine
the arena; the others have room. An overlap costs the work of its layer (`work`). Rows stored exactly where they were read, and
segments that run row by row anyway, cost nothing.

First fit places each block at the lowest address without a new overlap, else where the least work overlaps. Seeded random moves
follow, until only layers whose live bytes exceed the arena overlap.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from n2d2py.memory.packing import ForbiddenRange, Packing, Placement

_WORK = 20_000
"""Random moves times blocks, about a third of a second on one core."""
_UNLIMITED = sys.maxsize


def overlap_cost(packing: Packing, placement: Placement) -> int:
    """Return the work of the layers whose rows must be stored in order."""
    return sum(packing.cost(op) for op in _ordered(packing, placement.offsets))


def relax(packing: Packing, placement: Placement) -> Placement:
    """Return a placement in the same or a smaller arena with the least overlapping work found; `placement` by default."""
    best, cost = placement, overlap_cost(packing, placement)
    fitter = _Fitter(packing, placement)
    if cost <= fitter.least:
        return best
    starts = sorted(
        (_State(fitter, order, ways) for order in fitter.orders() for ways in fitter.directions()),
        key=lambda state: state.score,
    )
    rng = random.Random(1)
    moves = min(200, _WORK // len(packing.blocks) + 20)
    for state in starts[:3]:
        last = moves
        while last and state.score > (0, fitter.least):
            before = state.score
            state.move(rng)
            last = last - 1 if state.score == before else moves
        if state.score < (0, cost):
            best, cost = state.placement(), state.score[1]
        if cost == fitter.least:
            break
    return best


def _ordered(packing: Packing, offsets: Iterable[int]) -> set[int]:
    """Return the operators whose output shares bytes with an input, except at exact places."""
    order = list(offsets)
    return {
        pair.op
        for pair in packing.pairs
        for distance in [order[pair.output] - order[pair.source]]
        if -pair.safe_distances.output < distance < pair.safe_distances.source and not (pair.exact and distance == 0)
    }


@dataclass(frozen=True)
class _Fit:
    """Addresses of all blocks, the overlapping operators, and `score`: bytes above the arena and overlapping work. `begins`:
    possibly overlapping operators, and the order index from which they do."""

    offsets: list[int]
    begins: dict[int, int]
    overlapping: set[int]
    score: tuple[int, int]


class _Fitter:
    """First fit of the blocks of a packing under the arena of a placement."""

    def __init__(self, packing: Packing, placement: Placement):
        self.packing, self.found, self.arena = packing, placement, placement.bytes
        self.sizes = [block.size for block in packing.blocks]
        self.costs = {pair.op: packing.cost(pair.op) for pair in packing.pairs}
        self.some_cost_nothing = any(cost == 0 for cost in self.costs.values())
        births = {pair.op: packing.blocks[pair.output].birth for pair in packing.pairs}
        exact = {pair.op for pair in packing.pairs if pair.exact}
        self.least = sum(self.costs[op] for op, clock in births.items() if op not in exact and packing.live(clock) > self.arena)

    def orders(self) -> list[list[int]]:
        """Return initial orders of the blocks: by most live bytes, by size, by address in the given placement."""
        blocks = self.packing.blocks
        live = [self.packing.live(t) for t in range(-1, max(block.death for block in blocks) + 1)]
        pressure = [max(live[b.birth + 1 : b.death + 2]) for b in blocks]
        indices = range(len(blocks))
        return [
            sorted(indices, key=lambda i: (-pressure[i], -self.sizes[i])),
            sorted(indices, key=lambda i: -self.sizes[i]),
            sorted(indices, key=lambda i: (self.found.offsets[i], i)),
            sorted(indices, key=lambda i: (blocks[i].birth, -self.sizes[i])),
        ]

    def directions(self) -> list[list[bool]]:
        """Return initial directions of the operators: the given ones, and those that save most."""
        return [list(self.found.backwards), self.packing.best_directions()]

    def fit(self, order: list[int], backwards: list[bool], before: _Fit | None = None, unchanged: int = 0) -> _Fit | None:
        """Place the blocks in `order`, the first `unchanged` as in `before`; None if the result is worse."""
        offsets, overlapping, top, cost = [-1] * len(order), {}, 0, 0
        most = (_UNLIMITED, 0) if before is None else before.score
        if before is not None:
            for i in order[:unchanged]:
                offsets[i] = before.offsets[i]
                top = max(top, offsets[i] + self.sizes[i])
            overlapping = {op: position for op, position in before.begins.items() if position < unchanged}
            cost = sum(self.costs[op] for op in overlapping)
        for position in range(unchanged, len(order)):
            i, known = order[position], len(overlapping)
            offsets[i] = self._place(i, position, offsets, overlapping, backwards)
            top = max(top, offsets[i] + self.sizes[i])
            if len(overlapping) > known:
                cost = sum(self.costs[op] for op in overlapping)
            if (max(0, top - self.arena), 0 if self.some_cost_nothing else cost) > most:
                return None
        ordered = set(overlapping)
        if self.some_cost_nothing:
            ordered = _ordered(self.packing, offsets)
            cost = sum(self.costs[op] for op in ordered)
        score = max(0, top - self.arena), cost
        return _Fit(offsets, overlapping, ordered, score) if score <= most else None

    def _place(self, i: int, position: int, offsets: list[int], overlapping: dict[int, int], backwards: list[bool]) -> int:
        """Return the address of block `i`, at index `position` of the order; add the operators that it makes overlap."""
        neighbours = [(offsets[near.block], near) for near in self.packing.forbidden[i] if offsets[near.block] >= 0]
        placed_ops = {near.op for _, near in neighbours if near.op >= 0}
        free = {op for op in placed_ops if op in overlapping or self.costs[op] == 0}
        room = self.arena - self.sizes[i]
        lowest = self._lowest(neighbours, free, backwards)
        if lowest <= room:
            return lowest
        paid = sorted(placed_ops - free, key=lambda op: (self.costs[op], op))
        for count in range(1, len(paid) + 1):
            for more in combinations(paid, count):
                lowest = self._lowest(neighbours, free.union(more), backwards)
                if lowest <= room or count == len(paid):
                    overlapping.update(dict.fromkeys(more, position))
                    return lowest
        return lowest

    @staticmethod
    def _lowest(neighbours: list[tuple[int, ForbiddenRange]], free: set[int], backwards: list[bool]) -> int:
        """Return the lowest address of a block at which only operators in `free`, or exact places, overlap."""
        closed, exact = [], []
        for at, (_, op, is_exact, distance, ahead, backward) in neighbours:
            low, high = distance
            if op in free:
                low, high = backward if backwards[op] else ahead
            elif is_exact:
                exact.append((at, len(closed)))
            if low < high:
                closed.append((at + low, at + high))
        at = 0
        for low, high in sorted(closed):
            if low >= at:
                break
            at = max(at, high)
        for place, own in exact:
            if place < at and all(not low < place < high for n, (low, high) in enumerate(closed) if n != own):
                at = place
        return at


@dataclass
class _State:
    """An order and directions, improved by random moves."""

    fitter: _Fitter
    order: list[int]
    backwards: list[bool]

    def __post_init__(self) -> None:
        fit = self.fitter.fit(self.order, self.backwards)
        assert fit is not None
        self.found = fit

    @property
    def score(self) -> tuple[int, int]:
        """Score of the placement; lower is better."""
        return self.found.score

    def placement(self) -> Placement:
        """Return the state's placement."""
        top = max(offset + size for offset, size in zip(self.found.offsets, self.fitter.sizes, strict=True))
        return Placement(tuple(self.found.offsets), tuple(self.backwards), top)

    def move(self, rng: random.Random) -> None:
        """Move an overlapping block or its neighbour earlier, or change a direction; keep the result unless it is worse."""
        move = self.fitter.packing.moved(self.order, self.backwards, self._critical(rng), rng, 0.3)
        fit = self.fitter.fit(move.order, move.backwards, self.found, move.kept)
        if fit is not None:
            self.order, self.backwards, self.found = move.order, move.backwards, fit

    def _critical(self, rng: random.Random) -> int:
        packing, sizes, fit = self.fitter.packing, self.fitter.sizes, self.found
        if self.score[0]:
            top = max(offset + size for offset, size in zip(fit.offsets, sizes, strict=True))
            chosen = [i for i, offset in enumerate(fit.offsets) if offset + sizes[i] == top]
        else:
            chosen = [
                block
                for pair in packing.pairs
                if pair.op in fit.overlapping and self.fitter.costs[pair.op]
                for block in (pair.source, pair.output)
            ]
        if not chosen or rng.random() < 0.2:
            return rng.randrange(len(self.order))
        block = rng.choice(chosen)
        return rng.choice([block, *packing.neighbours[block]])
