"""Relaxation of a placement: in the arena found, layers overlap their inputs only where needed.

A layer that overlaps must store its rows in order, which prevents threads and reading the input in place. Few layers determine
the arena; the others have room. An overlap costs the work of its layer (`work`). Rows stored exactly where they were read, and
segments that run row by row anyway, cost nothing.

First fit places each block at the lowest address without a new overlap, else where the least work overlaps. Seeded random moves
follow, until only layers whose live bytes exceed the arena overlap.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from n2d2py.memory.packing import Packing, Placement

_WORK = 20_000  # random moves times blocks, about a third of a second on one core


def overlap_cost(packing: Packing, placement: Placement) -> int:
    """Return the work of the layers whose rows must be stored in order."""
    return sum(packing.cost(op) for op in _ordered(packing, placement.offsets))


def relax(packing: Packing, placement: Placement) -> Placement:
    """Return a placement in the same or a smaller arena with the least overlapping work found; `placement` by default."""
    best, cost = placement, overlap_cost(packing, placement)
    fitter = _Fitter(packing, placement)
    if cost <= fitter.least:
        return best
    fits = [(order, ways, fitter.fit(order, ways)) for order in fitter.orders() for ways in fitter.directions()]
    rng = random.Random(1)
    moves = min(200, _WORK // len(packing.blocks) + 20)
    for order, ways, fit in sorted(fits, key=lambda start: start[2].score)[:3]:
        left = moves
        while left and fit.score > (0, fitter.least):
            move = packing.moved(order, ways, fitter.critical(fit, rng), rng, 0.3)
            before, fit = fit, fitter.fit(move.order, move.backwards, fit, move.kept)
            if fit is not before:
                order, ways = move.order, move.backwards
            left = left - 1 if fit.score == before.score else moves
        if fit.score < (0, cost):
            best, cost = Placement(tuple(fit.offsets), tuple(ways), fitter.top(fit)), fit.score[1]
        if cost == fitter.least:
            break
    return best


def _ordered(packing: Packing, offsets: Sequence[int]) -> set[int]:
    """Return the operators whose output shares bytes with an input, except at exact places."""
    distances = [(pair, offsets[pair.output] - offsets[pair.source]) for pair in packing.pairs]
    meeting = [(pair, by) for pair, by in distances if -pair.safe_distances.output < by < pair.safe_distances.source]
    return {pair.op for pair, by in meeting if not (pair.exact and by == 0)}


@dataclass(frozen=True)
class _Fit:
    """Addresses of all blocks, and `score`: bytes above the arena and overlapping work. `begins`: operators that may overlap, and
    the order index from which they do."""

    offsets: list[int]
    begins: dict[int, int]
    score: tuple[int, int]


_NOTHING = _Fit([], {}, (sys.maxsize, 0))


class _Fitter:
    def __init__(self, packing: Packing, placement: Placement):
        self.packing, self.found, self.arena = packing, placement, placement.bytes
        self.sizes = [block.size for block in packing.blocks]
        self.costs = {pair.op: packing.cost(pair.op) for pair in packing.pairs}
        births = {pair.op: packing.blocks[pair.output].birth for pair in packing.pairs}
        exact = {pair.op for pair in packing.pairs if pair.exact}
        self.least = sum(self.costs[op] for op, clock in births.items() if op not in exact and packing.live(clock) > self.arena)

    def orders(self) -> list[list[int]]:
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
        return [list(self.found.backwards), self.packing.best_directions()]

    def fit(self, order: list[int], backwards: list[bool], before: _Fit = _NOTHING, unchanged: int = 0) -> _Fit:
        """Place the blocks in `order`, the first `unchanged` as in `before`; `before` if the result is worse."""
        offsets, top = [-1] * len(order), 0
        for i in order[:unchanged]:
            offsets[i] = before.offsets[i]
            top = max(top, offsets[i] + self.sizes[i])
        overlapping = {op: position for op, position in before.begins.items() if position < unchanged}
        for position in range(unchanged, len(order)):
            i = order[position]
            offsets[i] = self._place(i, position, offsets, overlapping, backwards)
            top = max(top, offsets[i] + self.sizes[i])
            if top - self.arena > before.score[0]:
                return before
        score = max(0, top - self.arena), sum(self.costs[op] for op in _ordered(self.packing, offsets))
        return _Fit(offsets, overlapping, score) if score <= before.score else before

    def top(self, fit: _Fit) -> int:
        """Return the end of the highest block."""
        return max(offset + size for offset, size in zip(fit.offsets, self.sizes, strict=True))

    def critical(self, fit: _Fit, rng: random.Random) -> int:
        """Return a block to move: mostly one of an overlap, or one that ends at the top of a larger arena, or a neighbour."""
        if fit.score[0]:
            top = self.top(fit)
            chosen = [i for i, offset in enumerate(fit.offsets) if offset + self.sizes[i] == top]
        else:
            pairs = [pair for pair in self.packing.pairs if pair.op in fit.begins and self.costs[pair.op]]
            chosen = [block for pair in pairs for block in (pair.source, pair.output)]
        if not chosen or rng.random() < 0.2:
            return rng.randrange(len(self.sizes))
        block = rng.choice(chosen)
        return rng.choice([block, *self.packing.neighbours[block]])

    def _place(self, i: int, position: int, offsets: list[int], overlapping: dict[int, int], backwards: list[bool]) -> int:
        """Return the address of block `i`, at index `position` of the order; add the operators that it makes overlap."""
        placed_ops = {near.op for near in self.packing.forbidden[i] if near.op >= 0 and offsets[near.block] >= 0}
        free = {op for op in placed_ops if op in overlapping or self.costs[op] == 0}
        room = self.arena - self.sizes[i]
        lowest = self.packing.lowest(i, offsets, backwards, free)
        if lowest <= room:
            return lowest
        paid = sorted(placed_ops - free, key=lambda op: (self.costs[op], op))
        for count in range(1, len(paid) + 1):
            for more in combinations(paid, count):
                lowest = self.packing.lowest(i, offsets, backwards, free.union(more))
                if lowest <= room or count == len(paid):
                    overlapping.update(dict.fromkeys(more, position))
                    return lowest
        return lowest
