"""Instructions of an inference on a board for each of many inputs."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from n2d2py.exports.mcu.boards import board, core
from n2d2py.exports.stimuli import hwc
from n2d2py.graph import QuantGraph
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph
from support.board_export import make

__all__ = ["INPUTS", "counted"]

INPUTS = 50


def stimuli(graph: QuantGraph, count: int) -> bytes:
    """The first ones are the least, the largest and the zero value everywhere, and both ends at random; the others random."""
    rng, rows = np.random.default_rng(1), []
    for index in range(count):
        for name in graph.inputs:
            kind, shape = graph.type(name), tuple(graph.shape(name)[1:])
            extremes = [
                np.full(shape, kind.qmin),
                np.full(shape, kind.qmax),
                np.full(shape, kind.zero_point),
                np.where(rng.random(shape) < 0.5, kind.qmin, kind.qmax),
            ]
            values = extremes[index] if index < len(extremes) else rng.integers(kind.qmin, kind.qmax, shape, endpoint=True)
            rows.append(hwc(values.astype(kind.dtype)).tobytes())
    return b"".join(rows)


def counted(folder: Path, name: str, words: Sequence[str] = (), count: int = INPUTS) -> list[int]:
    """Instructions of an inference for each stimulus."""
    (folder / "all.bin").write_bytes(stimuli(read_graph(folder / GRAPH_FILE), count))
    make(folder, name, *words, "all", "build/count.so")
    arguments = f"enable=on,target=native,arg=test,arg=counts,arg=all.bin,arg={count}"
    command = [*board(core(name).board).emulator.split(), "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-kernel", f"build/{name}/test.elf", "-semihosting-config", arguments]
    command += ["-plugin", "build/count.so,out=build/all"]
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL)
    found = [int(line) for line in (folder / "build" / "all").read_text().split()]
    assert len(found) == count
    return found
