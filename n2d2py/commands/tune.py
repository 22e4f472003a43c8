"""Compares export parameters: memory, stack, flash and time of networks under each of several parameter files.

    n2d2py-tune [NET.ini ...] [-params FILE ...] [-o DIR] [-rounds N] [-threads N] [-nbbits N] [-- N2D2PY OPTIONS]

Without names: LeNet.ini and MobileNet.ini of the installation, and all presets; FILE is a path or the name of a preset. A
network with NET.npz next to it has
these weights, any other those of its file or random ones; options after -- go to every export (-calib 10 by default).
Exports stay in DIR (tune_params by default) as DIR/NET__PARAMS; DIR/tune_params.csv holds the printed table. The exports of
a network are timed interleaved; a ratio is the median over the rounds of its time over that of the first of the files.

RAM is the arena and the stack of one inference, flash the constants and the code; what the C library and main.cpp need
comes on top.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from n2d2py.commands.cli_common import build_tools_missing, networks, parameter_files, run_tool, split_options, weights_of
from n2d2py.concurrency import cores
from n2d2py.targets import text_table

MOMENT = 0.15
"""Seconds of one turn of a measurement."""


def machine() -> str:
    """Processor, cores, compiler and Python in one line."""
    model = platform.machine()
    try:
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    except OSError:
        pass
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"{model}, {cores()} cores, g++ {compiler}, Python {platform.python_version()}"


def bench(folder: Path, threads: int, count: int) -> float:
    """Return the seconds of the fastest of `count` inferences of a built export."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
    done = subprocess.run(
        ["bin/run_export", "-bench", str(count)], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)["min_us"] / 1e6


@dataclass(frozen=True)
class Row:
    """One export: bytes, and milliseconds of one inference; None where it failed, as `note` says."""

    network: str
    params: str
    arena: int | None = None
    stack: int | None = None
    constants: int | None = None
    code: int | None = None
    ms: float | None = None
    ratio: float | None = None
    note: str = ""


TITLES = ("network", "params", "arena B", "stack B", "constants B", "code B", "ms", "time", "note")


def export(network: Path, params: Path, folder: Path, nbbits: int, options: list[str]) -> tuple[Path | None, str]:
    """Build an export. Return its folder, or None and the error line of the tool or of make."""
    words = [str(network), "-seed", "1", "-export", "CPP", "-nbbits", str(nbbits), "-w", weights_of(network)]
    done = run_tool([*words, "-export-parameters", str(params), "-o", str(folder), "-quiet", *options])
    text = done.stdout
    if done.returncode == 0:
        (project,) = folder.glob("export_CPP_*")
        make = subprocess.run(["make", "-s", "-j2"], cwd=project, capture_output=True, text=True)
        if make.returncode == 0:
            return project, ""
        text = make.stderr
    lines = [line for line in text.splitlines() if "error" in line.lower()] or ["failed"]
    return None, lines[0]


def sizes(folder: Path) -> dict[str, int]:
    """Return the bytes that `make size` prints: arena, constants, stack, and code over its sections."""
    printed = subprocess.run(["make", "-s", "size"], cwd=folder, check=True, capture_output=True, text=True).stdout
    totals: dict[str, int] = {}
    for name, size in re.findall(r"^(.{24}) +(\d+)", printed, re.MULTILINE):
        key = name.split(",")[0].strip()
        totals[key] = totals.get(key, 0) + int(size)
    return totals


def sweep(
    network: Path, params: list[Path], folder: Path, rounds: int, threads: int, nbbits: int, options: list[str]
) -> list[Row]:
    """One row per file, in their order; exports that fail have a note."""
    folders: dict[Path, Path | None] = {}
    notes: dict[Path, str] = {}
    for file in params:
        print(f"{network.stem}, {file.stem} ...", file=sys.stderr, flush=True)
        folders[file], notes[file] = export(network, file, folder / f"{network.stem}__{file.stem}", nbbits, options)
    running = {file: columns for file in params if (columns := folders[file]) is not None}
    times: dict[Path, list[float]] = {file: [] for file in params}
    if running:
        count = max(3, int(MOMENT / bench(next(iter(running.values())), threads, 3)))
        for number in range(rounds):
            for file in running if number % 2 else reversed(running):
                times[file].append(bench(running[file], threads, count))
    rows = []
    for file in params:
        row = Row(network.stem, file.stem, note=notes[file])
        if (built := folders[file]) is not None:
            columns = sizes(built)
            ratio = statistics.median(a / b for a, b in zip(times[file], times[next(iter(running))], strict=True))
            parts = {name: columns.get(name) for name in ("arena", "stack", "constants", "code")}
            row = replace(row, **parts, ms=1e3 * statistics.median(times[file]), ratio=ratio)
        rows.append(row)
    return rows


def _cell(value: str | int | float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if isinstance(value, float) else value


def main(words: list[str] | None = None) -> int:
    """Run the command `n2d2py-tune`; return its exit status."""
    arguments, options = split_options(sys.argv[1:] if words is None else words)
    parser = argparse.ArgumentParser(
        prog="n2d2py-tune", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-params", nargs="+", default=[], metavar="FILE")
    parser.add_argument("-o", type=Path, default=Path("tune_params"))
    parser.add_argument("-rounds", type=int, default=11)
    parser.add_argument("-threads", type=int, default=1)
    parser.add_argument("-nbbits", type=int, default=8)
    chosen = parser.parse_args(arguments)
    files = networks(parser, chosen.networks), parameter_files(parser, chosen.params)
    if missing := build_tools_missing():
        print(f"error: {missing}", file=sys.stderr)
        return 1
    options = options or ["-calib", "10", "-db-export", "1"]
    rows: list[Row] = []
    for network in files[0]:
        params, folder = [file.resolve() for file in files[1]], chosen.o.resolve()
        rows += sweep(network.resolve(), params, folder, chosen.rounds, chosen.threads, chosen.nbbits, options)
    chosen.o.mkdir(parents=True, exist_ok=True)
    with (chosen.o / "tune_params.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows)
    print(f"{machine()}; {chosen.threads} thread{'s' if chosen.threads > 1 else ''}; time: against the first file")
    print(text_table(TITLES, [[_cell(value) for value in astuple(row)] for row in rows], left=(0, 1, 8)), end="")
    return 1 if any(row.note for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
