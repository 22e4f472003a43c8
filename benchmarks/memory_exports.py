"""Compiled exports of one network under several memory modes: arenas by the linker, bits, times of each against the others."""

from __future__ import annotations

import json
import statistics
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from common import MOMENT, bench, build, export_words, in_turns, ratio, run_tool
from support.memory_files import read_graph

import n2d2py
from n2d2py.memory.problem import MemoryProblem

__all__ = ["MODES", "Measured", "measure"]

MODES = {
    "Speed": "MemoryMode=Speed\n",
    "Balanced": "MemoryMode=Balanced\n",
    "Small": "MemoryMode=Small\n",
    "StreamInput=1": "MemoryMode=Small\nStreamInput=1\n",
}


@dataclass(frozen=True)
class Measured:
    """`arenas` in bytes by mode; `ratios`: time of one inference by mode over that of Speed, medians over the rounds;
    `milliseconds`: median of the rounds for Speed."""

    problem: MemoryProblem
    arenas: dict[str, int]
    ratios: dict[str, float]
    milliseconds: float


def measure(network: Path, modes: list[str], rounds: int, threads: int, folder: Path) -> Measured:
    """Exports, builds, compares every layer with the integers of Python, and times in turns.

    Raises:
        SystemExit: where an integer differs or an arena is not the reported one.
    """
    folders = {mode: _export(network, folder / mode.partition("=")[0], MODES[mode]) for mode in modes}
    for mode, built in folders.items():
        _compare(mode, built)
    arenas = {mode: _arena(built) for mode, built in folders.items()}
    count = max(3, int(MOMENT / bench(folders[modes[0]], threads, 3)))
    times = in_turns({mode: partial(bench, folders[mode], threads, count) for mode in modes}, rounds)
    ratios = {mode: ratio(times[mode], times[modes[0]]) for mode in modes}
    graph = json.loads((folders[modes[0]] / "statistics" / "memory" / "memory_graph.json").read_text())
    return Measured(read_graph(graph), arenas, ratios, 1e3 * statistics.median(times[modes[0]]))


def _export(network: Path, folder: Path, parameters: str) -> Path:
    folder.mkdir()
    (folder / "params.ini").write_text(parameters)
    options = (
        f"-nbbits 8 -calib 4 -quality fast -input-bits 8 -output-bits 8 -db-export 2 -export-parameters {folder / 'params.ini'}"
    )
    run_tool(export_words(network, folder, options))
    return build(folder / "export_CPP_int8", "bin/run_export")


def _compare(mode: str, folder: Path) -> None:
    """Every layer against the simulation."""
    compiled = n2d2py.load_export(folder)
    random = np.random.default_rng(0)
    inputs = [
        random.integers(port.type.qmin, port.type.qmax + 1, (1, *port.shape[1:])).astype(port.dtype)
        for port in compiled.info.inputs
    ]
    expected, found = n2d2py.load_simulator(folder).layers(*inputs), compiled.layers(*inputs)
    wrong = [name for name, values in found.items() if not np.array_equal(expected.get(name), values)]
    if wrong or len(found) != len(expected):
        raise SystemExit(f"{folder}: {mode}: {len(wrong)} layers differ from the simulation, first {wrong[:3]}")


def _arena(folder: Path) -> int:
    """Bytes of the arena by the linker's table, which must be those of the map."""
    table = subprocess.run(["nm", "-S", str(folder / "bin" / "run_export")], capture_output=True, text=True, check=True).stdout
    (size,) = [int(line.split()[1], 16) for line in table.splitlines() if "staticArena" in line and line.split()[2] in "bB"]
    planned = json.loads((folder / "statistics" / "memory" / "memory_map.json").read_text())["arena_size"]
    if size != planned:
        raise SystemExit(f"{folder}: the arena has {size} bytes, the map says {planned}")
    return size
