"""Which tensors of few bits are packed: those without which the arena would be larger."""

from __future__ import annotations

from collections.abc import Callable, Collection

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.from_graph import PlannedNetwork, memory_problem
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.passes.integer.pack_activations import low_bit_tensors, pack_activations, packable_tensors

_ROUNDS = 2
"""Number of retries of the tensors that leave their segments."""
_SINGLES = 12
"""Tensors up to which each is left out for once."""
Planning = Callable[[QuantGraph], PlannedNetwork]
"""The planned network; E607 where a budget cannot be met."""


def plan_packed(
    graph: QuantGraph, plan: MemoryPlan | None, planning: Planning, budget: int, smallest: Planning
) -> PlannedNetwork | None:
    """Return the network with packed tensors; None if `plan`, without them, needs no more memory or fits a `budget`.

    Of the tensors whose packing is of use, as few as give the smallest arena, or fit the budget: a layer that reads or makes a
        packed
    tensor takes more time. `smallest`: the planning with as little memory as can be, instead of a budget.
    """
    fits = plan is not None and budget > 0 and plan.arena_bytes <= budget
    names = [] if fits else packable_tensors(graph)
    if not names:
        return None
    search = _Search(graph, smallest if budget > 0 else planning)
    bare = search.planned(())
    for chosen in (names, search.whole(bare, names)):
        for _ in range(_ROUNDS):
            chosen = search.whole(search.planned(chosen), chosen)
    best, least = search.smallest()
    if best and budget > 0 and least <= budget:
        packed = _Search(graph, planning).fewest(best, budget)
    else:
        packed = search.fewest(best, least) if best else None
    return packed if packed and (plan is None or packed.plan.arena_bytes < plan.arena_bytes) else None


class _Search:
    def __init__(self, graph: QuantGraph, planning: Planning):
        self._graph, self._planning = graph, planning
        self._tried: dict[tuple[str, ...], PlannedNetwork | None] = {}

    def planned(self, names: Collection[str]) -> PlannedNetwork | None:
        """With these tensors packed; None where that does not meet the budget."""
        key = tuple(names)
        if key not in self._tried:
            try:
                self._tried[key] = self._planning(pack_activations(self._graph, key))
            except N2D2Error as error:
                if error.code != "E607":
                    raise
                self._tried[key] = None
        return self._tried[key]

    def smallest(self) -> tuple[tuple[str, ...], int]:
        """Return the packed tensors of the first of the smallest plans, and the bytes of its arena."""
        sizes = [(names, planned.plan.arena_bytes) for names, planned in self._tried.items() if planned is not None]
        return min(sizes, key=lambda each: each[1], default=((), 0))

    @staticmethod
    def whole(network: PlannedNetwork | None, names: Collection[str]) -> list[str]:
        """Return the tensors that are in memory as a whole, packed where they are, and not in line buffers."""
        if network is None:
            return []
        tensors = {name: packed for packed, name in network.graph.packed.items()}
        return [name for name in names if network.plan.planes[tensors.get(name, name)].ring_rows is None]

    def fewest(self, names: Collection[str], goal: int) -> PlannedNetwork | None:
        """With the fewest of the tensors alive with most bytes, less those without which it fits too, in at most `goal` bytes; None
        where not even all are enough."""
        live_bytes = bytes_beside(memory_problem(self._graph))
        ordered = sorted(names, key=lambda name: -live_bytes[name])
        low, high, smallest = 1, len(ordered) + 1, None
        while low < high:
            middle = (low + high) // 2
            chosen = set(ordered[:middle])
            network = self.planned([name for name in names if name in chosen])
            if network is not None and network.plan.arena_bytes <= goal:
                high, smallest = middle, network
            else:
                low = middle + 1
        remaining = [name for name in names if name in set(ordered[:high])] if smallest else []
        for name in reversed(ordered[:high] if len(remaining) <= _SINGLES else []):
            fewer = [each for each in remaining if each != name]
            network = self.planned(fewer) if fewer else None
            if network is not None and network.plan.arena_bytes <= goal:
                remaining, smallest = fewer, network
        return smallest


def log_packing(graph: QuantGraph, params: Params) -> None:
    """Log which tensors of a planned network are packed. W109 if PackActivations has no effect."""
    tensors = low_bit_tensors(graph)
    packed, able = [one for one in tensors if one.packed], [one for one in tensors if not one.refused]
    if packed:
        text = "packed activations: %d of %d tensors of at most 4 bits; packing the others would not reduce the arena"
        log.notice(text, len(packed), len(tensors))
        return
    if not tensors:
        why = "no integer tensor has at most 4 bits"
    elif not able:
        why = f"tensors of at most 4 bits cannot be packed; '{tensors[0].name}': {tensors[0].refused}"
    elif Settings.of(params).budget > 0:
        why = "packing does not decide whether the memory fits MemoryBudget"
    else:
        why = "packing does not reduce the arena"
    log.warning("W109", f"PackActivations has no effect: {why}", where=params.where("PackActivations"), remedy="remove it")


def bytes_beside(problem: MemoryProblem) -> dict[str, int]:
    """For each tensor the most bytes of tensors, itself among them, that are needed at one operator while it is; nothing overlaps."""
    last = len(problem.ops)
    born = dict.fromkeys(problem.inputs, 0)
    read = dict.fromkeys(problem.outputs, last)
    for step, op in enumerate(problem.ops):
        born.setdefault(op.output, step)
        for name in op.inputs:
            read[name] = max(step, read.get(name, 0))
    lives = {name: (born[name], max(born[name], read.get(name, 0))) for name in born}
    live = [sum(problem.tensors[name].bytes for name, (a, b) in lives.items() if a <= step <= b) for step in range(last + 1)]
    return {name: max(live[a : b + 1]) for name, (a, b) in lives.items()}
