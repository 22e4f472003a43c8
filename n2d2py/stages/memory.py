"""Stage memory: every tensor gets its address, and an independent check proves the plan."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from n2d2py import log
from n2d2py.arithmetic.exact import round_up
from n2d2py.errors import InternalError, N2D2Error, result_unless
from n2d2py.exports import Target
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.checker import check_plan, refuse_violations
from n2d2py.memory.constants import place_constants
from n2d2py.memory.from_graph import PlannedNetwork, ScratchPlanner, memory_problem
from n2d2py.memory.memories import moving_cost, shares
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem, residual_sums
from n2d2py.memory.scratch import place_scratch
from n2d2py.memory.settings import MODES, WHOLE_MODES, Settings
from n2d2py.memory.strategies import plan_memory
from n2d2py.passes.integer.residual_add import fusable_pairs, fuse_residual_adds
from n2d2py.stages.memory_changes import log_packing, plan_in_strips, plan_packed, suggest_strips

WITH_SUMS = ("OptimizeOverlap", "OptimizeReorder", "OptimizeOptimal")
"""Strategies that can place a sum over its operand without a separate layer."""
_NO_TARGET = Target[Any]()  # its kernels add no residuals and have no workspaces
_MEMORY = "memory %s: %s bytes, %.1f %% of the bytes that an inference moves"
_RESERVED = (0, 1 / 8, 1 / 4, 1 / 2, 3 / 4)  # parts of the first memory that are tried for constants that start-up copies there
_ALIGNMENT = 8  # bytes, to a multiple of which each state is rounded up


def plan_stage(graph: QuantGraph, params: Params, target: Target[Any] = _NO_TARGET) -> PlannedNetwork:
    """Run `plan_network` and report the result."""
    state_bytes, settings = graph.state_bytes, Settings.of(params)
    if state_bytes and settings.budget > 0 and settings.state_memory is None:
        params = params.with_values({"MemoryBudget": max(settings.budget - state_bytes, 1)})
    network = _place_in_memories(lambda each: plan_network(graph, each, target), params, target)
    plan = network.plan
    growth = plan.arena_bytes - (plan.tensor_arena_bytes or plan.arena_bytes)
    inside = f", of which {growth:,} for scratch," if growth else ""
    sizes = f"{sum(plan.used):,}", inside, f"{network.problem.tensor_bytes:,}"
    log.notice("arena: %s bytes%s for %s of tensors (%s%s), checked", *sizes, _mode_text(plan), _bound_text(plan))
    moved = shares(network.problem, plan)
    for memory, used in zip(plan.memories, plan.used, strict=False):
        log.notice(_MEMORY, memory.name, f"{used:,}", 100 * moved[memory.name])
    if plan.roms:
        _log_constants(plan, moved)
    if state_bytes:
        where = f"in {plan.state_memory.name}" if plan.state_memory else "after the arena"
        log.notice("states: %s more bytes %s, kept between calls", f"{state_bytes:,}", where)
    if settings.pack_activations and graph.bits > 0:
        log_packing(network.graph, params)
    return network


def plan_network(graph: QuantGraph, params: Params, target: Target[Any] = _NO_TARGET) -> PlannedNetwork:
    """Plan the arena of a typed network by the export parameters, with the workspaces of the target's kernels. The target's
    convolutions add residuals if they can, and if that needs no more memory. Raise E60x; the checker refuses a plan that would
    overwrite a live byte."""
    placer = scratch_planner(params, target)
    network, _ = placer(_smallest(graph, params, target.adds_residuals, placer))
    refuse_violations(check_plan(network.problem, network.plan))
    return network


def scratch_planner(params: Params, target: Target[Any]) -> ScratchPlanner:
    """Return the function that places the workspaces of a planned network, within MemoryBudget."""
    budget = Settings.of(params).budget

    def placed(network: PlannedNetwork) -> tuple[PlannedNetwork, bool]:
        needs = target.scratch_needs(network.graph, network.plan, params.as_dict())
        problem, plan = place_scratch(network.problem, network.plan, needs, budget if budget > 0 else None)
        return replace(network, problem=problem, plan=plan), all(name in plan.scratch for name in needs)

    return placed


def _smallest(graph: QuantGraph, params: Params, adds_residuals: bool, placer: ScratchPlanner) -> PlannedNetwork:
    """Return the network unchanged, in strips, or with packed tensors, whichever is allowed and needs the least memory."""
    network, refused, settings = None, None, Settings.of(params)
    try:
        network = _plan_unchanged(graph, params, adds_residuals)
    except N2D2Error as error:
        if error.code != "E607" or settings.tensor_memories:
            raise
        refused = error
    if network is not None and network.plan.memories:
        return network
    network = plan_in_strips(graph, params, network, placer) or network
    if settings.pack_activations and graph.bits > 0:
        planning = partial(_plan_unchanged, params=params, adds_residuals=adds_residuals)
        smallest = partial(_plan_unchanged, params=params.with_values({"MemoryBudget": 0}), adds_residuals=adds_residuals)
        network = plan_packed(graph, network.plan if network else None, planning, settings.budget, smallest) or network
    if network is not None:
        return network
    if refused is None:
        raise InternalError("a network without a plan")
    raise suggest_strips(refused, graph, params)


def _plan_unchanged(graph: QuantGraph, params: Params, adds_residuals: bool) -> PlannedNetwork:
    """Return the network, its problem and its plan, with fused residual sums if these need no more memory."""
    settings, problem = Settings.of(params), memory_problem(graph)
    sums = residual_sums(problem, fusable_pairs(graph)) if adds_residuals and settings.fuse_residuals else []
    if not sums:
        return PlannedNetwork(graph, problem, plan_memory(problem, settings))
    other = fuse_residual_adds(graph, [(each.conv, each.sum) for each in sums])
    fused = memory_problem(other)
    problem, plan = _plan_by(problem, fused, settings)
    return PlannedNetwork(other if problem is fused else graph, problem, plan)


def _plan_by(problem: MemoryProblem, fused: MemoryProblem, settings: Settings) -> tuple[MemoryProblem, MemoryPlan]:
    """Return `fused` and its plan if fused sums need no more memory, else the problem without."""
    if not settings.optimize_buffer or settings.stream_input or settings.strategy not in WITH_SUMS:
        return problem, plan_memory(problem, settings)
    planning = partial(plan_memory, settings=settings)
    if settings.tensor_memories:
        return smaller_plan(problem, fused, planning, moving_cost)
    if settings.by_strategy:
        return smaller_plan(problem, fused, planning)
    other = _whole_plan(fused, settings)
    if other is None:
        return problem, planning(problem)
    plan = result_unless("E607", planning, problem)
    if plan is None:
        return fused, other
    if settings.budget > 0:  # the faster of what fits
        better = MODES.index(other.options["MemoryMode"]) <= MODES.index(plan.options["MemoryMode"])
    else:
        better = other.arena_bytes <= plan.arena_bytes
    return (fused, other) if better else (problem, plan)


def smaller_plan(
    problem: MemoryProblem,
    fused: MemoryProblem,
    plan: Callable[[MemoryProblem], MemoryPlan],
    cost: Callable[[MemoryProblem, MemoryPlan], float] = lambda problem, plan: plan.arena_bytes,
) -> tuple[MemoryProblem, MemoryPlan]:
    """Return `fused` and its plan if it costs no more than `problem`, else `problem` and its plan."""
    plans = [(each, plan(each)) for each in (problem, fused)]
    return min(reversed(plans), key=lambda one: cost(*one))


def _whole_plan(problem: MemoryProblem, settings: Settings) -> MemoryPlan | None:
    """Return the plan of the mode without row streaming; under a budget the fastest that fits, None if none does."""
    budget = settings.budget
    mode = "Minimum" if settings.mode == "auto" else settings.mode
    if budget <= 0:
        plan = plan_memory(problem, settings, mode=mode if mode in WHOLE_MODES else WHOLE_MODES[-1], budget=-1)
        return replace(plan, options={**plan.options, "MemoryMode": "Minimum" if budget == 0 else mode})
    for each in MODES[: min(MODES.index(mode) + 1, len(WHOLE_MODES))]:
        plan = plan_memory(problem, settings, mode=each, budget=-1)
        if plan.arena_bytes <= budget:
            return replace(plan, options={**plan.options, "MemoryBudget": budget})
    return None


def _mode_text(plan: MemoryPlan) -> str:
    """Return the mode or strategy, and the cost of strips."""
    extra = plan.options.get("ExtraMacs")
    way = plan.options.get("MemoryMode", plan.strategy)
    return way if extra is None else f"{way}, in strips, {extra} % more multiply-accumulates"


def _bound_text(plan: MemoryPlan) -> str:
    if plan.bound is None:
        return ""
    gap = (plan.tensor_arena_bytes or plan.arena_bytes) - plan.bound
    return ", smallest" if gap <= 0 else f", at least {plan.bound:,}, gap {gap / plan.bound:.1%}"


def _place_in_memories(planning: Callable[[Params], PlannedNetwork], params: Params, target: Target[Any]) -> PlannedNetwork:
    """Plan the network with its constants and states in the memories of the parameters: tensors and constants share the first
    memory where both are accessed most. Raise E607 where the memories are too small, E608 for a target that does not place
    constants."""
    settings = Settings.of(params)
    network = planning(params)
    if not settings.roms and settings.state_memory is None:
        return network
    if target.constant_needs(network.graph, network.plan, params.as_dict()) is None:
        what = "Memories: this export does not place constants and states, the kinds rom and states"
        raise N2D2Error("E608", what, where="export parameters", remedy="remove these memories, or export for microcontrollers")
    if settings.roms:
        network = min(_candidates(network, planning, params, target), key=lambda each: moving_cost(each.problem, each.plan))
    network = replace(network, plan=replace(network.plan, state_memory=_state_memory(network.graph, settings)))
    refuse_violations(check_plan(network.problem, network.plan))
    return network


def _candidates(
    network: PlannedNetwork, planning: Callable[[Params], PlannedNetwork], params: Params, target: Target[Any]
) -> Iterator[PlannedNetwork]:
    """Yield plans that leave different numbers of bytes of the first memory to constants: `network`, and those of smaller
    memories."""
    settings, early = Settings.of(params), params.as_dict().get("CopyWeights") == "double"
    whole = settings.tensor_memories[0].bytes if settings.tensor_memories else 0
    for room in sorted({int(whole * part) for part in _RESERVED}):
        candidate = result_unless("E607", _reserving, room, settings, params, planning) if room else network
        if candidate is None:
            return
        constants = target.constant_needs(candidate.graph, candidate.plan, params.as_dict()) or ()
        for reserved in sorted({room, max(room, whole - candidate.plan.used[0])}) if whole else (0,):
            plan = place_constants(candidate.plan, constants, settings.roms, reserved, whole - reserved, early)
            yield replace(candidate, plan=plan)


def _reserving(room: int, settings: Settings, params: Params, planning: Callable[[Params], PlannedNetwork]) -> PlannedNetwork:
    first = settings.tensor_memories[0]
    others = (text for text in params["Memories"] if not text.startswith(f"{first.name}:"))
    network = planning(params.with_values({"Memories": (f"{first.name}:{first.bytes - room}:{first.cost}", *others)}))
    memories = (replace(network.plan.memories[0], reserved=room), *network.plan.memories[1:])
    return replace(network, plan=replace(network.plan, memories=memories))


def _state_memory(graph: QuantGraph, settings: Settings) -> Any:
    """Return the memory of the states; None if there is none, or if there are no states. Raise E607 where it is too small."""
    memory = settings.state_memory
    if memory is not None and not graph.states:
        log.warning("W109", f"the memory {memory.name} has no effect: the network has no states", remedy="remove it")
        return None
    size = sum(round_up(graph.tensors[name].bytes, _ALIGNMENT) for name in graph.state_inputs)
    if memory is not None and size > memory.bytes:
        what = f"the memory {memory.name} has {memory.bytes:,} bytes, and the states take {size:,}"
        raise N2D2Error("E607", what, where="export parameters", remedy="make it larger")
    return memory


def _log_constants(plan: MemoryPlan, moved: Mapping[str, float]) -> None:
    """Say where the constants are; `moved`: by memory the share of the bytes that an inference moves."""
    for rom in plan.roms:
        stored = sum(one.bytes for one in plan.constants if one.home == rom.name)
        log.notice(_MEMORY, rom.name, f"{stored:,}", 100 * moved[rom.name])
    loaded = sum(one.bytes for one in plan.constants if one.memory != one.home and one.copy is None)
    copied = sum(one.bytes for one in plan.copies.values())
    log.notice("constants: start-up copies %s bytes, an inference %s", f"{loaded:,}", f"{copied:,}")
