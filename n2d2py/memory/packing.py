"""Buffers as blocks to pack: sizes, lifetimes, and the pairs that may overlap.

Addresses, sizes and distances are multiples of the alignment. First fit places the blocks in a given order, each at the lowest
address that its placed neighbours allow.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import lcm
from random import Random
from typing import Any, NamedTuple

from n2d2py.arithmetic.exact import round_up
from n2d2py.memory.access import LineTable, Overlay
from n2d2py.memory.buffers import Buffer, Buffers
from n2d2py.memory.overlap import SafeDistances, safe_distances
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.settings import Settings

_TABLE = 1000


def address_step(problem: MemoryProblem, settings: Settings) -> int:
    """Return the unit of all addresses and sizes."""
    return lcm(settings.buffer_alignment, max(t.element_bytes for t in problem.tensors.values()))


@dataclass
class Block:
    """`size` bytes live at the clocks birth..death, both included; `scratch` names the operator of a workspace."""

    size: int
    birth: int
    death: int
    buffer: Buffer | None = None
    scratch: str | None = None


@dataclass(frozen=True)
class Pair:
    """The output block of operator `op` may overlap the input block `source`, whose last consumer it is. `exact`: at the same
    address every element is stored where it was read, so rows need no order."""

    op: int
    source: int
    output: int
    safe_distances: SafeDistances
    exact: bool = False


Range = tuple[int, int]


class ForbiddenRange(NamedTuple):
    """Address range that block `block` forbids to a neighbour, relative to its own address. `op`: the operator between the two,
    -1 without one, with the bounds for forward (`ahead`) and `backward` loops. `exact`: the pair may share one address;
    `apart`: the range for disjoint blocks."""

    block: int
    op: int
    exact: bool
    apart: Range
    ahead: Range
    backward: Range


class Move(NamedTuple):
    """A change of an order and directions. The first `kept` blocks keep their place, and so does every block except those in
    `touched` and the neighbours of moved blocks."""

    order: list[int]
    backwards: list[bool]
    kept: int
    touched: set[int]


@dataclass(frozen=True)
class Placement:
    """The address of every block, the direction of every operator (True: backwards), and the arena."""

    offsets: tuple[int, ...]
    backwards: tuple[bool, ...]
    bytes: int


Start = tuple[list[int], list[bool], Placement]
"""The order of the blocks, the directions of the operators, and the placement that they lead to."""


class Packing:
    """The blocks of a problem with a given set of concatenations in place.

    Attributes:
        step: unit of all addresses and sizes.
        ops: the operators with code.
        neighbours[i]: block j -> the pair of the two, None if they must be disjoint.
        forbidden[i]: the ranges that they forbid to block i.
        rings: tensor -> the block that holds some of its rows, and their number; whole tensors are not here.
        bound: lower bound of any placement.
    """

    def __init__(self, buffers: Buffers):
        self.buffers, self.step = buffers, address_step(buffers.problem, buffers.settings)
        self.ops = [op for op in buffers.order() if op.name not in buffers.views]
        self.blocks: list[Block] = []
        self.pairs: list[Pair] = []
        self.rings: dict[str, tuple[int, int]] = {}
        self._written = {op.output: buffers.clock[op.name] for op in self.ops}
        self._collect()
        self.neighbours = self._make_neighbours()
        self._pairs_of: dict[int, list[Pair]] = {}
        for pair in self.pairs:
            self._pairs_of.setdefault(pair.op, []).append(pair)
        self.forbidden = [
            [self._forbidden_range(i, j, pair) for j, pair in near.items()] for i, near in enumerate(self.neighbours)
        ]
        borders = [(each.end, following.start) for each, following in pairwise(buffers.settings.tensor_memories)]
        self._borders = [[(end - block.size, start) for end, start in borders] for block in self.blocks]
        self._live = self._make_live()
        self.bound = self._bound()

    def _collect(self) -> None:
        """Create blocks and pairs."""
        buffers = self.buffers
        self.blocks = [
            Block(self._up(buffers.form(b).bytes), b.birth, b.death, b) for b in buffers.distinct() if not b.external
        ]
        self.pairs = self._make_pairs() if buffers.settings.optimize_buffer else []
        for op, clock in ((op, buffers.clock[op.name]) for op in self.ops if op.scratch_bytes):
            self.blocks.append(Block(self._up(op.scratch_bytes), clock, clock, scratch=op.name))

    def _up(self, size: int) -> int:
        return round_up(size, self.step)

    def _make_pairs(self) -> list[Pair]:
        index = {block.buffer: i for i, block in enumerate(self.blocks)}
        buffers, tensors = self.buffers, self.buffers.problem.tensors
        pairs = []
        for number, op in enumerate(self.ops):
            output = buffers.of[op.output]
            if output.birth != buffers.clock[op.name] or not output.produced or output.external:
                continue
            for name in dict.fromkeys(op.operands):
                source = buffers.of[name]
                if not buffers.dies_at(name, op) or source is output:
                    continue
                place, to = buffers.offset(name), buffers.offset(op.output)
                form = buffers.geometry(name)
                distances = safe_distances(op, tensors[name], form, place, tensors[op.output], buffers.form(output), to)
                if distances is not None:
                    i, j = index[source], index[output]
                    pairs.append(self._pair(number, i, j, distances, self._same_place(op, name)))
        return pairs

    def _same_place(self, op: OpSpec, name: str) -> bool:
        """True if, at the same address, each output element lies where its operand `name` was."""
        buffers, tensors = self.buffers, self.buffers.problem.tensors
        source, output = tensors[name], tensors[op.output]
        if op.access.over(source, output) is not Overlay.POINTWISE or source.element_bytes != output.element_bytes:
            return False
        forms = buffers.geometry(name), buffers.geometry(op.output)
        return forms[0].stride == forms[1].stride and buffers.offset(name) == buffers.offset(op.output)

    def cost(self, number: int) -> int:
        """Return the cost of storing the rows of an operator in order: its work, and far more for one with a table, which
        readers of the map must then support."""
        op = self.ops[number]
        return op.work(self.buffers.problem.tensors) * (_TABLE if isinstance(op.access, LineTable) else 1)

    def _pair(self, number: int, source: int, output: int, distances: SafeDistances, exact: bool = False) -> Pair:
        """Return the pair of two blocks, with distances rounded to the safe side."""
        size, room = self.blocks[source].size, self.blocks[output].size
        ahead = max(distances.ahead // self.step * self.step, -room)
        backward = min(self._up(distances.backward), size)
        return Pair(number, source, output, SafeDistances(ahead, backward, size, room), exact)

    def _make_neighbours(self) -> list[dict[int, Pair | None]]:
        neighbours: list[dict[int, Pair | None]] = [{} for _ in self.blocks]
        live: list[int] = []
        for i in sorted(range(len(self.blocks)), key=lambda i: self.blocks[i].birth):
            live = [j for j in live if self.blocks[j].death >= self.blocks[i].birth]
            for j in live:
                neighbours[i][j] = neighbours[j][i] = None
            live.append(i)
        for pair in self.pairs:
            neighbours[pair.source][pair.output] = neighbours[pair.output][pair.source] = pair
        return neighbours

    def _forbidden_range(self, i: int, j: int, pair: Pair | None) -> ForbiddenRange:
        low, high = -self.blocks[i].size, self.blocks[j].size
        if pair is None:
            return ForbiddenRange(j, -1, False, (low, high), (low, high), (low, high))
        ahead, backward = pair.safe_distances.ahead, pair.safe_distances.backward
        ranges = (low, min(high, -ahead)), (max(low, -backward), high)
        if i == pair.output:
            ranges = (max(low, ahead), high), (low, min(high, backward))
        return ForbiddenRange(j, pair.op, pair.exact, (low, high), *ranges)

    def _make_live(self) -> list[int]:
        """Return the live bytes at each clock from -1 on."""
        end = max((block.death for block in self.blocks), default=-1)
        change = [0] * (end + 3)
        for block in self.blocks:
            change[block.birth + 1] += block.size
            change[block.death + 2] -= block.size
        return list(accumulate(change[:-1]))

    def live(self, clock: int) -> int:
        """Return the bytes of all blocks live at a clock."""
        return self._live[clock + 1] if clock + 1 < len(self._live) else 0

    def _bound(self) -> int:
        """Return the largest sum, over the operators, of live bytes minus the most that overlaps can save."""
        saved: dict[int, int] = {}
        for pairs in self._pairs_of.values():
            best = max(sum(p.safe_distances.gain(way) for p in pairs) for way in (False, True))
            written = {p.output: self.blocks[p.output] for p in pairs}
            saved[next(iter(written.values())).birth] = min(sum(block.size for block in written.values()), best)
        return max((size - saved.get(clock, 0) for clock, size in enumerate(self._live, -1)), default=0)

    def block_of(self) -> dict[str, int]:
        """Return the block of each tensor in the arena."""
        numbers = {block.buffer: number for number, block in enumerate(self.blocks) if block.buffer}
        whole = {name: numbers[buffer] for name, buffer in self.buffers.of.items() if buffer in numbers}
        return whole | {name: number for name, (number, _) in self.rings.items()}

    def best_directions(self) -> list[bool]:
        """Return the direction of each operator that saves most; True: backwards."""
        gains = [[0, 0] for _ in self.ops]
        for pair in self.pairs:
            for way in (False, True):
                gains[pair.op][way] += pair.safe_distances.gain(way)
        return [backward > ahead for ahead, backward in gains]

    def moved(self, order: list[int], backwards: list[bool], block: int, rng: Random, turning: float) -> Move:
        """Return a random move: with probability `turning`, an operator next to `block` changes direction; else the block moves
        in the order, mostly forward."""
        order, backwards = list(order), list(backwards)
        pairs = [pair for pair in self.neighbours[block].values() if pair is not None]
        if pairs and rng.random() < turning:
            at = rng.choice(pairs).op
            backwards[at] = not backwards[at]
            unchanged = min(max(order.index(p.source), order.index(p.output)) for p in self._pairs_of[at])
            return Move(order, backwards, unchanged, {i for p in self._pairs_of[at] for i in (p.source, p.output)})
        source = order.index(block)
        target = rng.randrange(source + 1) if rng.random() < 0.7 else rng.randrange(len(order))
        order.insert(target, order.pop(source))
        return Move(order, backwards, min(source, target), {block, *self.neighbours[block]})

    def starts(self, keys: Iterable[Callable[[int], Any]], directions: Sequence[list[bool]]) -> Iterator[Start]:
        """Yield the first fit of the blocks, sorted by each key of their indices, with each of the directions."""
        for key in keys:
            order = sorted(range(len(self.blocks)), key=key)
            yield from ((order, backwards, self.first_fit(order, backwards)) for backwards in directions)

    def first_fit(self, order: list[int], backwards: list[bool]) -> Placement:
        """Place the blocks in `order`, with the operators running in the given directions."""
        offsets, top = [-1] * len(self.blocks), 0
        for i in order:
            offsets[i] = self.lowest(i, offsets, backwards)
            top = max(top, offsets[i] + self.blocks[i].size)
        return Placement(tuple(offsets), tuple(backwards), top)

    def refit(self, move: Move, before: Placement, most: int) -> Placement | None:
        """Repeat `first_fit` from the placement before the move; None if the arena exceeds `most` bytes."""
        offsets, top, blocks = [-1] * len(self.blocks), 0, self.blocks
        old, order, touched = before.offsets, move.order, set(move.touched)
        for i in order[: move.kept]:
            offsets[i] = old[i]
            top = max(top, old[i] + blocks[i].size)
        for i in order[move.kept :]:
            offset = old[i]
            if i in touched:
                offset = self.lowest(i, offsets, move.backwards)
                if offset != old[i]:
                    touched.update(self.neighbours[i])
            offsets[i] = offset
            if offset + blocks[i].size > top:
                top = offset + blocks[i].size
                if top > most:
                    return None
        return Placement(tuple(offsets), tuple(move.backwards), top)

    def lowest(self, i: int, offsets: list[int], backwards: list[bool], free: Collection[int] | None = None) -> int:
        """Return the lowest address that the placed neighbours of block `i` allow (offset -1: not placed). `free`: the operators
        whose blocks may overlap, None for all; those of others may only share an exact place."""
        forbidden, exact = list(self._borders[i]), []
        for j, op, is_exact, apart, ahead, backward in self.forbidden[i]:
            at = offsets[j]
            if at < 0:
                continue
            low, high = backward if op >= 0 and backwards[op] else ahead
            if free is not None and op not in free:
                low, high = apart
                if is_exact:
                    exact.append((at, len(forbidden)))
            if low < high:
                forbidden.append((at + low, at + high))
        at = 0
        for low, high in sorted(forbidden):
            if low >= at:
                break
            at = max(at, high)
        for place, own in exact:
            if place < at and all(not low < place < high for n, (low, high) in enumerate(forbidden) if n != own):
                at = place
        return at

    def plan(self, strategy: str, placement: Placement) -> MemoryPlan:
        """Return the plan of a placement; operators run backwards only if needed."""
        buffers = self.buffers
        pairs = list(zip(self.blocks, placement.offsets, strict=True))
        distances = [(pair, placement.offsets[pair.output] - placement.offsets[pair.source]) for pair in self.pairs]
        backwards = {pair.op for pair, by in distances if pair.safe_distances.ahead < by < pair.safe_distances.source}
        scratch = {block.scratch: Scratch(offset, block.size) for block, offset in pairs if block.scratch}
        tops = [offset + (buffers.form(block.buffer).bytes if block.buffer else block.size) for block, offset in pairs]
        schedule = self._schedule()
        planes = self._planes(placement.offsets, max([len(schedule)] + [step.clock + 1 for step in schedule]))
        options = {**buffers.settings.by_export_name(), **self._options()}
        ops = self._op_plans(backwards, scratch)
        return MemoryPlan(strategy, max(tops, default=0), planes, schedule, ops, options, self.bound)

    def _options(self) -> dict[str, int | str]:
        return {"Clock": "op"}

    def _schedule(self) -> tuple[ScheduleStep, ...]:
        return tuple(ScheduleStep(op.name, self.buffers.clock[op.name]) for op in self.buffers.order())

    def _op_plans(self, backwards: set[int], scratch: dict[str, Scratch]) -> dict[str, OpPlan]:
        views, backward_ops = self.buffers.views, {self.ops[number].name for number in backwards}
        return {
            op.name: OpPlan(op.name in views, op.name in backward_ops, scratch=scratch.get(op.name), aliases=op.aliased)
            for op in self.buffers.order()
        }

    def _life(self, name: str, end: int) -> tuple[int, int]:
        """Return the clocks of the first write and last read of a tensor; network outputs are read at `end`."""
        buffer = self.buffers.of[name]
        return self._written.get(name, buffer.birth), end if buffer.is_output else buffer.death

    def _planes(self, offsets: Sequence[int], end: int) -> dict[str, Plane]:
        buffers, planes = self.buffers, {}
        offset_of = {block.buffer: offset for block, offset in zip(self.blocks, offsets, strict=True) if block.buffer}
        for name, buffer in buffers.of.items():
            form, tensor = buffers.geometry(name), buffers.problem.tensors[name]
            ring, life = self.rings.get(name), self._life(name, end)
            if buffer.external:
                planes[name] = Plane.of(replace(form, stride=tensor.pixel_bytes), tensor, 0, life, external=True)
            elif ring:
                planes[name] = Plane.of(form, tensor, offsets[ring[0]], life, ring_rows=ring[1])
            else:
                planes[name] = Plane.of(form, tensor, offset_of[buffer] + buffers.offset(name), life)
        return planes
