"""Part of stage memory: constants in the memories of the export parameters, next to the tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from n2d2py import log
from n2d2py.errors import N2D2Error
from n2d2py.graph import QuantGraph
from n2d2py.ini.params import Params
from n2d2py.memory.checker import check_plan, refuse_violations
from n2d2py.memory.constants import Constant, place_constants
from n2d2py.memory.from_graph import PlannedNetwork
from n2d2py.memory.memories import moving_cost
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.settings import Settings

ConstantNeeds = Callable[[QuantGraph, MemoryPlan, Mapping[str, Any]], "Sequence[Constant] | None"]
"""Constants of the layers of a plan under the export parameters; None for a target that does not place them."""
_RESERVED = (0, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Parts of the first memory that are tried for constants that start-up copies there."""


def place_in_memories(planning: Callable[[Params], PlannedNetwork], params: Params, needs: ConstantNeeds) -> PlannedNetwork:
    """The network that `planning` plans, with its constants and states in the memories of the parameters: the tensors and the
    constants share the first memory where both are read most.

    Raises:
        N2D2Error: E607 where the memories are too small, E608 for a target that does not place constants.
    """
    settings = Settings.of(params)
    found = planning(params)
    if not settings.roms and settings.state_memory is None:
        return found
    constants = needs(found.graph, found.plan, params.as_dict())
    if constants is None:
        what = "Memories: this export does not place constants and states, the kinds rom and states"
        raise N2D2Error("E608", what, where="export parameters", remedy="remove these memories, or use -export CPP_MCU")
    if settings.roms:
        candidates = list(_candidates(found, constants, planning, params, needs))
        found = min(candidates, key=lambda each: moving_cost(each.problem, each.plan))
    found = replace(found, plan=replace(found.plan, state_memory=_state_memory(found.graph, settings)))
    refuse_violations(check_plan(found.problem, found.plan))
    return found


def _candidates(
    found: PlannedNetwork,
    constants: Sequence[Constant],
    planning: Callable[[Params], PlannedNetwork],
    params: Params,
    needs: ConstantNeeds,
) -> Iterator[PlannedNetwork]:
    """Plans that leave different numbers of bytes of the first memory to constants."""
    settings = Settings.of(params)
    whole, early = settings.memories[0].bytes if settings.memories else 0, params.as_dict().get("CopyWeights") == "double"
    for part in _RESERVED if whole else (0,):
        room = int(whole * part)
        try:
            planned = _reserved(planning(_reserving(params, settings, room)), room) if room else found
        except N2D2Error as error:
            if error.code != "E607":
                raise
            return
        listed = needs(planned.graph, planned.plan, params.as_dict()) or () if room else constants
        for reserved in sorted({room, max(room, whole - planned.plan.used[0])}) if whole else (0,):
            plan = place_constants(planned.plan, listed, settings.roms, reserved, whole - reserved, early)
            yield replace(planned, plan=plan)


def _reserving(params: Params, settings: Settings, room: int) -> Params:
    """The parameters with so many bytes less in the first memory."""
    first = settings.memories[0]
    texts = [
        f"{first.name}:{first.bytes - room}:{first.cost}",
        *(text for text in params["Memories"] if _name(text) != first.name),
    ]
    return params.over({"Memories": tuple(texts)})


def _reserved(planned: PlannedNetwork, room: int) -> PlannedNetwork:
    """The network, whose plan knows of these bytes."""
    first, *others = planned.plan.memories
    return replace(planned, plan=replace(planned.plan, memories=(replace(first, reserved=room), *others)))


def _name(text: str) -> str:
    return text.partition(":")[0]


def _state_memory(graph: QuantGraph, settings: Settings) -> Any:
    """The memory of the states; None where there is none, or there are no states.

    Raises:
        N2D2Error: E607 where it is too small.
    """
    memory = settings.state_memory
    if memory is not None and not graph.states:
        log.warning("W109", f"the memory {memory.name} has no effect: the network has no states", remedy="remove it")
        return None
    if memory is not None and graph.state_bytes > memory.bytes:
        what = f"the memory {memory.name} has {memory.bytes:,} bytes, and the states take {graph.state_bytes:,}"
        raise N2D2Error("E607", what, where="export parameters", remedy="make it larger")
    return memory


def tell_constants(plan: MemoryPlan) -> None:
    """Say where the constants are."""
    copied, resident = (
        list(plan.copies.values()),
        [one for one in plan.constants if one.copy is None and one.home != one.memory],
    )
    stored = ", ".join(
        f"{sum(one.bytes for one in plan.constants if one.home == rom.name):,} bytes in {rom.name}" for rom in plan.roms
    )
    log.notice("constants: %s", stored)
    for what, ones in (("copied by start-up", resident), ("copied in each inference", copied)):
        if ones:
            log.notice("constants: %d of them, %s bytes, are %s", len(ones), f"{sum(one.bytes for one in ones):,}", what)
