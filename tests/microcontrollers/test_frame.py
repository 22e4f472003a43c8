"""Frames of a camera on boards: the kernels against the definition, and the memory that a frame takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.board_export import make, need_core
from support.frame_cases import frame_cases, program
from support.kernel_harness import ROOT, WARNINGS

from n2d2py.exports.mcu.boards import core


@pytest.mark.parametrize(
    "name, count",
    [
        ("cortex-m4", 28),
        pytest.param("rv32imc", 28),
        pytest.param("cortex-m0", 56, marks=pytest.mark.slow),
        pytest.param("cortex-m55", 112, marks=pytest.mark.slow),
    ],
)
def test_kernels_on_a_board(small, name, count, tmp_path):
    """Without a C++ library; unaligned accesses fault."""
    need_core(name)
    cases, one, export = list(frame_cases(count, seed=count)), core(name), small.resolve()
    (tmp_path / "frames.cpp").write_text(program(cases, "semihosting_write(text)"))
    places = [f"-I{export}/{folder}" for folder in ("boards", "kernels/freestanding")]
    flags = ["-O2", *one.flags, "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-nostdinc++", "-DON_BOARD"]
    words = [f"{one.prefix}g++", *WARNINGS, "-Wno-pedantic", *flags, *places, f"-I{ROOT}/kernels", "-c", "frames.cpp"]
    subprocess.run(words, cwd=tmp_path, check=True)
    link = export / "build" / f"frames_{name}.elf"
    link.parent.mkdir(exist_ok=True)
    board = Path("boards") / one.board
    flags = ["-std=c99", "-O2", *one.flags, "-nostartfiles", "-Wl,--gc-sections", "-T", board / "board.ld"]
    program_words = [board / "startup.c", tmp_path / "frames.o", *one.link, "-lm", "-o", link]
    subprocess.run([f"{one.prefix}gcc", *flags, *program_words], cwd=export, check=True)
    printed = make(export, name, f"PROGRAM=build/frames_{name}.elf", "run").split()
    assert printed == [case.wanted for case in cases]
