"""Every plan of a random network, proved and run on real bytes."""

from n2d2py.memory.checker import check_plan
from n2d2py.memory.settings import MODES, Settings, read_memories
from n2d2py.memory.strategies import PLANNERS, plan_memory
from support.memory_execute import run
from support.memory_graphs import random_problem

SETTINGS = tuple(
    Settings(
        include_input=bool(i & 1),
        optimize_buffer=bool(i & 2),
        no_branch_concat=bool(i & 4),
        alignment=(1, 4)[i >> 3 & 1],
        buffer_alignment=(1, 16, 64)[i % 3],
        include_output=(True, None, False)[i // 5 % 3],
    )
    for i in range(16)
)
TABLES = 2000
"""From this seed on every second network has operators of the type "window"."""
NAMES = [name for name in PLANNERS if name != "OptimizeOptimal"]


def plans(problem, seed: int):
    """(what, plan) of a network, with all optimizations on, off, and the settings of the seed."""
    for settings in (SETTINGS[7], SETTINGS[0], SETTINGS[seed % 16]):
        for name in NAMES:
            yield (f"{name} {settings}", plan_memory(problem, settings, strategy=name))
        yield f"input by rows {settings}", plan_memory(problem, settings, strategy="OptimizeStream", stream_input=True)
    yield MODES[seed % 3], plan_memory(problem, SETTINGS[7], mode=MODES[seed % 3])
    memories = read_memories((f"FAST:{(1, 4, 16)[seed % 3]}k:1", "NEXT:8k:2.5", "SLOW:64M:10"))
    for mode in ("Balanced", "auto"):
        yield f"memories, {mode}", plan_memory(problem, SETTINGS[seed % 16], memories=memories, mode=mode)


def check(seed: int) -> int:
    """The number of plans of one network; raises AssertionError for one that is unsafe or computes other bytes."""
    problem = random_problem(seed, tables=seed % 2 == 1 and seed >= TABLES)
    expected = run(problem, None)
    count = 0
    for what, plan in plans(problem, seed):
        faults = check_plan(problem, plan)
        assert not faults, f"seed {seed}, {what}: {faults[0]}"
        assert run(problem, plan, seed) == expected, f"seed {seed}, {what}: other bytes"
        count += 1
    return count
