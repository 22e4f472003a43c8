"""Buffers as blocks to be packed: sizes, lifetimes, and which pairs may overlap by how much.

Addresses, sizes and distances are multiples of the alignment. First fit places the blocks in a
given order, each at the lowest address that its placed neighbours allow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import lcm
from random import Random

from n2d2py.memory.access import LineTable, Overlay
from n2d2py.memory.buffers import Buffer, Buffers
from n2d2py.memory.overlap import Reach, reach
from n2d2py.memory.plan import MemoryPlan, OpPlan, Plane, ScheduleStep, Scratch
from n2d2py.memory.problem import MemoryProblem, OpSpec
from n2d2py.memory.settings import Settings

_TABLE = 1000


def address_step(problem: MemoryProblem, settings: Settings) -> int:
    """What every address and every size is a multiple of."""
    return lcm(settings.buffer_alignment, max(t.element_bytes for t in problem.tensors.values()))


@dataclass
class Block:
    """`size` bytes live at the clocks birth..death, both included; `scratch` names the operator."""

    size: int
    birth: int
    death: int
    buffer: Buffer | None = None
    scratch: str | None = None


@dataclass(frozen=True)
class Pair:
    """The output block of operator number `op` may overlap the dying input block `source`. `exact`: at the same address
    every element is stored where it was read, so that its lines need no order.
    """

    op: int
    source: int
    output: int
    reach: Reach
    exact: bool = False


@dataclass(frozen=True)
class Placement:
    """The address of every block, the direction of every operator (True: backwards), the arena."""

    offsets: tuple[int, ...]
    backwards: tuple[bool, ...]
    bytes: int


@dataclass
class Packing:
    """The blocks of a problem with a given set of concatenations in place.

    ops: the operators with code. neighbours[i]: block j -> the pair of the two, None where they
    must be disjoint. bound: no placement is smaller.
    """

    buffers: Buffers
    ops: list[OpSpec] = field(init=False)
    blocks: list[Block] = field(init=False)
    pairs: list[Pair] = field(init=False)
    neighbours: list[dict[int, Pair | None]] = field(init=False)
    bound: int = field(init=False)

    def __post_init__(self) -> None:
        problem, settings = self.buffers.problem, self.buffers.settings
        self.step = address_step(problem, settings)
        self.ops = [op for op in self.buffers.order() if op.name not in self.buffers.views]
        self._collect()
        self.neighbours = self._make_neighbours()
        self.bound = self._bound()

    def _collect(self) -> None:
        """Sets blocks and pairs."""
        self.blocks = [
            Block(self._up(self.buffers.form(b).bytes), b.birth, b.death, b) for b in self.buffers.distinct() if not b.external
        ]
        self.pairs = self._make_pairs() if self.buffers.settings.optimize_buffer else []
        self.blocks += [
            Block(self._up(op.scratch_bytes), clock, clock, scratch=op.name)
            for op in self.ops
            if op.scratch_bytes
            for clock in [self.buffers.clock[op.name]]
        ]

    def _up(self, size: int) -> int:
        return -(-size // self.step) * self.step

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
                found = reach(
                    op,
                    tensors[name],
                    buffers.geometry(name),
                    buffers.offset(name),
                    tensors[op.output],
                    buffers.form(output),
                    buffers.offset(op.output),
                )
                if found is not None:
                    i, j = index[source], index[output]
                    pairs.append(self._pair(number, i, j, found, self._same_place(op, name)))
        return pairs

    def _same_place(self, op: OpSpec, name: str) -> bool:
        """Whether at the same address each element of the output lies where its operand `name` was."""
        buffers, tensors = self.buffers, self.buffers.problem.tensors
        source, output = tensors[name], tensors[op.output]
        return (
            op.access.over(source, output) is Overlay.POINTWISE
            and source.element_bytes == output.element_bytes
            and buffers.geometry(name).stride == buffers.geometry(op.output).stride
            and buffers.offset(name) == buffers.offset(op.output)
        )

    def cost(self, number: int) -> int:
        """What it costs when operator `number` stores its lines in order: its work; far more for one with a table, which a reader
        of the map must then know.
        """
        op = self.ops[number]
        return op.work(self.buffers.problem.tensors) * (_TABLE if isinstance(op.access, LineTable) else 1)

    def _pair(self, number: int, source: int, output: int, found: Reach, exact: bool = False) -> Pair:
        """The pair of two blocks, its distances rounded to the safe side."""
        size, room = self.blocks[source].size, self.blocks[output].size
        ahead = max(found.ahead // self.step * self.step, -room)
        behind = min(self._up(found.behind), size)
        return Pair(number, source, output, Reach(ahead, behind, size, room), exact)

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

    def _bound(self) -> int:
        """Over the operators: the live bytes less what overlapping its inputs can save."""
        saved: dict[int, int] = {}
        for number in dict.fromkeys(pair.op for pair in self.pairs):
            own = [pair for pair in self.pairs if pair.op == number]
            best = max(sum(p.reach.gain(way) for p in own) for way in (False, True))
            written = {p.output: self.blocks[p.output] for p in own}
            saved[next(iter(written.values())).birth] = min(sum(block.size for block in written.values()), best)
        end = max((block.death for block in self.blocks), default=-1)
        return max((self.live(t) - saved.get(t, 0) for t in range(-1, end + 1)), default=0)

    def live(self, clock: int) -> int:
        """Bytes of all blocks live at a clock."""
        return sum(b.size for b in self.blocks if b.birth <= clock <= b.death)

    def moved(
        self, order: list[int], backwards: list[bool], block: int, rng: Random, turning: float
    ) -> tuple[list[int], list[bool]]:
        """Copies with one random move: with the probability `turning` an operator between `block` and a neighbour turns round, else
        the block is placed elsewhere, mostly earlier.
        """
        order, backwards = list(order), list(backwards)
        pairs = [pair for pair in self.neighbours[block].values() if pair is not None]
        if pairs and rng.random() < turning:
            at = rng.choice(pairs).op
            backwards[at] = not backwards[at]
        else:
            source = order.index(block)
            target = rng.randrange(source + 1) if rng.random() < 0.7 else rng.randrange(len(order))
            order.insert(target, order.pop(source))
        return order, backwards

    def first_fit(self, order: list[int], backwards: list[bool]) -> Placement:
        """Places the blocks in `order`, the operators running in the given directions."""
        offsets = [-1] * len(self.blocks)
        top = 0
        for i in order:
            size = self.blocks[i].size
            closed = []
            for j, pair in self.neighbours[i].items():
                at = offsets[j]
                if at < 0:
                    continue
                low, high = at - size, at + self.blocks[j].size
                if pair is not None and i == pair.output:
                    if backwards[pair.op]:
                        high = min(high, at + pair.reach.behind)
                    else:
                        low = max(low, at + pair.reach.ahead)
                elif pair is not None:
                    if backwards[pair.op]:
                        low = max(low, at - pair.reach.behind)
                    else:
                        high = min(high, at - pair.reach.ahead)
                if low < high:
                    closed.append((low, high))
            closed.sort()
            at = 0
            for low, high in closed:
                if low >= at:
                    break
                if at < high:
                    at = high
            offsets[i] = at
            top = max(top, at + size)
        return Placement(tuple(offsets), tuple(backwards), top)

    def plan(self, strategy: str, placement: Placement) -> MemoryPlan:
        """The plan of a placement; an operator runs backwards only where that is needed."""
        buffers = self.buffers
        tensors, clock = buffers.problem.tensors, buffers.clock
        at = {block.buffer: offset for block, offset in zip(self.blocks, placement.offsets, strict=True)}
        backwards = {
            self.ops[pair.op].name
            for pair in self.pairs
            for distance in [placement.offsets[pair.output] - placement.offsets[pair.source]]
            if pair.reach.ahead < distance < pair.reach.source
        }
        schedule = tuple(ScheduleStep(op.name, clock[op.name]) for op in buffers.order())
        end = max([len(schedule)] + [step.clock + 1 for step in schedule])
        writers = {op.output: op.name for op in self.ops}
        planes = {}
        for name, buffer in buffers.of.items():
            form, tensor = buffers.geometry(name), tensors[name]
            alloc = clock[writers[name]] if name in writers else buffer.birth
            planes[name] = Plane(
                0 if buffer.external else at[buffer] + buffers.offset(name),
                tensor.pixel_bytes,
                tensor.pixel_bytes if buffer.external else form.stride,
                form.length,
                form.count,
                alloc,
                end if buffer.is_output else buffer.death,
                external=buffer.external,
                pitch=form.pitch or None,
            )
        scratch = {
            block.scratch: Scratch(offset, block.size)
            for block, offset in zip(self.blocks, placement.offsets, strict=True)
            if block.scratch
        }
        tops = [
            offset + (buffers.form(block.buffer).bytes if block.buffer else block.size)
            for block, offset in zip(self.blocks, placement.offsets, strict=True)
        ]
        ops = {
            op.name: OpPlan(op.name in buffers.views, op.name in backwards, scratch=scratch.get(op.name), aliases=op.aliased)
            for op in buffers.order()
        }
        options = {**buffers.settings.by_export_name(), "Clock": "op"}
        return MemoryPlan(strategy, max(tops, default=0), planes, schedule, ops, options, self.bound)
