"""Exports networks as a user does and prints what it costs and what it gives, as a Markdown table.

    python benchmarks/exports.py [-calib N] [NET.ini ...]

Without names: the networks of the repository, and those of tests/networks when N2D2_DATA and
N2D2_MODELS are set. Every export is made by the command `n2d2py`, built by `make -j2` and timed by
`bin/run_export -bench`. Times are those of the machine named in the first line.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from common import ROOT, TOOL, export_words, header, machine, row, run_export


class Cost(NamedTuple):
    """Seconds, peak resident megabytes and processor seconds of a command."""

    seconds: float
    megabytes: float
    processor: float


def measured(command: list[str], folder: Path) -> Cost:
    """What a command costs.

    Raises:
        SystemExit: with the command's output when it fails.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{output}")
    return Cost(time.perf_counter() - start, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def cells(network: Path, calib: int) -> list[str]:
    """The table's cells for one network."""
    with tempfile.TemporaryDirectory() as name:
        words = export_words(network, Path(name), f"-nbbits 8 -calib {calib} -db-export 100 -test")
        tool = measured([*TOOL, *words], ROOT)
        export = Path(name) / "export_CPP_int8"
        summary = json.loads((export / "statistics" / "summary.json").read_text())
        build = measured(["make", "-j2"], export)
        bench = json.loads(run_export(export, "-bench", "50"))
    scores = [summary["scores"][label] for label in ("float", "simulated", "compiled")]
    return [
        network.stem,
        *("-" if score is None else f"{score:.2f}" for score in scores),
        f"{summary['macs'] / 1e6:.1f}",
        f"{summary['arena_bytes']:,}",
        f"{summary['weights_bytes']:,}",
        f"{tool.seconds:.1f}",
        f"{tool.megabytes:.0f}",
        f"{build.seconds:.1f}",
        f"{bench['median_us'] / 1000:.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("-calib", type=int, default=100)
    arguments = parser.parse_args()
    networks = arguments.networks or [ROOT / "models" / "LeNet.ini", ROOT / "models" / "MobileNet.ini"]
    if not arguments.networks and {"N2D2_DATA", "N2D2_MODELS"} <= set(os.environ):
        networks += sorted((ROOT / "tests" / "networks").glob("*.ini"))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(f"Machine: {machine()}. {arguments.calib} calibration stimuli.\n")
    header(*"network|float %|int8 %|compiled %|MMACs|arena B|weights B|tool s|tool MB|make -j2 s|ms, 1 thread".split("|"))
    for network in networks:
        row(*cells(network.resolve(), arguments.calib))


if __name__ == "__main__":
    main()
