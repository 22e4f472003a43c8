"""Mutation tests: small changes of the package, drawn by seed, that some test must notice.

    python tests/mutation/run.py [-n 200] [-seed 1] [-only n2d2py/memory] [-tests memory,quant] [-cache FOLDER]

The first run collects which test runs which statement, which takes as long as the tests themselves; later ones collect again the
files of tests that changed. Each mutant then meets the tests that run it, in a process of its own, until one fails; no file of the
checkout is written. Survivors are listed, with them those whose tests ran out of time without the change too; those of
`equivalent.py` are not tried, and shown with their reason. Exit status 1 when there is any survivor.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

import configobj  # noqa: E402, F401  what the package imports is loaded once, before the forks
import jinja2  # noqa: E402, F401
import matplotlib.pyplot  # noqa: E402, F401
import numpy  # noqa: E402, F401
import onnx.reference  # noqa: E402, F401
import onnxruntime  # noqa: E402, F401
import PIL.Image  # noqa: E402, F401
import tqdm  # noqa: E402, F401
from covering import Covering, collect, ran_at_import  # noqa: E402
from equivalent import EQUIVALENT, SIZES_OF_WORK, reason_of  # noqa: E402
from mutants import Mutant, SourceFile  # noqa: E402
from trial import Outcome, Result, Trials  # noqa: E402

PACKAGE = "n2d2py"
PARTS = ("frontend", "memory", "operators", "passes", "quant")
TESTS = "api,arithmetic,errors,frontend_ini,frontend_onnx,frontend_tflite,ini,memory,models,operators,passes,quant,reference,whole_chain"
SLOW = (
    "tests/cli/test_command.py",
    "tests/conformance/test_node_operators.py",
    "tests/export/test_ncnn_model.py",
    "tests/export/test_onnx_model.py",
    "tests/export/test_tflite_model.py",
    "tests/frontend_onnx/test_drawn_nodes.py",
    "tests/kernels/test_same_code.py",
    "tests/kernels/test_same_layers.py",
    "tests/memory/test_same_many_faults.py",
    "tests/memory/test_same_many_parts.py",
    "tests/memory/test_same_many_pictures.py",
    "tests/memory/test_same_many_plans.py",
    "tests/passes/test_same_near_misses.py",
    "tests/passes/test_same_rewrites.py",
    "tests/passes/test_same_single_rewrites.py",
    "tests/quant/test_same_many_forms.py",
    "tests/quant/test_same_many_integers.py",
    "tests/quant/test_same_many_recurrent.py",
    "tests/random_networks/test_fused_networks.py",
    "tests/random_networks/test_same_random_chains.py",
    "tests/random_networks/test_single_layers.py",
    "tests/whole_chain/test_same_draws.py",
    "tests/whole_chain/test_same_more_chains.py",
    "tests/whole_chain/test_same_refusals.py",
)
"""Files of tests that count beside those, slow ones too: tables that the documentation prints, most operators on arrays, what layers are
in other formats, rewrites of random networks and of near misses, and the C++ and integers of most layers have no others in this process."""
TABLES = (("n2d2py/docs.py", "pages"),)
"""Functions that print what modules say when they are imported: whoever runs them is a test of every table."""
COLLECTING = 900.0
"""Seconds for one file of tests."""


def draw(sources: list[SourceFile], only: str, count: int, seed: int) -> list[tuple[SourceFile, Mutant]]:
    """`count` mutants of the files whose path begins with or matches `only`; all of them when `count` is 0."""
    chosen = [source for source in sources if source.name.startswith(only) or fnmatch(source.name, only)]
    every = [(source, mutant) for source in chosen for mutant in source.mutants]
    return random.Random(seed).sample(every, count) if 0 < count < len(every) else every


def score(name: str, counts: Counter) -> str:
    """One line of the table at the end."""
    tried = counts.total() - counts["equivalent"]
    undecided = counts[Outcome.UNDECIDED.value]
    dead = tried - counts[Outcome.LIVES.value] - undecided
    share = f"{100 * dead / tried:.1f} %" if tried else "none"
    return (
        f"{name}: {dead} of {tried} killed ({share}), {counts[Outcome.LATE.value]} by time; {undecided} undecided,"
        f" {counts['equivalent']} equivalent"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=200, help="mutants that are drawn; 0: all")
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-only", default="", help="files whose path begins so, or matches it: n2d2py/memory, */onnx.py")
    parser.add_argument(
        "-again", action="store_true", help="what the last run with the same -n, -seed and -only let live, in the code of now"
    )
    parser.add_argument("-tests", default=TESTS, help="folders under tests/ whose fast tests count")
    parser.add_argument("-budget", type=float, default=10.0, help="seconds of tests for each mutant")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    parser.add_argument("-cache", type=Path, default=home / "n2d2py-mutation", help="where the collected records are kept")
    return parser.parse_args()


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    arguments = parse()
    os.chdir(ROOT)
    start = time.perf_counter()
    folders = [f"tests/{name}" for name in arguments.tests.split(",")]
    covering = Covering.read(collect(ROOT, PACKAGE, folders, arguments.cache, COLLECTING, say, SLOW))
    sources = [SourceFile(ROOT, path) for part in PARTS for path in sorted((ROOT / PACKAGE / part).rglob("*.py"))]
    covering.tables = set().union(*(covering.by_function.get(each, set()) for each in TABLES))
    covering.at_import = ran_at_import(ROOT, PACKAGE, [source.module for source in sources])
    lived = arguments.cache / f"lived-{arguments.n}-{arguments.seed}-{re.sub('[^a-z0-9]', '+', arguments.only)}.txt"
    if arguments.again:
        keys = lived.read_text(encoding="utf-8").split("\0")
        every = {repr(mutant.key): (source, mutant) for source in sources for mutant in source.mutants}
        say(f"{len(keys)} lived, {sum(key not in every for key in keys)} of them are there no more")
        drawn = [every[key] for key in keys if key in every]
    else:
        drawn = draw(sources, arguments.only, arguments.n, arguments.seed)
    equal = [mutant for _, mutant in drawn if reason_of(mutant)]
    tried = [(source, mutant) for source, mutant in drawn if not reason_of(mutant)]
    out = os.fdopen(os.dup(1), "w")

    def tell(at: int, result: Result) -> None:
        print(f"[{at + 1}/{len(tried)}] {result} {tried[at][1]}", file=out, flush=True)

    results = Trials(PACKAGE, covering, arguments.budget).run_all(tried, tell)
    totals: dict[str, Counter] = {}
    for name, outcome in (
        *((mutant.file, "equivalent") for mutant in equal),
        *((mutant.file, result.outcome.value) for (_, mutant), result in zip(tried, results, strict=True)),
    ):
        totals.setdefault("/".join(name.split("/")[:2]), Counter())[outcome] += 1
    unkilled = (Outcome.LIVES, Outcome.UNDECIDED)
    survivors = [mutant for (_, mutant), result in zip(tried, results, strict=True) if result.outcome in unkilled]
    if not arguments.again:
        lived.write_text("\0".join(repr(mutant.key) for mutant in survivors), encoding="utf-8")
    for mutant in equal:
        say(f"equivalent: {mutant}\n    {reason_of(mutant)}")
    known = {mutant.key for source in sources for mutant in source.mutants}
    for entry in EQUIVALENT:
        if entry.key not in known:
            say(f"equivalent.py: no such mutant any more: {entry.file}: {entry.function}: {entry.original}")
    names = {(mutant.file, name) for source in sources for mutant in source.mutants for name in mutant.names}
    for file, name in SIZES_OF_WORK.keys() - names:
        say(f"equivalent.py: no such constant any more: {file}: {name}")
    for mutant in survivors:
        say(f"SURVIVOR {mutant}\n    Equivalent{mutant.key!r}")
    for name, counts in (*sorted(totals.items()), ("all", sum(totals.values(), Counter()))):
        say(score(name, counts))
    say(f"{time.perf_counter() - start:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
