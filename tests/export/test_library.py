"""The export as a library in other projects: two networks in one program by CMake, by installed packages and by pkg-config."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.export_build import make, need
from support.export_networks import chain, random_inputs, request, write_export

from n2d2py.quant.simulator import simulate

NAMES = ("Digits_1", "other")
PROGRAM = """
#include <Digits_1.hpp>
#include <other.hpp>
#include <cstdio>

int main() {
    Digits_1::input_t in[Digits_1::Input::Elements];
    other::input_t second[other::Input::Elements];
    Digits_1::output_t out[Digits_1::Output::Elements];
    other::output_t last[other::Output::Elements];
    if (std::fread(in, 1, sizeof in, stdin) != sizeof in || std::fread(second, 1, sizeof second, stdin) != sizeof second)
        return 1;
    Digits_1::forward(in, out);
    other::forward(second, last);
    std::fwrite(out, 1, sizeof out, stdout);
    std::fwrite(last, 1, sizeof last, stdout);
}
"""
PROGRAM_IN_C = """
#include <Digits_1.h>
#include <other.h>
#include <stdio.h>

static unsigned char arena[other_ARENA_BYTES + other_ARENA_ALIGNMENT];

int main(void) {
    static Digits_1_input_t in[Digits_1_INPUT_ELEMENTS];
    static other_input_t second[other_INPUT_ELEMENTS];
    Digits_1_output_t out[Digits_1_OUTPUT_ELEMENTS];
    other_output_t last[other_OUTPUT_ELEMENTS];
    const void *inputs[1], *seconds[1];
    void *outputs[1], *lasts[1];
    inputs[0] = in, seconds[0] = second, outputs[0] = out, lasts[0] = last;
    if (fread(in, 1, sizeof in, stdin) != sizeof in || fread(second, 1, sizeof second, stdin) != sizeof second)
        return 1;
    Digits_1_forward_raw(inputs, outputs, Digits_1_static_arena());
    other_forward_raw(seconds, lasts, arena + (other_ARENA_ALIGNMENT - (uintptr_t)arena % other_ARENA_ALIGNMENT));
    fwrite(out, 1, sizeof out, stdout);
    fwrite(last, 1, sizeof last, stdout);
    return Digits_1_INPUT_SCALE == Digits_1_input(0)->scale && other_OUTPUT_ZERO_POINT == other_output(0)->zero_point ? 0 : 2;
}
"""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]


def call(*words: str | Path, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        words, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def networks(tmp_path) -> Path:
    """A folder with two exports of other build options, a program in C++ and one in C."""
    write_export(tmp_path / "Digits_1", request(chain(True)))
    write_export(tmp_path / "other", request(chain(True, "other", seed=5), parameters={"OpenMP": False}))
    (tmp_path / "main.cpp").write_text(PROGRAM)
    (tmp_path / "main.c").write_text(PROGRAM_IN_C)
    return tmp_path


def check(*program: str | Path) -> None:
    """The program gives the simulated outputs of both networks."""
    graphs = [chain(True), chain(True, "other", seed=5)]
    inputs = [random_inputs(graph, 1, seed)[0] for graph, seed in zip(graphs, (7, 8), strict=True)]
    stored = b"".join(np.moveaxis(x[0], 0, -1).tobytes() for x in inputs)
    done = subprocess.run(program, input=stored, stdout=subprocess.PIPE)
    expected = b"".join(simulate(graph, [x])["fc"][0].tobytes() for graph, x in zip(graphs, inputs, strict=True))
    assert done.returncode == 0 and done.stdout == expected


def install(folder: Path, name: str, *options: str) -> None:
    """Builds and installs a network into `folder`/made, which then moves to `folder`/prefix."""
    build = folder / f"build_{name}"
    given = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_INSTALL_LIBDIR=lib", f"-D{name}_PROGRAM=OFF", *options)
    call("cmake", "-S", folder / name, "-B", build, *given, cwd=folder)
    call("cmake", "--build", build, "--parallel", "2", cwd=folder)
    call("cmake", "--install", build, "--prefix", folder / "made", cwd=folder)


@pytest.mark.slow
def test_add_subdirectory(networks):
    """No target, no test and no program of one network meets that of the other, or of the project."""
    need("cmake", "g++", "gcc")
    (networks / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.12)
project(two C CXX)
add_subdirectory(Digits_1)
add_subdirectory(other)
add_executable(run_export main.cpp)  # a name that the networks' own programs have where they are the top
target_link_libraries(run_export PRIVATE Digits_1::Digits_1 other::other)
add_executable(Digits_1 main.c)
target_link_libraries(Digits_1 PRIVATE Digits_1::Digits_1 other::other)
set_target_properties(Digits_1 PROPERTIES OUTPUT_NAME in_c)
""")
    call("cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug", cwd=networks)
    printed = call("cmake", "--build", "build", "--parallel", "2", cwd=networks)
    assert "warning" not in printed.lower()
    check(networks / "build" / "run_export")
    check(networks / "build" / "in_c")
    assert "No tests were found" in call("ctest", "--test-dir", "build", cwd=networks)
    assert "main.cpp.o" not in " ".join(str(path) for path in (networks / "build" / "other").rglob("*"))


@pytest.mark.slow
def test_installed_packages(networks):
    """find_package and pkg-config find what was installed and moved elsewhere; nothing of it names the folder of the build."""
    need("cmake", "g++", "gcc", "pkg-config")
    for name in NAMES:
        install(networks, name)
    prefix = networks / "moved" / "prefix"
    prefix.parent.mkdir()
    shutil.move(networks / "made", prefix)
    files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()}
    for name in NAMES:
        package = {f"lib/cmake/{name}/{name}{end}.cmake" for end in ("Config", "ConfigVersion", "Targets", "Targets-debug")}
        assert package | {f"lib/pkgconfig/{name}.pc", f"lib/lib{name}.a", f"include/{name}.h", f"include/{name}.hpp"} <= files
        for file in (*package, f"lib/pkgconfig/{name}.pc"):
            assert str(networks) not in (prefix / file).read_text()
        shutil.rmtree(networks / name)
    (networks / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.12)
project(two CXX)
find_package(Digits_1 2 REQUIRED)
find_package(other 2 REQUIRED)
add_executable(two main.cpp)
target_link_libraries(two PRIVATE Digits_1::Digits_1 other::other)
""")
    call("cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=networks)
    call("cmake", "--build", "build", cwd=networks)
    check(networks / "build" / "two")
    flags = call(
        "pkg-config", "--cflags", "--libs", *NAMES, cwd=networks, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig")
    ).split()
    call("g++", "-std=c++11", *STRICT, "main.cpp", *flags, "-o", "by_name", cwd=networks)
    check(networks / "by_name")
    call("gcc", "-std=c99", *STRICT, "main.c", *flags, "-o", "in_c", cwd=networks)
    check(networks / "in_c")


@pytest.mark.slow
def test_shared_libraries(networks):
    """An installed shared library needs no flags but its own, and shows no name but the interface's."""
    need("cmake", "g++", "pkg-config", "nm")
    for name in NAMES:
        install(networks, name, "-DBUILD_SHARED_LIBS=ON")
    lib = networks / "made" / "lib"
    flags = call("pkg-config", "--libs", "--cflags", *NAMES, cwd=networks, PKG_CONFIG_PATH=str(lib / "pkgconfig")).split()
    assert "-fopenmp" not in flags
    call("g++", "-std=c++11", *STRICT, "main.cpp", *flags, "-o", "shared", f"-Wl,-rpath,{lib}", cwd=networks)
    check(networks / "shared")
    names = call("nm", "-DC", "--defined-only", lib / "libother.so", cwd=networks).splitlines()
    own = [line.split(maxsplit=2)[2] for line in names if " T " in line]  # others are inline functions of the standard library
    assert "other_forward_raw" in own and all(name.startswith("other") for name in own)


def test_make_leaves_nothing_beside_what_it_builds(networks):
    need("g++", "make")
    folder = networks / "other"
    before = set(folder.rglob("*"))
    make(folder, "OPT=-O0", "all", "lib", "size")
    made = {path.relative_to(folder).parts[0] for path in set(folder.rglob("*")) - before}
    assert made == {"build", "bin", "lib"}
    make(folder, "clean")
    assert set(folder.rglob("*")) == before
