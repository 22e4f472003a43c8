"""The place of every tensor, by a strategy and the export parameters of the memory."""

from __future__ import annotations

from n2d2py.errors import N2D2Error
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import Settings
from n2d2py.memory.strategies import DEFAULT_STRATEGY, planner


def plan_memory(
    problem: MemoryProblem,
    *,
    strategy: str = DEFAULT_STRATEGY,
    include_input: bool = True,
    optimize_buffer: bool = True,
    no_branch_concat: bool = True,
    alignment: int = 1,
    clock: str = "level",
    buffer_alignment: int = 16,
    include_output: bool | None = None,
) -> MemoryPlan:
    """The place of every tensor in the arena, by the export parameters of the memory.

    `alignment` (bytes, at least 1) rounds the pixel stride, `buffer_alignment` the address of a
    buffer where the strategy places buffers singly (OptimizeOverlap and later ones). `clock`, for
    N2D2's strategies: "level" frees memory between the depth levels of the graph, as N2D2; "op"
    between operators. Raises E601 for an unknown strategy, E602 for a graph that cannot be planned,
    E603 for a setting out of range.
    """
    chosen = planner(strategy)
    for key, value in (("MemoryAlignment", alignment), ("BufferAlignment", buffer_alignment)):
        if value < 1:
            raise N2D2Error("E603", f"{key}={value} is below 1", remedy="give 1, 2, 4, 8, ...")
    if clock not in ("level", "op"):
        raise N2D2Error("E603", f"memory clock {clock} is unknown", remedy="use level or op")
    problem.validate()
    return chosen.plan(
        problem, Settings(include_input, optimize_buffer, no_branch_concat, alignment, clock, buffer_alignment, include_output)
    )
