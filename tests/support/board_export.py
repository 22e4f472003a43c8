"""Exports for boards, built, run in QEMU and measured."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from n2d2py.cli import main
from n2d2py.exports.mcu.boards import CORES, board, core
from n2d2py.exports.stimuli import hwc
from n2d2py.graph import QuantGraph
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph
from support.kernel_harness import WARNINGS
from support.programs import need, run_command

CORE_NAMES = tuple(one.name for one in CORES)
ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ["N2D2_DATA"]) if "N2D2_DATA" in os.environ else ROOT.parent / "shared" / "data"


def need_core(name: str) -> None:
    """Skips the test where the compiler of a core, QEMU or make is absent."""
    one = core(name)
    need("make", one.compiler, f"{one.prefix}gcc", board(one.board).emulator.split()[0])


def export_for_boards(network: Path, out: Path, *words: str, parameters: str = "", calibrate: bool = True) -> Path:
    """The folder of an 8-bit export of a network with random weights, or with those of the file beside it."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "params.ini").write_text(parameters)
    weights = network.with_suffix(".npz")
    common = [
        "-seed",
        "1",
        "-w",
        str(weights) if weights.is_file() else "/dev/null",
        *(["-calib", "4", "-quality", "fast"] if calibrate else []),
    ]
    arguments = ["-export", "CPP_MCU", "-nbbits", "8", "-export-parameters", str(out / "params.ini"), "-o", str(out), "-quiet"]
    assert main([str(network), *common, *arguments, *words]) == 0
    return out / "export_CPP_MCU_int8"


def compiled(folder: Path, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`make TARGET=name` with more words, in an export, with the warnings of strict projects; the test is skipped without its tools."""
    need_core(name)
    strict = "-Werror -Wundef -Wsign-conversion -Wredundant-decls"
    return subprocess.run(
        ["make", "-j2", f"TARGET={name}", f"CXXFLAGS={strict}", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def make(folder: Path, name: str, *words: str) -> str:
    """What a build that succeeds prints."""
    done = compiled(folder, name, *words)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def library(folder: Path, name: str) -> Path:
    """The built library."""
    (found,) = (folder / "lib" / name).glob("lib*.a")
    return found


def tool(name: str, program: str, *words: str | Path) -> str:
    """What a tool of a core's compiler, such as nm, prints."""
    return run_command(f"{core(name).prefix}{program}", *words)


def board_program(export: Path, name: str, text: str, folder: Path, goal: str = "run") -> str:
    """The output of a C++ program on a core: compiled in `folder` without a C++ library, with the board of an export.

    `goal`: "count" for the instructions between markers instead, after each printed line.
    """
    one, export = core(name), export.resolve()
    (folder / "program.cpp").write_text(text)
    places = [f"-I{export}/{each}" for each in ("boards", "kernels/freestanding")]
    flags = ["-O2", *one.flags, "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-nostdinc++", "-DON_BOARD"]
    words = [f"{one.prefix}g++", *WARNINGS, "-Wno-pedantic", *flags, *places, f"-I{ROOT}/kernels", "-c", "program.cpp"]
    run_command(*words, cwd=folder)
    link = export / "build" / f"{folder.name}_{name}.elf"
    (link.parent / name).mkdir(parents=True, exist_ok=True)
    files = Path("boards") / one.board
    flags = ["-std=c99", "-O2", *one.flags, "-nostartfiles", "-Wl,--gc-sections", "-T", files / "board.ld"]
    objects = [files / "startup.c", folder / "program.o", *one.link, "-lm", "-o", link]
    run_command(f"{one.prefix}gcc", *flags, *objects, cwd=export)
    return make(export, name, f"PROGRAM=build/{link.name}", "-s", goal)


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
