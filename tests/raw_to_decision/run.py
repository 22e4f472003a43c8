"""Raw images and sounds through exports on every set of x86, WebAssembly and boards in QEMU, stage by stage.

    python tests/raw_to_decision/run.py [-images 200] [-sounds 100] [-detections 50] [-seed 0]

Prints a line for each export. Exit status 1 when a build differs from Python.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1])]

from chain import BOARDS, HOSTS, RawCases, compare, draw  # noqa: E402


def check(cases: RawCases) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="n2d2py-raw-") as home:
        return compare(cases, Path(home))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    for name, count in (("images", 200), ("sounds", 100), ("detections", 50), ("seed", 0)):
        parser.add_argument(f"-{name}", type=int, default=count)
    arguments = parser.parse_args()
    drawn, failures = list(draw(arguments.images, arguments.sounds, arguments.detections, arguments.seed)), 0
    with ProcessPoolExecutor() as pool:
        for cases, wrong in zip(drawn, pool.map(check, drawn), strict=True):
            failures += len(wrong)
            text = "; ".join(wrong) or f"equal in {len(HOSTS) + len(BOARDS)} builds"
            print(f"{len(cases.raw):4} {cases.model:8} {' '.join(cases.words)}: {text}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
