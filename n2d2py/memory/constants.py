"""Constants in the memories of a plan: where each is stored, and from where its layer reads it.

Every constant is stored in a memory of the kind "rom", those that are read most per byte in the cheapest one. A layer may read
from
a cheaper memory instead: from one that start-up fills, where it has room, or from a copy that an inference makes in a hole of
the arena just before the layer runs. The place with the highest gain per byte is given away first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from n2d2py.errors import N2D2Error
from n2d2py.memory.plan import ConstantPlan, Memory, MemoryPlan
from n2d2py.memory.scratch import holes_between, used_at


@dataclass(frozen=True)
class Constant:
    """A constant of operator `op`: bytes in whole words, and bytes an inference reads; `copyable`: copies may replace it."""

    name: str
    op: str
    bytes: int
    reads: float
    copyable: bool = False


def place_constants(
    plan: MemoryPlan, constants: Sequence[Constant], roms: Sequence[Memory], room: int, limit: int, early: bool = False
) -> MemoryPlan:
    """Return the plan with all constants. `room`: bytes of the first memory that start-up may fill. `limit`: the end of the
    copies there. `early`: a copy is begun before the layer that runs before its own. Raise E607 where the memories for
    constants are too small."""
    homes = _homes(constants, {one.name: one.reads for one in constants}, roms)
    plans: dict[str, ConstantPlan] = {}
    rest = _fill(plan.memories[:1], [room][: len(plan.memories)], constants, homes, plans)
    plan = _with_copies(replace(plan, roms=tuple(roms)), rest, homes, limit, early)
    plans |= {one.name: one for one in plan.constants}
    left = [memory.bytes - used for memory, used in zip(plan.memories, plan.used, strict=False)]
    _fill(plan.memories[1:], left[1:], [one for one in rest if one.name not in plans], homes, plans)
    read = {name: 0 if one.copy is None else one.bytes for name, one in plans.items()}
    homes = _homes(constants, {one.name: read.get(one.name, one.reads) for one in constants}, roms)
    places = (
        replace(plans[one.name], home=homes[one.name].name) if one.name in plans else _placed(one, homes[one.name])
        for one in constants
    )
    return replace(plan, constants=tuple(places))


def _placed(one: Constant, home: Memory, memory: Memory | None = None) -> ConstantPlan:
    return ConstantPlan(one.name, one.op, one.bytes, one.reads, home.name, (memory or home).name)


def _homes(constants: Sequence[Constant], reads: Mapping[str, float], roms: Sequence[Memory]) -> dict[str, Memory]:
    left, homes = {memory: memory.bytes for memory in roms}, {}
    for one in sorted(constants, key=lambda one: -reads[one.name] / one.bytes):
        home = next((memory for memory in roms if left[memory] >= one.bytes), None)
        if home is None:
            missing = sum(each.bytes for each in constants) - sum(memory.bytes for memory in roms)
            names, how = ", ".join(memory.name for memory in roms), f": {missing:,} bytes are missing" if missing > 0 else ""
            what = f"the memories {names} are too small for the constants{how}"
            raise N2D2Error("E607", what, where="export parameters", remedy="make one larger, or use fewer bits for weights")
        left[home] -= one.bytes
        homes[one.name] = home
    return homes


def _fill(
    memories: Sequence[Memory],
    rooms: Sequence[int],
    constants: Sequence[Constant],
    homes: Mapping[str, Memory],
    plans: dict[str, ConstantPlan],
) -> list[Constant]:
    """Give the room of memories that start-up fills to constants; return those that are left."""
    rest = list(constants)
    for memory, room in zip(memories, rooms, strict=True):
        dearer = [one for one in rest if homes[one.name].cost > memory.cost]
        for one in sorted(dearer, key=lambda one: -one.reads * (homes[one.name].cost - memory.cost) / one.bytes):
            if one.bytes <= room:
                room -= one.bytes
                plans[one.name] = _placed(one, homes[one.name], memory)
                rest.remove(one)
    return rest


def _with_copies(
    plan: MemoryPlan, constants: Sequence[Constant], homes: Mapping[str, Memory], limit: int, early: bool
) -> MemoryPlan:
    """Return the plan with copies in the first memory below `limit` where they pay for themselves."""
    if not plan.memories:
        return plan
    fast, clocks = plan.memories[0], sorted({step.clock for step in plan.schedule})
    gains = {
        one.name: one.reads * (homes[one.name].cost - fast.cost) - one.bytes * (homes[one.name].cost + fast.cost)
        for one in constants
        if one.copyable
    }
    for one in sorted(constants, key=lambda one: -gains.get(one.name, 0)):
        if gains.get(one.name, 0) <= 0:
            break
        run = [clocks.index(step.clock) for step in plan.schedule if step.op == one.op]
        during = clocks[max(0, min(run) - early) : max(run) + 1]
        busy = used_at(plan, during)
        holes = holes_between(set().union(*busy.values()))
        offset = next((begin for begin, end in holes if min(end, limit) - begin >= one.bytes), None)
        if offset is not None:
            plan_of_copy = replace(_placed(one, homes[one.name], fast), copy=offset, life=(during[0], during[-1]))
            top = max(plan.arena_bytes, offset + one.bytes)
            plan = replace(plan, constants=(*plan.constants, plan_of_copy), arena_bytes=top)
    return plan
