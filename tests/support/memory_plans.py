"""Every plan of a random network, proved and run on real bytes."""

from n2d2py.memory.checker import check_plan
from n2d2py.memory.format import in_known_terms
from n2d2py.memory.plan import Plane
from n2d2py.memory.problem import MemoryProblem
from n2d2py.memory.settings import MODES, Settings, read_memories
from n2d2py.memory.strategies import PLANNERS, plan_memory
from support.memory_execute import run
from support.memory_graphs import settings_of

PLAIN = Settings(include_input=False, optimize_buffer=False, no_branch_concat=False)
"""Without optimizations."""
NAMES = [name for name in PLANNERS if name != "OptimizeOptimal"]


def plans(problem: MemoryProblem, seed: int):
    """(what, plan) of a network, with all optimizations on, off, and the settings of the seed."""
    for settings in (Settings(), PLAIN, settings_of(seed)):
        for name in NAMES:
            yield f"{name} {settings}", plan_memory(problem, settings, strategy=name)
        if not problem.states:  # which StreamInput excludes
            yield f"input by rows {settings}", plan_memory(problem, settings, strategy="OptimizeStream", stream_input=True)
    yield MODES[seed % 3], plan_memory(problem, mode=MODES[seed % 3])
    memories = read_memories((f"FAST:{(1, 4, 16)[seed % 3]}k:1", "NEXT:8k:2.5", "SLOW:64M:10"))
    for mode in ("Balanced", "auto"):
        yield f"memories, {mode}", plan_memory(problem, settings_of(seed), memories=memories, mode=mode)


def check(problem: MemoryProblem, seed: int) -> int:
    """The number of plans of one network; raises AssertionError for one that is unsafe or computes other bytes."""
    expected = run(problem, None)
    count = 0
    for what, plan in plans(problem, seed):
        for faults in (check_plan(problem, plan), check_plan(in_known_terms(problem, plan), plan)):
            assert not faults, f"seed {seed}, {what}: {faults[0]}"
        assert run(problem, plan, seed) == expected, f"seed {seed}, {what}: other bytes"
        count += 1
    return count


def line_offset(plane: Plane, y: int) -> int:
    """The byte address of row y of a plane in the arena."""
    if plane.ring_rows is not None:
        return plane.offset + y % plane.ring_rows * plane.line_bytes
    before = plane.lines_before_wrap
    return plane.offset + y * plane.line_bytes if y < before else plane.wrap_offset + (y - before) * plane.line_bytes
