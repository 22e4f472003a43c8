"""Exports built for other processors and run by QEMU: the same integers as Python's."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.export_networks import chain, request, write_export
from support.kernel_builds import CLANG
from support.programs import need, needs, run_command

from n2d2py.cli import main
from n2d2py.exports.cpp.processors import TARGETS
from n2d2py.quant.simulator import simulate

pytestmark = needs("make")

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = {target.name: target for target in TARGETS if target.emulator}
SHARED = Path(os.environ["N2D2_DATA"]).parent / "data" if "N2D2_DATA" in os.environ else ROOT.parent / "shared" / "data"


def need_target(name: str) -> None:
    need(CLANG if FOREIGN[name].clang else FOREIGN[name].compilers[1], FOREIGN[name].emulator[0])


def run(name: str, *words: str | Path, cwd: Path) -> str:
    """What a program for a target prints."""
    environment = {**os.environ, "WINEDEBUG": "-all"}
    done = subprocess.run([*FOREIGN[name].runner, *words], cwd=cwd, check=True, stdout=subprocess.PIPE, env=environment)
    return done.stdout.decode()


def outputs(folder: Path, name: str, optimise: str) -> bytes:
    """-outputs of the export, built for a target and run by QEMU or Wine."""
    clang = [f"CXX={CLANG}"] if FOREIGN[name].clang else []
    run_command("make", "-j2", f"TARGET={name}", f"OPT={optimise}", "OPENMP=0", "CXXFLAGS=-Werror", *clang, cwd=folder)
    suffix = {"Windows": ".exe", "WASI": ".wasm"}.get(FOREIGN[name].system, "")
    run(name, f"bin/run_export{suffix}", "-outputs", "all.bin", cwd=folder)
    return (folder / "all.bin").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_small_network(tmp_path, name):
    need_target(name)
    graph = chain(True)
    made = request(graph, count=2)
    found = outputs(write_export(tmp_path / "out", made), name, "-O1")
    values = simulate(graph, made.stimuli.inputs)
    expected = [np.moveaxis(values[output][index], 0, -1).tobytes() for index in range(2) for output in graph.outputs]
    assert found == b"".join(expected)


def networks() -> dict[str, tuple[Path, str]]:
    return {
        "resnet8": (ROOT / "tests/networks/resnet8.ini", "8"),
        "vww_96": (ROOT / "tests/networks/vww_96.ini", "4"),
        "MobileNet": (ROOT / "models/MobileNet.ini", "8"),
    }


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A function: the export of a network, made once, and what it computes on this machine."""
    made = {}

    def export(network: str) -> tuple[Path, bytes]:
        if network not in made:
            path, count = networks()[network]
            folder = tmp_path_factory.mktemp(network)
            words = f"-w /dev/null -export CPP -calib 16 -quality fast -db-export {count} -test -nb-test {count} -quiet -o"
            assert main([str(path), *words.split(), str(folder)]) == 0  # -test: Python's integers are the compiled ones
            (project,) = folder.glob("export_CPP_*")
            run_command("make", "-j2", "OPENMP=0", cwd=project)
            run_command("bin/run_export", "-outputs", "all.bin", cwd=project)
            made[network] = project, (project / "all.bin").read_bytes()
        return made[network]

    return export


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FOREIGN))
@pytest.mark.parametrize("network", sorted(networks()))
def test_test_networks(exported, network, name):
    """Every target gives the bytes of the same export on this machine."""
    need_target(name)
    if network != "MobileNet" and not SHARED.is_dir():
        pytest.skip("../shared is missing")
    folder, expected = exported(network)
    assert outputs(folder, name, "-O3") == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aarch64-dot", "windows-x86-64-v3"])
def test_cmake_toolchain(name, tmp_path):
    need_target(name)
    made = request(chain(True), count=3)
    folder = write_export(tmp_path / "out", made)
    for words in (
        ["cmake", "-B", "build", f"-DCMAKE_TOOLCHAIN_FILE=cmake/{name}.cmake"],
        ["cmake", "--build", "build"],
        ["ctest", "--test-dir", "build", "--output-on-failure"],
    ):
        done = subprocess.run(words, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
    flags = (folder / "build").rglob("flags.make")
    assert any(FOREIGN[name].flags[0] in file.read_text() for file in flags)


LOADER = """
#include "Digits_1.h"
#include <stdio.h>
int main(void) {
    puts(Digits_1_isa());
    printf("%d\\n", Digits_1_layer_count());
    return 0;
}
"""


@pytest.mark.slow
def test_windows_library(tmp_path):
    """`make lib` makes a DLL that needs the system's only and shows the interface only; the program uses two threads."""
    name = "windows-x86-64"
    need_target(name)
    folder = write_export(tmp_path / "out", request(chain(True), count=2))
    make = ["make", "-j2", f"TARGET={name}", "OPT=-O1", "CXXFLAGS=-Werror", "lib", "test"]
    environment = {**os.environ, "WINEDEBUG": "-all", "OMP_NUM_THREADS": "2"}
    printed = run_command(*make, cwd=folder, env=environment)
    assert "Score: 50.00%" in printed
    assert {path.name for path in (folder / "lib").iterdir()} == {"Digits_1.dll", "libDigits_1.a", "libDigits_1.dll.a"}
    (folder / "use.c").write_text(LOADER)
    words = ["-Iinclude", "use.c", "lib/libDigits_1.dll.a", "-o", "lib/use.exe"]
    run_command(f"{FOREIGN[name].prefix}gcc", *words, cwd=folder)
    assert run(name, "lib/use.exe", cwd=folder).split() == ["portable", "3"]
    headers = [f"{FOREIGN[name].prefix}objdump", "-p", "lib/Digits_1.dll"]
    listed = run_command(*headers, cwd=folder)
    assert {line.split()[-1].lower() for line in listed.splitlines() if "DLL Name" in line} <= {"kernel32.dll", "msvcrt.dll"}
    table = listed.split("[Ordinal/Name Pointer] Table")[1].split("\n\n")[0].splitlines()[1:]
    assert table and all("Digits_1" in line for line in table)


def test_makefile_and_toolchain_files_agree(tmp_path):
    folder = write_export(tmp_path / "out", request(chain(True)))
    lines = run_command("make", "-s", "targets", cwd=folder).splitlines()
    assert [line.split(maxsplit=2) for line in lines] == [
        [target.name, target.compilers[1], " ".join(target.flags)] for target in TARGETS
    ]
    unknown = subprocess.run(["make", "TARGET=mips"], cwd=folder, text=True, capture_output=True)
    assert unknown.returncode and "TARGET=mips is unknown" in unknown.stderr
