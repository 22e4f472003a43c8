"""Packed weights that are unpacked, or transformed for Winograd's form, once, into static memory: bit for bit, where, how much, by whom."""

import json
import subprocess
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import LEVELS, check_build, need_isa, on_builds
from support.kernel_cases import S8, U8
from support.kernel_packed import FEWER, WEIGHTS, few_bits, winograd_case
from support.programs import run_command

from n2d2py.cli import main
from n2d2py.contracts.cpp.code import LayerCode
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import ExportChoices, layer_code

ROOT = Path(__file__).resolve().parents[2]


def code_of(case: harness.Case, prepacks: bool = True) -> LayerCode:
    return layer_code(case.node, case.graph, case.plan, Identifiers(case.graph), ExportChoices(prepacks_weights=prepacks))


def is_prepacked(case: harness.Case) -> bool:
    storage = code_of(case).selection.storage
    return bool(storage and storage.kept)


def prepacked(seed: int) -> list[harness.Case]:
    """The layers of few bits that unpack once: fully connected ones, and convolutions of few pixels."""
    sweep, made = cases.Sweep(seed), few_bits(seed)
    for channels, outputs, size, kind in zip(
        (16, 20, 64, 33), cycle((16, 40, 7)), cycle(((1, 1), (3, 4))), cycle(WEIGHTS | FEWER)
    ):
        made.append(winograd_case(sweep, channels, outputs, size, (1, 1, 1, 1), U8, "apart", kind, 3))
    return [replace(case, prepacks=True) for case in made if is_prepacked(case)]


def kept(seed: int) -> list[harness.Case]:
    """3 x 3 layers of up to 16 tiles: one part of the channels and two, panels of 16 outputs and of 8."""
    sweep, made = cases.Sweep(seed), []
    outputs, kinds = cycle((16, 24, 32)), cycle((*WEIGHTS, *FEWER))
    sizes, layouts = cycle(((8, 8), (7, 11), (4, 4), (13, 14))), cycle(("apart", "strided", "over", "wrapped"))
    for channels, kind in zip((8, 12, 16, 32, 44, 64, 128, 132, 256), cycle((U8, S8))):
        size, layout = next(sizes), next(layouts)
        made.append(winograd_case(sweep, channels, next(outputs), size, (1, 1, 1, 1), U8, layout, next(kinds), 5, kind))
    return [replace(case, prepacks=True) for case in made]


def test_the_cases_are_prepacked():
    configs = [code_of(case).config for case in prepacked(1)]
    assert len(configs) > 20 and sum(" Prepacked = 1" in config for config in configs) > 15
    found = ["PrepackedWinograd = 1" in code_of(case).config for case in kept(1)]
    assert np.mean(found) > 0.7, found
    assert not any("Prepacked" in code_of(case, False).config for case in [*prepacked(1), *kept(1)])


@on_builds(
    {"-O0 avx2": 2, "-O0": 5, "-O0 emulated-avxvnni": 8}, f"g++|clang++ {LEVELS} avx2|sse4", "-O1 emulated-avx512", "-O0 sse4"
)
def test_bit_for_bit(tmp_path, build, every):
    check_build([*prepacked(3)[::every], *kept(3)[::every]], tmp_path, build)


NETWORK = """[database]
Type=Random_Database
NbStimuli=8

[sp]
Size=4 4 32

[conv]
Input=sp
Type=Conv
KernelDims=3 3
Padding=1
NbOutputs=40
ActivationFunction=Rectifier
QuantWeightBits=4

[fc1]
Input=conv
Type=Fc
NbOutputs=33
ActivationFunction=Rectifier
QuantWeightBits=4

[fc2]
Input=fc1
Type=Fc
NbOutputs=10
QuantWeightBits=4

[fc2.Target]
"""


def exported(tmp_path: Path, *words: str, parameters: str = "") -> tuple[dict, Path]:
    """The manifest's packed weights, and the export."""
    (tmp_path / "net.ini").write_text(NETWORK)
    (tmp_path / "params.ini").write_text(parameters)
    common = ["-seed", "1", "-w", "/dev/null", "-calib", "8", "-quality", "fast", "-db-export", "2", "-quiet"]
    more = ["-export-parameters", str(tmp_path / "params.ini"), "-o", str(tmp_path / "out"), *words]
    assert main([str(tmp_path / "net.ini"), *common, "-export", "CPP", "-nbbits", "8", *more]) == 0
    folder = tmp_path / "out" / "export_CPP_int8"
    return json.loads((folder / "manifest.json").read_text())["details"]["packed_weights"], folder


def static_bytes(folder: Path) -> list[int]:
    """Sizes of what layers keep, by the symbols of the library."""
    run_command("make", "-s", "ARCH=-march=haswell", "OPENMP=0", cwd=folder)
    names = run_command("nm", "-CS", folder / "bin" / "run_export")
    places = [line.split() for line in names.splitlines() if "Prepacked<" in line and line.endswith("::place")]
    return sorted(int(fields[1], 16) for fields in places)


def test_the_manifest_says_the_bytes_of_the_program(tmp_path):
    """Those of the linker's symbols are the referee; an array of panels is aligned to 64 bytes."""
    need_isa("avx2")
    layers, folder = exported(tmp_path)
    said = sorted(layer["bytes_prepacked"] for layer in layers.values())
    assert static_bytes(folder) == [-(-one // 64) * 64 for one in said] and len(said) == 3
    summary = json.loads((folder / "statistics" / "summary.json").read_text())
    assert summary["prepacked_weights_bytes"] == sum(said)
    size = subprocess.run(
        ["make", "-s", "ARCH=-march=haswell", "OPENMP=0", "size"], cwd=folder, check=True, capture_output=True, text=True
    )
    assert f"{'weights, unpacked':24} {sum(static_bytes(folder)):10}" in size.stdout.splitlines()
    assert layers["conv"]["bytes_prepacked"] > 8 * 9 * 32 * 40  # 36 positions of two bytes for nine weights


def test_inferences_that_begin_together(tmp_path):
    """Threads that make the first inference at once all get the results of one alone."""
    (case,) = [replace(one, prepacks=True) for one in few_bits(1) if "fc" in one.title.lower()][-1:]
    assert is_prepacked(case)
    size = case.arena().size
    program = f"""#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>
{harness.source(case, 0)}
int main() {{
    std::vector<unsigned char> given({size});
    if (std::fread(given.data(), 1, given.size(), stdin) != given.size()) return 2;
    struct alignas(64) Arena {{ unsigned char bytes[{size}]; }};
    static Arena arenas[16];
    std::vector<std::thread> threads;
    for (Arena& arena : arenas) {{
        std::memcpy(arena.bytes, given.data(), given.size());
        threads.emplace_back([&arena] {{ case0::run(arena.bytes); }});
    }}
    for (std::thread& thread : threads) thread.join();
    for (const Arena& arena : arenas)
        if (std::memcmp(arena.bytes, arenas[0].bytes, given.size()) != 0) return 1;
    return std::fwrite(arenas[0].bytes, 1, given.size(), stdout) == given.size() ? 0 : 3;
}}
"""
    (tmp_path / "main.cpp").write_text(program)
    build = [*"g++ -std=c++11 -O1 -g -fsanitize=thread".split(), *need_isa("avx2"), "-DN2D2_NO_OPENMP", f"-I{ROOT / 'kernels'}"]
    run_command(*build, "-pthread", tmp_path / "main.cpp", "-o", tmp_path / "run")
    done = subprocess.run([tmp_path / "run"], input=case.arena().tobytes(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    case.check(case.arena(), np.frombuffer(done.stdout, np.uint8))
