"""Random networks: every plan proved, and every optimization on and off gives the same bytes.

    python tests/memory/sweep.py [COUNT [FIRST]]

2,000 networks by default, from seed FIRST (0) on. Each is planned by every strategy and by row streaming with the input in the
arena and by rows, under settings that change from seed to seed; each plan is checked from its two files, then run on real
bytes in the least convenient order that the kernel contract allows (`execute.py`).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.memory_plans import check  # noqa: E402


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
