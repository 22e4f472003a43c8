"""SingleFile=1: the one file alone gives what the project gives, bit for bit, on this machine and on boards."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.board_export import export_for_boards, make, need_core
from support.programs import need

from n2d2py.exports.mcu.boards import core
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph

WARNINGS = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fno-exceptions", "-fno-rtti"]
INPUTS = 432
"""Of the network `small`."""


@pytest.fixture(scope="module")
def single(tmp_path_factory) -> Path:
    """The file alone in a folder; beside it `export`, what it is of."""
    folder = tmp_path_factory.mktemp("single")
    written = export_for_boards(Path(__file__).parent / "small.ini", folder / "out", parameters="SingleFile=1\n")
    written.rename(folder / "export")
    (folder / "alone").mkdir()
    (folder / "export" / "src" / "small.hpp").rename(folder / "alone" / "small.hpp")
    (folder / "alone" / "one.cpp").write_text('#define small_IMPLEMENTATION\n#include "small.hpp"\n')
    return folder


def compiled(*words: str | Path, folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def results(library: Path, stimuli: np.ndarray) -> np.ndarray:
    network = ctypes.CDLL(str(library))
    arena = np.zeros(network.small_arena_bytes() // 8 + 2, np.uint64)
    found = np.full((len(stimuli), 5), 99, np.int8)
    for values, made in zip(stimuli, found, strict=True):
        inputs, outputs = (ctypes.c_void_p * 1)(values.ctypes.data), (ctypes.c_void_p * 1)(made.ctypes.data)
        network.small_forward_raw(inputs, outputs, arena.ctypes.data_as(ctypes.c_void_p))
    return found


def test_on_this_machine(single):
    need("g++")
    alone, export = single / "alone", single / "export"
    compiled("g++", *WARNINGS, "-O1", "-shared", "-fPIC", "one.cpp", "-o", "alone.so", folder=alone)
    sources = sorted(str(path) for part in ("src", "parameters") for path in (export / "dnn" / part).glob("*.cpp"))
    flags = ["-std=c++11", "-O1", "-shared", "-fPIC", "-Idnn/include", "-Ikernels", "-Dn2d2=n2d2_small"]
    compiled("g++", *flags, *sources, "-o", "project.so", folder=export)
    stimuli = np.random.default_rng(1).integers(0, 256, (20, INPUTS)).astype(np.uint8)
    found = results(alone / "alone.so", stimuli)
    assert len(np.unique(found)) > 5
    np.testing.assert_array_equal(found, results(export / "project.so", stimuli))


@pytest.mark.parametrize("name", ["cortex-m4", pytest.param("rv32imc", marks=pytest.mark.slow)])
def test_on_a_board(single, name):
    """With a compiler that has a C++ library, and with one that has none."""
    need_core(name)
    one, alone = core(name), single / "alone"
    link = single / "export" / "build" / f"{name}.elf"
    link.parent.mkdir(exist_ok=True)
    sections = ["-ffunction-sections", "-fdata-sections", "-fno-threadsafe-statics"]
    compiled(f"{one.prefix}g++", *WARNINGS, "-O2", *one.flags, *sections, "-c", "one.cpp", "-o", f"{name}.o", folder=alone)
    board = Path("boards") / one.board
    flags = ["-std=c99", "-O2", *one.flags, "-nostartfiles", "-Wl,--gc-sections", "-T", board / "board.ld"]
    program = ["boards/test.c", board / "startup.c", alone / f"{name}.o", *one.link, "-lm"]
    compiled(f"{one.prefix}gcc", *flags, *program, "-o", link, folder=single / "export")
    layers = len(read_graph(single / "export" / GRAPH_FILE).nodes)
    assert f"3 vectors, {layers} layers: identical" in make(single / "export", name, f"PROGRAM=build/{name}.elf", "run")


@pytest.mark.slow
def test_two_networks_in_one_source_file(single):
    need("g++")
    alone = single / "alone"
    (alone / "other.hpp").write_text((alone / "small.hpp").read_text().replace("small", "other"))
    (alone / "two.cpp").write_text(
        "#define small_IMPLEMENTATION\n#define other_IMPLEMENTATION\n"
        '#include "small.hpp"\n#include "other.hpp"\n#include "small.hpp"\n'
        "int main() {\n"
        "    static small_input_t in[small_INPUT_ELEMENTS];\n"
        "    small_output_t a[small_OUTPUT_ELEMENTS];\n"
        "    other_output_t b[other_OUTPUT_ELEMENTS];\n"
        "    for (int i = 0; i < small_INPUT_ELEMENTS; ++i)\n        in[i] = static_cast<small_input_t>(7 * i);\n"
        "    small::forward(in, a);\n    other::forward(in, b);\n"
        "    for (int i = 0; i < small_OUTPUT_ELEMENTS; ++i)\n        if (a[i] != b[i])\n            return 1;\n"
        "    return 0;\n}\n"
    )
    compiled("g++", *WARNINGS, "two.cpp", "-o", "two", folder=alone)
    compiled("./two", folder=alone)
