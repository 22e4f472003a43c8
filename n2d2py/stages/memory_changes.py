"""Changes of a network that save memory: segments of layers in strips, where the export parameters allow work that is done
twice, and packed low-bit tensors, those without which the arena would be larger."""

from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import ceil

from n2d2py import log
from n2d2py.errors import N2D2Error, result_unless
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.from_graph import PlannedNetwork, ScratchPlanner, memory_problem, network_macs, with_columns
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import plan_strips
from n2d2py.memory.strip_search import StripPoint, StripSearch
from n2d2py.passes.integer.pack_activations import low_bit_tensors, pack_activations, packable_tensors
from n2d2py.passes.integer.strips import by_channels, by_columns, with_strips

_TRIED = 3  # of the cuts with the least memory by estimate
_ROUNDS = 2  # number of retries of the tensors that leave their segments
_SINGLES = 12  # tensors up to which each is left out for once
Planning = Callable[[QuantGraph], PlannedNetwork]
"""The planned network; E607 where a budget cannot be met."""


@dataclass(frozen=True)
class StripTrial:
    """A cut, the network that it makes, and the bytes of its arena with scratch; `fits`: whether these are in the budget and
    every layer has its scratch."""

    point: StripPoint
    network: PlannedNetwork
    bytes: int
    fits: bool


class StripTrials:
    """Cuts of a network, planned."""

    def __init__(self, graph: QuantGraph, params: Params, placer: ScratchPlanner):
        self.graph, self.placed = graph, placer
        settings = Settings.of(params)
        self.budget, self.most = settings.budget, settings.extra_macs
        self.settings = replace(settings, clock="op", mode="Small" if settings.mode == "Small" else "Minimum")
        self.known = KnownRows()
        problem = memory_problem(graph)
        self.search = StripSearch(problem, self.settings, by_columns(graph), by_channels(graph), network_macs(graph, problem))

    def points(self) -> list[StripPoint]:
        """From the least work that is done twice to the most; with a budget those that are near it or below by estimate."""
        points = [point for point in self.search.curve(int(self.search.work * self.most / 100)) if point.cuts]
        if self.budget > 0:
            return [point for point in points if 10 * point.bytes <= 11 * self.budget]
        return points[-_TRIED:]

    def make(self, point: StripPoint, most: int | None = None) -> StripTrial | None:
        """Return the network in the strips of `point`; None if it is known to need more than `most` bytes."""
        narrow = with_strips(self.graph, point.cuts)
        problem = memory_problem(narrow)
        plan = plan_strips(problem, self.settings, most, self.known)
        if plan is None:
            return None
        extra = {"MaxExtraMacs": self.most, "ExtraMacs": round(100 * point.repeated_work / self.search.work, 2)}
        network = PlannedNetwork(narrow, problem, with_columns(narrow, replace(plan, options={**plan.options, **extra})))
        if 0 < self.budget < plan.arena_bytes:
            return StripTrial(point, network, plan.arena_bytes, False)
        full, served = self.placed(network)
        return StripTrial(point, network, full.plan.arena_bytes, served)

    def least(self) -> StripTrial | None:
        """Return the trial with the fewest bytes, and of these the one with the least repeated work; None if there is none."""
        best = None
        for point in reversed(self.points()):
            trial = self.make(point, None if best is None else best.bytes)
            if trial is not None and (best is None or trial.bytes <= best.bytes):
                best = trial
        if best is not None and self.settings.mode == "Minimum":
            for point in self.search.other_widths(best.point):
                trial = self.make(point, best.network.plan.arena_bytes - 1)
                if trial is not None and trial.bytes < best.bytes:
                    best = trial
        return best

    def within_budget(self) -> StripTrial | None:
        """Return the fitting trial with the least repeated work, else the least scratch on the stack; None if none fits."""
        tried: list[StripTrial] = []
        for point in self.points():
            trial = self.make(point, self.budget if self.settings.mode == "Small" else None)
            if trial is not None and trial.fits:
                return trial
            tried += [trial] if trial is not None else []
        if tried and self.settings.mode == "Minimum":
            nearest = min(tried, key=lambda trial: trial.bytes)
            others = (self.make(point, self.budget) for point in self.search.other_widths(nearest.point))
            tried += [trial for trial in others if trial is not None]
        fitting = [trial for trial in tried if trial.network.plan.arena_bytes <= self.budget]
        return min(fitting, key=lambda trial: (not trial.fits, trial.point.extra), default=None)


def plan_in_strips(
    graph: QuantGraph, params: Params, whole: PlannedNetwork | None, placer: ScratchPlanner
) -> PlannedNetwork | None:
    """Return the network with segments of layers in strips, by MaxExtraMacs; None if `whole`, without strips, needs no more
    memory. With a budget, the strips that do the least work twice and leave room for the scratch of every layer, else those
    that leave too little for some layers, which then take the stack; None where `whole` is as good, or none fits. `whole` is
    None where none without strips fits."""
    settings = Settings.of(params)
    if not settings.extra_macs or not settings.runs_by_lines:
        return None
    budget = settings.budget
    full, served = placer(whole) if whole is not None else (None, False)
    inside = whole is not None and 0 < whole.plan.arena_bytes <= budget
    if inside and served:
        return None
    trials = StripTrials(graph, params, placer)
    if budget > 0:
        best = trials.within_budget()
        return best.network if best is not None and (best.fits or not inside) else None
    best = trials.least()
    return best.network if best is not None and (full is None or best.bytes < full.plan.arena_bytes) else None


def suggest_strips(refused: N2D2Error, graph: QuantGraph, params: Params) -> N2D2Error:
    """Return the refusal of a budget (E607), with the least MaxExtraMacs whose strips meet it, if there is one."""
    settings = Settings.of(params)
    if not settings.runs_by_lines:
        return refused
    budget = settings.budget
    trials = StripTrials(graph, params.with_values({"MaxExtraMacs": 100.0}), lambda network: (network, True))
    for point in trials.points():
        trial = trials.make(point, budget)
        if trial is not None and trial.fits:
            most = ceil(1000 * point.repeated_work / trials.search.work) / 10
            remedy = f"use MaxExtraMacs={most:g}, whose strips need {trial.bytes:,} bytes; or {refused.remedy}"
            return N2D2Error(refused.code, refused.what, where=refused.where, remedy=remedy)
    return refused


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
            self._tried[key] = result_unless("E607", self._planning, pack_activations(self._graph, key))
        return self._tried[key]

    def smallest(self) -> tuple[tuple[str, ...], int]:
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
        """With the fewest of the tensors alive with most bytes, less those without which it fits too, in at most `goal` bytes;
        None where not even all are enough."""
        live_bytes = bytes_beside(memory_problem(self._graph))
        ordered = sorted(names, key=lambda name: -live_bytes[name])

        def packed(chosen: Collection[str]) -> PlannedNetwork | None:
            network = self.planned([name for name in names if name in chosen]) if chosen else None
            return network if network is not None and network.plan.arena_bytes <= goal else None

        counts = range(1, len(ordered) + 1)
        chosen = ordered[: bisect_left(counts, True, key=lambda count: packed(ordered[:count]) is not None) + 1]
        for name in reversed(chosen if len(chosen) <= _SINGLES else []):
            fewer = [each for each in chosen if each != name]
            chosen = fewer if packed(fewer) is not None else chosen
        return packed(chosen)


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
    """For each tensor the most bytes of tensors, itself among them, that are needed at one operator while it is; nothing
    overlaps."""
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
