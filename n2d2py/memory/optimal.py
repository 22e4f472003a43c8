"""OptimizeOptimal: exact overlap placed by a constraint solver, which proves the arena or bounds it."""

from __future__ import annotations

from n2d2py.errors import N2D2Error
from n2d2py.memory.packing import Packing, Placement
from n2d2py.memory.plan import MemoryPlan
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.relax import relax
from n2d2py.memory.search import best_packing, improve
from n2d2py.memory.settings import Settings

_EFFORT = 10.0
"""The solver's own deterministic measure of time, roughly seconds: it stops at the same point everywhere."""


class OptimalPlanner:
    """OptimizeOverlap's plan, improved and bounded by CP-SAT of ortools."""

    name = "OptimizeOptimal"

    def plan(self, problem: MemoryProblem, settings: Settings) -> MemoryPlan:
        """The best plan within the solver's limit, with the bound that was proved.

        Raises E606 without ortools.
        """
        _solver()
        packing, placement = best_packing(problem, settings, improve)
        placement = solve(packing, placement)
        return packing.plan(self.name, relax(packing, placement))


def _solver():
    try:
        from ortools.sat.python import cp_model  # pyright: ignore[reportMissingImports]  (of the extra "solver")
    except ImportError as error:
        raise N2D2Error(
            "E606",
            "MemoryManagerStrategy=OptimizeOptimal requires ortools",
            remedy="pip install ortools, or use OptimizeOverlap",
        ) from error
    return cp_model


def solve(packing: Packing, start: Placement, effort: float = _EFFORT) -> Placement:
    """The best placement that CP-SAT finds from `start` on; raises `packing.bound` to what it proved."""
    if start.bytes <= packing.bound or not packing.blocks:
        return start
    cp_model = _solver()
    unit, blocks = packing.step, packing.blocks
    sizes = [block.size // unit for block in blocks]
    top = start.bytes // unit
    model = cp_model.CpModel()
    at = [model.new_int_var(0, top - size, f"at{i}") for i, size in enumerate(sizes)]
    back = [model.new_bool_var(f"back{n}") for n in range(len(packing.ops))]
    arena = model.new_int_var(-(-packing.bound // unit), top, "arena")
    for i, size in enumerate(sizes):
        model.add(at[i] + size <= arena)
    for i, neighbours in enumerate(packing.neighbours):
        for j, pair in neighbours.items():
            if j < i:
                continue
            below, above = model.new_bool_var(""), model.new_bool_var("")
            model.add(at[i] + sizes[i] <= at[j]).only_enforce_if(below)
            model.add(at[j] + sizes[j] <= at[i]).only_enforce_if(above)
            choices = [below, above]
            if pair is not None:
                ahead, backward = model.new_bool_var(""), model.new_bool_var("")
                distance = at[pair.output] - at[pair.source]
                model.add(distance <= pair.reach.ahead // unit).only_enforce_if(ahead)
                model.add(distance >= pair.reach.backward // unit).only_enforce_if(backward)
                model.add_implication(ahead, back[pair.op].negated())
                model.add_implication(backward, back[pair.op])
                choices += [ahead, backward]
            model.add_bool_or(choices)
    model.minimize(arena)
    for variable, offset in zip(at, start.offsets, strict=True):
        model.add_hint(variable, offset // unit)
    for variable, way in zip(back, start.backwards, strict=True):
        model.add_hint(variable, way)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(model)
    packing.bound = max(packing.bound, int(solver.best_objective_bound + 0.5) * unit)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return start
    found = Placement(
        tuple(solver.value(variable) * unit for variable in at),
        tuple(bool(solver.value(variable)) for variable in back),
        solver.value(arena) * unit,
    )
    return found if found.bytes < start.bytes else start
