"""Part of stage memory: constants in the memories of the export parameters, next to the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from n2d2py import log
from n2d2py.arithmetic.exact import round_up
from n2d2py.errors import N2D2Error
from n2d2py.exports import Target
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.checker import check_plan, refuse_violations
from n2d2py.memory.constants import place_constants
from n2d2py.memory.from_graph import PlannedNetwork
from n2d2py.memory.memories import moving_cost
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.settings import Settings

_RESERVED = (0, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Parts of the first memory that are tried for constants that start-up copies there."""
_ALIGNMENT = 8
"""Bytes, to a multiple of which each state is rounded up."""


def place_in_memories(planning: Callable[[Params], PlannedNetwork], params: Params, target: Target[Any]) -> PlannedNetwork:
    """Plan the network with its constants and states in the memories of the parameters: tensors and constants share the first
    memory where both are accessed most.

    Raises:
        N2D2Error: E607 where the memories are too small, E608 for a target that does not place constants.
    """
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
    """Yield plans that leave different numbers of bytes of the first memory to constants: `network`, and those of smaller memories."""
    settings, early = Settings.of(params), params.as_dict().get("CopyWeights") == "double"
    whole = settings.tensor_memories[0].bytes if settings.tensor_memories else 0
    for room in sorted({int(whole * part) for part in _RESERVED}):
        try:
            candidate = _reserving(room, settings, params, planning) if room else network
        except N2D2Error as error:
            if error.code != "E607":
                raise
            return
        constants = target.constant_needs(candidate.graph, candidate.plan, params.as_dict()) or ()
        for reserved in sorted({room, max(room, whole - candidate.plan.used[0])}) if whole else (0,):
            plan = place_constants(candidate.plan, constants, settings.roms, reserved, whole - reserved, early)
            yield replace(candidate, plan=plan)


def _reserving(room: int, settings: Settings, params: Params, planning: Callable[[Params], PlannedNetwork]) -> PlannedNetwork:
    """Return the planned network with so many bytes less in the first memory."""
    first = settings.tensor_memories[0]
    others = (text for text in params["Memories"] if not text.startswith(f"{first.name}:"))
    network = planning(params.with_values({"Memories": (f"{first.name}:{first.bytes - room}:{first.cost}", *others)}))
    memories = (replace(network.plan.memories[0], reserved=room), *network.plan.memories[1:])
    return replace(network, plan=replace(network.plan, memories=memories))


def _state_memory(graph: QuantGraph, settings: Settings) -> Any:
    """Return the memory of the states; None if there is none, or if there are no states.

    Raises:
        N2D2Error: E607 where it is too small.
    """
    memory = settings.state_memory
    if memory is not None and not graph.states:
        log.warning("W109", f"the memory {memory.name} has no effect: the network has no states", remedy="remove it")
        return None
    size = sum(round_up(graph.tensors[name].bytes, _ALIGNMENT) for name in graph.state_inputs)
    if memory is not None and size > memory.bytes:
        what = f"the memory {memory.name} has {memory.bytes:,} bytes, and the states take {size:,}"
        raise N2D2Error("E607", what, where="export parameters", remedy="make it larger")
    return memory


def log_constants(plan: MemoryPlan, moved: Mapping[str, float]) -> None:
    """Say where the constants are; `moved`: by memory the share of the bytes that an inference moves."""
    for rom in plan.roms:
        stored = sum(one.bytes for one in plan.constants if one.home == rom.name)
        share = 100 * moved[rom.name]
        log.notice("memory %s: %s bytes, %.1f %% of the bytes that an inference moves", rom.name, f"{stored:,}", share)
    loaded = sum(one.bytes for one in plan.constants if one.memory != one.home and one.copy is None)
    copied = sum(one.bytes for one in plan.copies.values())
    log.notice("constants: start-up copies %s bytes, an inference %s", f"{loaded:,}", f"{copied:,}")
