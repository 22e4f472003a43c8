"""Random networks through the whole chain, as many as wanted.

    python tests/random_networks/run.py [-n 10000] [-seed 0] [-workers 2 | -cluster ADDRESS] [-batch 25] [-flags "-O0"]

Prints the network of each failure. Exit status 1 when there was any.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parent)]

from n2d2py.concurrency import cores  # noqa: E402
from n2d2py.executor import add_options, of_options  # noqa: E402

Part = tuple[list[int], tuple[str, ...], list[str]]


def batch_of(part: Part) -> tuple[Counter, list[str]]:
    """Counts of outcomes, and reports of failures, of (seeds, flags, folders of the modules)."""
    seeds, flags, folders = part
    sys.path[:0] = [folder for folder in folders if folder not in sys.path]  # other machines know no script
    from network_chain import Failure, report, run_batch
    from network_generator import generate

    counts: Counter = Counter()
    reports = []
    with tempfile.TemporaryDirectory(prefix="n2d2py-random-") as name:
        specs = [generate(seed) for seed in seeds]
        for spec, outcome in zip(specs, run_batch(specs, Path(name) / "batch", flags), strict=True):
            if outcome is None:
                counts["correct"] += 1
            elif isinstance(outcome, Failure):
                counts["wrong"] += 1
                reports.append(report(spec, outcome))
            else:
                counts[f"refused {outcome.code}"] += 1
    return counts, reports


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=10000)
    parser.add_argument("-seed", type=int, default=0)
    add_options(parser, cores())
    parser.add_argument("-batch", type=int, default=25)
    parser.add_argument("-flags", default="-O0")
    arguments = parser.parse_args()
    executor = of_options(parser, arguments)
    seeds = range(arguments.seed, arguments.seed + arguments.n)
    flags, folders = tuple(arguments.flags.split()), sys.path[:3]
    parts: list[Part] = [
        (list(seeds[start : start + arguments.batch]), flags, folders) for start in range(0, len(seeds), arguments.batch)
    ]
    total: Counter = Counter()
    start = time.perf_counter()
    for _, (counts, reports) in executor.run(batch_of, parts):
        total += counts
        for text in reports:
            print(f"{text}\n{'-' * 80}", flush=True)
        print(
            f"{sum(total.values())} networks, {time.perf_counter() - start:.0f} s: "
            + ", ".join(f"{count} {what}" for what, count in sorted(total.items())),
            file=sys.stderr,
            flush=True,
        )
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
