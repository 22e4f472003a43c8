"""Stage memory report: what every strategy needs, without an export."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from n2d2py.errors import N2D2Error, listed
from n2d2py.graph import Graph, QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.checker import check_plan
from n2d2py.memory.from_graph import memory_problem, network_macs
from n2d2py.memory.modes import MODES, budget_curve, peak_layers, plan_mode, plan_strips
from n2d2py.memory.parameters import STRATEGIES
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.slices import SliceCut
from n2d2py.memory.stream import StreamPlanner
from n2d2py.memory.strip_search import StripSearch
from n2d2py.memory.strips import with_strips
from n2d2py.memory.sums import residual_sums, with_sums
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes.integer.residual_add import addable
from n2d2py.passes.integer.strips import by_channels, by_columns
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.quantize import float_graph
from n2d2py.stages.memory import WITH_SUMS, plan_by_params, settings_by_params, smaller_plan

_MOST_EXTRA = 25
"""Per cent of work done twice up to which the curve of strips goes."""


def _typed(graph: Graph, bits: int) -> QuantGraph:
    """The network with its own types where it comes quantized to `bits`, else in floating point."""
    if is_quantized(graph) and bits == 8:
        return quantize_prequantized(graph, QuantOptions())[0]
    return float_graph(graph, -32)


def report_problem(graph: Graph, bits: int) -> MemoryProblem:
    """The memory problem of a fused network whose tensors all have elements of |bits| bits; that of its own types
    where it comes quantized to so many."""
    return _problem(graph, _typed(graph, bits), bits)


def _problem(graph: Graph, typed: QuantGraph, bits: int) -> MemoryProblem:
    problem = memory_problem(typed)
    if is_quantized(graph) and bits == 8:
        return problem
    size = abs(bits) // 8
    return replace(problem, tensors={name: replace(t, element_bytes=size) for name, t in problem.tensors.items()})


def _with_sums(graph: Graph, typed: QuantGraph, problem: MemoryProblem, bits: int, params: Params) -> MemoryProblem:
    """The problem with the sums that convolutions of a C++ export do; the same one where there are none."""
    if bits != 8 or not params["FuseResidualAdd"] or not params["OptimizeBufferMemory"]:
        return problem
    fits = addable(typed, typed=is_quantized(graph))
    return with_sums(problem, residual_sums(problem, fits))


def memory_report(graph: Graph, bits: int, params: Params) -> str:
    """A table: for each strategy the arena, the bound where it has one, the seconds of planning and of proving, and the
    layers that run while the most bytes are live; then the modes, and what a budget costs.

    The other export parameters are those of `params`. Element sizes are those of the precision alone: nothing is
    calibrated, so a concatenation whose inputs will get scales of their own counts as one that keeps its values. Sums are
    part of convolutions as in a C++ export.
    """
    typed = _typed(graph, bits)
    problem = _problem(graph, typed, bits)
    fused = _with_sums(graph, typed, problem, bits, params)
    rows = [
        _row(problem, name, lambda each, name=name: plan_by_params(each, name, params), fused if name in WITH_SUMS else problem)
        for name in STRATEGIES
    ]
    settings = settings_by_params(params)
    rows.append(_row(problem, "OptimizeStream, input by rows", lambda each: StreamPlanner(True).plan(each, settings), problem))
    rows += [
        _row(
            problem,
            f"MemoryMode={mode}",
            lambda each, mode=mode: plan_mode(each, settings, mode),
            fused if mode in MODES[:2] else problem,
        )
        for mode in MODES
    ]
    head = (
        f"{graph.name}: {len(problem.ops)} layers, {len(problem.tensors)} tensors of {problem.tensor_bytes:,} "
        f"bytes, {abs(bits)}-bit elements; arenas without the scratch that the kernels of an export need\n"
    )
    titles = ("strategy", "arena", "bound", "plan s", "proof s", "layers at the peak")
    widths = [max(len(row[i]) for row in [titles, *rows]) for i in range(len(titles))]
    lines = [
        "  ".join(
            cell.ljust(width) if i in (0, 5) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [titles, *rows]
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    work = network_macs(typed, problem)
    search = StripSearch(problem, replace(settings, clock="op"), by_columns(typed), by_channels(typed), work)
    return head + "\n".join(lines) + "\n\n" + _curves(problem, settings) + _strips(search, settings)


def _curves(problem: MemoryProblem, settings: Settings) -> str:
    """What MemoryBudget costs: bytes against the layers that run line by line."""
    lines = ["MemoryBudget: bytes, layers that run row by row, their share"]
    for title, by_rows in (("", False), ("StreamInput=1", True)):
        lines += [title] if title else []
        for size, streamed in budget_curve(problem, settings, by_rows):
            share = streamed / max(1, len(problem.ops))
            lines.append(f"{size:>12,}  {streamed:>4}  {share:4.0%}  {'#' * round(40 * share)}".rstrip())
    return "\n".join(lines)


def _strips(search: StripSearch, settings: Settings) -> str:
    """What MaxExtraMacs saves: bytes against the work that is done twice, with the number of strips of each segment; "" without any."""
    lines, least = [], 0
    for point in search.curve(search.work * _MOST_EXTRA // 100):
        plan = plan_strips(with_strips(search.problem, point.cuts), settings, "Small")
        if lines and plan.arena_bytes >= least:
            continue
        least, extra = plan.arena_bytes, point.twice / max(search.work, 1)
        counts = ", ".join(f"{cut.count}{' slices' * isinstance(cut, SliceCut)}" for cut in point.cuts) or "1"
        lines.append(f"{least:>12,}  {extra:6.2%}  {counts}")
    if len(lines) < 2:
        return ""
    return "\n" + "\n".join(["MaxExtraMacs: bytes, multiply-accumulates done twice, strips or slices of each segment", *lines])


def _row(
    problem: MemoryProblem, title: str, make: Callable[[MemoryProblem], MemoryPlan], fused: MemoryProblem
) -> tuple[str, ...]:
    """`fused`: the problem with sums in convolutions, or itself."""
    start = time.perf_counter()
    try:
        problem, plan = (problem, make(problem)) if fused is problem else smaller_plan(problem, fused, make)
    except N2D2Error as error:
        if error.code != "E606":
            raise
        return title, "needs ortools", "", "", "", ""
    planned = time.perf_counter()
    proved = not check_plan(problem, plan)
    seconds = time.perf_counter() - planned
    return (
        title,
        f"{plan.arena_bytes:,}" if proved else "unsafe",
        "" if plan.bound is None else f"{plan.bound:,}",
        f"{planned - start:.2f}",
        f"{seconds:.2f}",
        listed(peak_layers(problem, plan), 2),
    )
