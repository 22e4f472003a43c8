"""Damaged inputs of every kind: each ends well or with one numbered error, in seconds, within the memory.

    python tests/fuzz/run.py [-n 3000] [-seed 1] [-jobs 2] [-kinds ini,onnx] [-only 17] [-keep FOLDER] [-small]

Each case runs in a child process with limits of time and memory. Failures are made small and kept in FOLDER.
Exit status 1 when there was any.
"""

import argparse
import multiprocessing
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parent)]

from fuzz_cases import KINDS, Case, Stock, shrunk  # noqa: E402
from fuzz_process import End, run_limited  # noqa: E402

STOCK: Stock | None = None
"""Made before the workers fork."""


def warm() -> None:
    """Imports what a run needs once, so that children find it there."""
    import importlib

    for name in ("onnx.reference", "onnx.inliner", "PIL.Image", "n2d2py.pipeline"):
        importlib.import_module(name)
    if "loadable" in KINDS:
        importlib.import_module("n2d2py_nvdla.cli")


def tried(case: Case) -> End:
    """The end of a case, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="n2d2py-fuzz-") as name:
        folder = Path(name) / "case"
        folder.mkdir()
        case.write(folder)
        return run_limited(case.run, folder, Path(name) / "output")


def kept(case: Case, end: End, folder: Path) -> None:
    """Leaves the files, the command and the messages of a failure in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case.write(folder)
    text = f"{case.name}\n{shlex.join(case.command)}\n{end.wrong}\nsteps: {' '.join(case.steps)}\n\n{end.text}"
    (folder / "failure.txt").write_text(text, encoding="utf-8")


def batch(seed: int, numbers: list[int], kinds: tuple[str, ...], keep: Path) -> tuple[Counter, list[str]]:
    """Counts of ends by kind and end, and a line for each failure."""
    counts: Counter = Counter()
    failures = []
    for number in numbers:
        case = STOCK.case(seed, number, kinds)  # type: ignore[union-attr]
        end = tried(case)
        counts[case.name.split()[0], "wrong" if end.wrong else end.kind] += 1
        if end.wrong:
            small = shrunk(case, lambda less, wrong=end.wrong: tried(less).wrong == wrong)
            last = tried(small)
            kept(small, last, keep / f"{seed}-{number}")
            line = next((line for line in last.text.splitlines() if line.startswith("error")), "")
            failures.append(f"{seed}-{number}: {case.name}: {end.wrong}: {line[:200]}")
    return counts, failures


def fuzz(seed: int, numbers: list[int], kinds: tuple[str, ...], jobs: int, keep: Path) -> tuple[Counter, list[str]]:
    """All cases `numbers` of a seed, on `jobs` processes."""
    total: Counter = Counter()
    failures: list[str] = []
    parts = [numbers[start : start + 20] for start in range(0, len(numbers), 20)]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool:
        for future in as_completed([pool.submit(batch, seed, part, kinds, keep) for part in parts]):
            counts, lines = future.result()
            total += counts
            failures += lines
            for line in lines:
                print(line, flush=True)
    return total, sorted(failures)


def main() -> int:
    global STOCK
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", type=int, default=3000)
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("-kinds", default=",".join(KINDS))
    parser.add_argument("-only", type=int, help="the case of this number alone")
    parser.add_argument("-keep", type=Path, default=Path("fuzz_failures"), help="folder for the files of failures")
    parser.add_argument("-small", action="store_true", help="without the node tests of the onnx package")
    arguments = parser.parse_args()
    start = time.perf_counter()
    warm()
    STOCK = Stock(with_node_tests=not arguments.small)
    numbers = list(range(arguments.n)) if arguments.only is None else [arguments.only]
    kinds = tuple(arguments.kinds.split(","))
    counts, failures = fuzz(arguments.seed, numbers, kinds, arguments.jobs, arguments.keep)
    for kind in kinds:
        ends = sorted((count, end) for (found, end), count in counts.items() if found == kind)
        print(f"{kind}: {sum(count for count, _ in ends)} cases, " + ", ".join(f"{count} {end}" for count, end in ends[::-1]))
    print(f"{sum(counts.values())} cases, {len(failures)} failures, {time.perf_counter() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
