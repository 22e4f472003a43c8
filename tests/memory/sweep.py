"""Random networks: every plan proved, and every optimization on and off gives the same bytes.

    python tests/memory/sweep.py [COUNT [FIRST]]

2,000 networks by default, from seed FIRST (0) on. Each is planned by every strategy and by row streaming with the input in the
arena and by rows, under settings that change from seed to seed; each plan is checked from its two files, then run on real
bytes in the least convenient order that the kernel contract allows (`execute.py`).
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "memory")]

from execute import run  # noqa: E402
from random_graphs import random_problem  # noqa: E402

from n2d2py.memory.checker import check_plan  # noqa: E402
from n2d2py.memory.modes import MODES, plan_mode  # noqa: E402
from n2d2py.memory.planning import plan_memory  # noqa: E402
from n2d2py.memory.settings import Settings  # noqa: E402
from n2d2py.memory.strategies import strategies  # noqa: E402
from n2d2py.memory.stream import StreamPlanner  # noqa: E402

SETTINGS = tuple(
    Settings(
        bool(i & 1),
        bool(i & 2),
        bool(i & 4),
        (1, 4)[i >> 3 & 1],
        buffer_alignment=(1, 16, 64)[i % 3],
        include_output=(True, None, False)[i // 5 % 3],
    )
    for i in range(16)
)
TABLES = 2000
"""From this seed on every second network has operators of the type "window"."""
NAMES = [name for name in strategies() if name != "OptimizeOptimal"]


def plans(problem, seed: int):
    """(what, plan) of a network, with all optimizations on, off, and the settings of the seed."""
    for settings in (SETTINGS[7], SETTINGS[0], SETTINGS[seed % 16]):
        keys = {
            "include_input": settings.include_input,
            "optimize_buffer": settings.optimize_buffer,
            "no_branch_concat": settings.no_branch_concat,
            "alignment": settings.alignment,
            "buffer_alignment": settings.buffer_alignment,
            "include_output": settings.include_output,
        }
        for name in NAMES:
            yield f"{name} {settings}", plan_memory(problem, strategy=name, **keys)
        yield f"input by rows {settings}", StreamPlanner(True).plan(problem, settings)
    yield MODES[seed % 3], plan_mode(problem, SETTINGS[7], MODES[seed % 3])


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


def main(words: list[str]) -> None:
    count, first = int(words[0]) if words else 2000, int(words[1]) if len(words) > 1 else 0
    made = 0
    for seed in range(first, first + count):
        made += check(seed)
        if (seed + 1) % 100 == 0:
            print(f"{seed + 1 - first} networks, {made} plans", flush=True)
    print(f"{count} networks, {made} plans: all proved, all results identical")


if __name__ == "__main__":
    main(sys.argv[1:])
