"""Stage memory report: what every strategy needs, without data and without an export."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from n2d2py import log
from n2d2py.errors import N2D2Error, join_names, result_unless
from n2d2py.exports import Target
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.settings import MODES, STRATEGIES, Settings
from n2d2py.memory.strategies import budget_curve, peak_layers
from n2d2py.stages.calibrate import AssumedRanges, calibrate_stage
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.memory import plan_network, scratch_planner
from n2d2py.stages.memory_changes import StripTrials
from n2d2py.stages.options import RunOptions, quant_options
from n2d2py.stages.quantize import quantize_stage
from n2d2py.targets import text_table

_MOST_EXTRA = 25  # per cent of work done twice up to which the curve of strips goes
_ASSUMED = (
    AssumedRanges(),
    AssumedRanges((1.0, 3.0), -0.1, -1.0, text="different ranges"),
    AssumedRanges((1.0, 300.0, 30.0), text="ranges far apart"),
    AssumedRanges(rare=True, text="inputs of which few values are large"),
)
"""Ranges that a calibration might find: all alike; others, for which a Concat rescales, or has 16 bits, or for which inputs have them."""
_TITLES = ("strategy", "arena", "bound", "plan s", "layers at the peak")


def memory_report(network: LoadedNetwork, options: RunOptions, target: Target[Any]) -> str:
    """Return a table: for each strategy the arena of the export of `target`, the bound where it has one, the seconds of
    planning and proving, and the layers that run while the most bytes are live; then the modes, and what a budget costs.

    Arenas are those of a real export: sums are part of convolutions, and kernels have their scratch. A calibration is not
    needed, for bytes do not depend on ranges; where they do, the arenas that were found for other ranges are named. Raise E007
    for a target that places its memory itself, E51x layers that the export has no arithmetic for.
    """
    if not target.needs_plan:
        raise N2D2Error("E007", f"-memory-report: {target.name} places its memory itself", remedy="leave out -export")
    graphs = _typed(network, options)
    graph, params = next(graphs)[1], network.params
    plain = {"MemoryBudget": -1, "MemoryMode": "auto", "StreamInput": False, "MaxExtraMacs": 0, "Memories": ()}
    free = params.with_values(plain)
    ways: dict[str, dict[str, Any]] = {name: {"MemoryManagerStrategy": name} for name in STRATEGIES}
    ways["OptimizeStream, input by rows"] = {"MemoryManagerStrategy": "OptimizeStream", "StreamInput": True}
    ways |= {f"MemoryMode={mode}": {"MemoryMode": mode} for mode in MODES}
    rows = [_row(graph, title, free.with_values(values), target) for title, values in ways.items()]
    arena = f"-export {target.name}: {_arena(graph, params, target)}"
    head = [_head(graph), arena, *_open(graph, graphs, network, options, target)]
    table = text_table(_TITLES, rows, left=(0, len(_TITLES) - 1))
    return "\n".join([*head, table, _curves(graph, params)]) + _strips(graph, free, target)


def _typed(network: LoadedNetwork, options: RunOptions) -> Iterator[tuple[str, QuantGraph]]:
    """Yield the network as an export has it, with a description of the assumed ranges; once if it needs no calibration."""
    # budgets and mixed precision choose by stimuli
    chosen = replace(options.quantization, flash_budget=0, ram_budget=0)
    for ranges in _ASSUMED:
        with log.muted():
            calibrated = calibrate_stage(network, options.calibration, ranges) if chosen.integer else network
            typed = quantize_stage(calibrated, chosen, ())
        yield ranges.text, typed.graph
        if typed.observed is None:
            return


def _open(
    graph: QuantGraph,
    others: Iterator[tuple[str, QuantGraph]],
    network: LoadedNetwork,
    options: RunOptions,
    target: Target[Any],
) -> list[str]:
    """Return the facts that require a calibration, a line each."""
    chosen, params = options.quantization, network.params
    lines = []
    mixed = quant_options(options.calibration, chosen, network.options.target, params.as_dict()).mixed
    by_stimuli = {"-mixed-precision": mixed, "-flash-budget": chosen.flash_budget, "-ram-budget": chosen.ram_budget}
    asked = [name for name, value in by_stimuli.items() if value and chosen.integer]
    if asked:
        lines.append(f"the arenas are those without {join_names(asked)}: calibration stimuli decide which tensors have 16 bits")
    plain = _arena(graph, params, target)
    other = {text: arena for text, each in others if (arena := _arena(each, params, target)) != plain}
    if other:
        texts = "; ".join(f"{arena} for {text}" for text, arena in other.items())
        lines.append(f"it depends on the ranges that a calibration finds: {texts}")
    return lines


def _head(graph: QuantGraph) -> str:
    problem, kind = memory_problem(graph), "elements" if graph.bits > 0 else "floating point"
    size = f"{len(problem.ops)} layers, {len(problem.tensors)} tensors of {problem.tensor_bytes:,} bytes"
    return f"{graph.name}: {size}, {abs(graph.bits)}-bit {kind}"


def _arena(graph: QuantGraph, params: Params, target: Target[Any]) -> str:
    try:
        plan = plan_network(graph, params, target).plan
    except N2D2Error as error:
        if error.code not in ("E606", "E607"):
            raise
        return error.what
    scratch = plan.arena_bytes - (plan.tensor_arena_bytes or plan.arena_bytes)
    return f"an arena of {plan.arena_bytes:,} bytes" + (f", of which {scratch:,} for scratch" if scratch else "")


def _curves(graph: QuantGraph, params: Params) -> str:
    """Cost of MemoryBudget: bytes against the layers that run row by row. Scratch stays within the budget."""
    problem, settings = memory_problem(graph), Settings.of(params)
    lines = ["MemoryBudget: bytes, layers that run row by row, their share"]
    for title, by_rows in (("", False), ("StreamInput=1", True)):
        lines += [title] if title else []
        for size, streamed in budget_curve(problem, replace(settings, stream_input=by_rows)):
            share = streamed / max(1, len(problem.ops))
            lines.append(f"{size:>12,}  {streamed:>4}  {share:4.0%}  {'#' * round(40 * share)}".rstrip())
    return "\n".join(lines)


def _strips(graph: QuantGraph, params: Params, target: Target[Any]) -> str:
    """Return a table of savings by MaxExtraMacs: bytes, repeated work, strips of each segment; "" if there are none."""
    params = params.with_values({"MemoryMode": "Small", "MaxExtraMacs": _MOST_EXTRA})
    trials = StripTrials(graph, params, scratch_planner(params, target))
    lines, least = [], 0
    work = trials.search.work
    for point in trials.search.curve(work * _MOST_EXTRA // 100) if work else ():
        trial = trials.make(point)
        if trial is None or (lines and trial.bytes >= least):
            continue
        least, extra = trial.bytes, point.repeated_work / work
        counts = ", ".join(f"{cut.count}{' slices' * bool(cut.slices)}" for cut in point.cuts) or "1"
        lines.append(f"{least:>12,}  {extra:6.2%}  {counts}")
    if len(lines) < 2:
        return ""
    title = "MaxExtraMacs: bytes, multiply-accumulates done twice, strips or slices of each segment"
    return "\n\n" + "\n".join([title, *lines])


def _row(graph: QuantGraph, title: str, params: Params, target: Target[Any]) -> tuple[str, ...]:
    start = time.perf_counter()
    network = result_unless("E606", plan_network, graph, params, target)
    if network is None:
        return title, "needs ortools", "", "", ""
    plan, seconds = network.plan, f"{time.perf_counter() - start:.2f}"
    bound = "" if plan.bound is None else f"{plan.bound:,}"
    return title, f"{plan.arena_bytes:,}", bound, seconds, join_names(peak_layers(network.problem, plan), 2)
