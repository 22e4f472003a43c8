"""Relaxed placements: in an arena that is settled, layers overlap their inputs only where it takes that to fit.

A layer that overlaps stores its lines in order, which keeps threads apart and a kernel from reading its input in place. The
arena is decided by a few layers; the others have room. What overlaps costs the work of its layer (`work`); lines that are stored
exactly where they were read, and segments that run line by line anyway, cost nothing.

First fit again, each block at the lowest address in the arena where nothing new overlaps, else where the least work does;
then seeded random moves, until only layers overlap whose live bytes exceed the arena.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from n2d2py.memory.packing import Packing, Pair, Placement

_WORK = 20_000
"""Random moves times blocks after which nothing better is expected: about a third of a second of one core."""


def overlap_cost(packing: Packing, placement: Placement) -> int:
    """The work of the layers whose lines must be stored in order."""
    return sum(packing.cost(op) for op in _ordered(packing, placement.offsets))


def relax(packing: Packing, placement: Placement) -> Placement:
    """A placement in the same arena, or a smaller one, with the least overlapping work found; `placement` where there is none better."""
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
        if cost <= fitter.least:
            break
    return best


def _ordered(packing: Packing, offsets: Iterable[int]) -> set[int]:
    """The operators with an output that shares bytes with an input, but for exact places."""
    at = list(offsets)
    return {
        pair.op
        for pair in packing.pairs
        for distance in [at[pair.output] - at[pair.source]]
        if -pair.reach.output < distance < pair.reach.source and not (pair.exact and distance == 0)
    }


class _Fitter:
    """First fit of the blocks of a packing under the arena of a placement."""

    def __init__(self, packing: Packing, placement: Placement):
        self.packing, self.found, self.arena = packing, placement, placement.bytes
        self.sizes = [block.size for block in packing.blocks]
        self.costs = {pair.op: packing.cost(pair.op) for pair in packing.pairs}
        self.near = [[(j, self.sizes[j], pair) for j, pair in near.items()] for near in packing.neighbours]
        births = {pair.op: packing.blocks[pair.output].birth for pair in packing.pairs}
        exact = {pair.op for pair in packing.pairs if pair.exact}
        self.least = sum(self.costs[op] for op, clock in births.items() if op not in exact and packing.live(clock) > self.arena)

    def orders(self) -> list[list[int]]:
        """Of the blocks, to start from: by the most bytes live with them, by size, by address in the given placement."""
        blocks = self.packing.blocks
        live = [self.packing.live(t) for t in range(-1, max(block.death for block in blocks) + 1)]
        pressure = [max(live[b.birth + 1 : b.death + 2]) for b in blocks]
        every = range(len(blocks))
        return [
            sorted(every, key=lambda i: (-pressure[i], -self.sizes[i])),
            sorted(every, key=lambda i: -self.sizes[i]),
            sorted(every, key=lambda i: (self.found.offsets[i], i)),
            sorted(every, key=lambda i: (blocks[i].birth, -self.sizes[i])),
        ]

    def directions(self) -> list[list[bool]]:
        """Of the operators: the given ones, and by what they save."""
        gains = [[0, 0] for _ in self.packing.ops]
        for pair in self.packing.pairs:
            for way in (False, True):
                gains[pair.op][way] += pair.reach.gain(way)
        return [list(self.found.backwards), [back > ahead for ahead, back in gains]]

    def fit(self, order: list[int], backwards: list[bool]) -> tuple[list[int], set[int], int]:
        """(address of each block, operators that overlap, highest byte)."""
        offsets, overlapping, top = [-1] * len(order), set(), 0
        for i in order:
            offsets[i] = self._place(i, offsets, overlapping, backwards)
            top = max(top, offsets[i] + self.sizes[i])
        return offsets, overlapping, top

    def _place(self, i: int, offsets: list[int], overlapping: set[int], backwards: list[bool]) -> int:
        """The address of a block; adds the operators that it makes overlap."""
        placed = [(offsets[j], size, pair) for j, size, pair in self.near[i] if offsets[j] >= 0]
        held = {pair.op for _, _, pair in placed if pair is not None}
        free = {op for op in held if op in overlapping or self.costs[op] == 0}
        room = self.arena - self.sizes[i]
        at = self._lowest(i, placed, free, backwards)
        if at <= room:
            return at
        paid = sorted(held - free, key=lambda op: (self.costs[op], op))
        for count in range(1, len(paid) + 1):
            for more in combinations(paid, count):
                at = self._lowest(i, placed, free.union(more), backwards)
                if at <= room or count == len(paid):
                    overlapping.update(more)
                    return at
        return at

    def _lowest(self, i: int, placed: list[tuple[int, int, Pair | None]], free: set[int], backwards: list[bool]) -> int:
        """The lowest address of a block where only the operators in `free` overlap, or exact places do."""
        size, closed, exact = self.sizes[i], [], []
        for at, other, pair in placed:
            low, high = at - size, at + other
            if pair is not None:
                if pair.op in free:
                    low, high = _open(i, at, low, high, pair, backwards[pair.op])
                elif pair.exact:
                    exact.append((at, len(closed)))
            if low < high:
                closed.append((low, high))
        at = 0
        for low, high in sorted(closed):
            if low >= at:
                break
            at = max(at, high)
        for place, own in exact:
            if place < at and all(not low < place < high for n, (low, high) in enumerate(closed) if n != own):
                at = place
        return at


def _open(i: int, at: int, low: int, high: int, pair: Pair, backwards: bool) -> tuple[int, int]:
    """The addresses (low, high) that remain closed to block `i` when the pair may overlap."""
    if i == pair.output:
        return (low, min(high, at + pair.reach.behind)) if backwards else (max(low, at + pair.reach.ahead), high)
    return (max(low, at - pair.reach.behind), high) if backwards else (low, min(high, at - pair.reach.ahead))


@dataclass
class _State:
    """An order and directions, changed by random moves that make nothing worse."""

    fitter: _Fitter
    order: list[int]
    backwards: list[bool]

    def __post_init__(self) -> None:
        self._take(*self._fitted(self.order, self.backwards))

    def _fitted(self, order: list[int], backwards: list[bool]):
        fitter = self.fitter
        offsets, overlapping, top = fitter.fit(order, backwards)
        if any(fitter.costs[op] == 0 for op in fitter.costs):
            overlapping = _ordered(fitter.packing, offsets)
        return (max(0, top - fitter.arena), sum(fitter.costs[op] for op in overlapping)), offsets, overlapping

    def _take(self, score: tuple[int, int], offsets: list[int], overlapping: set[int]) -> None:
        self.score, self.offsets, self.overlapping = score, offsets, sorted(overlapping)

    def placement(self) -> Placement:
        """The state's placement."""
        top = max(at + size for at, size in zip(self.offsets, self.fitter.sizes, strict=True))
        return Placement(tuple(self.offsets), tuple(self.backwards), top)

    def move(self, rng: random.Random) -> None:
        """Places a block earlier that overlaps, or lies beside one that does, or turns its operator; keeps what is not worse."""
        order, backwards = self.fitter.packing.moved(self.order, self.backwards, self._critical(rng), rng, 0.3)
        found = self._fitted(order, backwards)
        if found[0] <= self.score:
            self.order, self.backwards = order, backwards
            self._take(*found)

    def _critical(self, rng: random.Random) -> int:
        packing, sizes = self.fitter.packing, self.fitter.sizes
        if self.score[0]:
            top = max(at + size for at, size in zip(self.offsets, sizes, strict=True))
            chosen = [i for i, at in enumerate(self.offsets) if at + sizes[i] == top]
        else:
            chosen = [
                block
                for pair in packing.pairs
                if pair.op in self.overlapping and self.fitter.costs[pair.op]
                for block in (pair.source, pair.output)
            ]
        if not chosen or rng.random() < 0.2:
            return rng.randrange(len(self.order))
        block = rng.choice(chosen)
        return rng.choice([block, *packing.neighbours[block]])
