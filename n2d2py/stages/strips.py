"""Segments of layers in strips, where the export parameters allow work that is done twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.from_graph import PlannedNetwork, ScratchPlanner, memory_problem, network_macs, with_columns
from n2d2py.memory.modes import plan_strips
from n2d2py.memory.rows import KnownRows
from n2d2py.memory.settings import Settings
from n2d2py.memory.strip_search import StripPoint, StripSearch
from n2d2py.passes.integer.strips import by_channels, by_columns, with_strips

_TRIED = 3
"""Of the cuts with the least memory by estimate."""


@dataclass(frozen=True)
class StripTrial:
    """A cut, the network that it makes, and the bytes of its arena with scratch; `fits`: whether these are in the budget and every layer
    has its scratch."""

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
    memory.

    With a budget, the strips that do the least work twice and leave room for the scratch of every layer, else those that leave
    too little for some layers, which then take the stack; None where `whole` is as good, or none fits. `whole` is None where
    none without strips fits.
    """
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
