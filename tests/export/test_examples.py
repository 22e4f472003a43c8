"""The examples of the export, in C and in C++: pictures of any size to the scores that the simulator gives for them."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.export_build import make
from support.export_networks import Builder, chain, random_inputs, request, write_export
from support.ops import Conv, Fc
from support.programs import need, run_command
from support.tables import few_fast

from n2d2py import load_export
from n2d2py.arithmetic import NumType
from n2d2py.graph import QuantGraph
from n2d2py.graph.inputs import ORDERS, InputContract, PixelMap
from n2d2py.quant.simulator import quantize_inputs, simulate

NORMALIZED = PixelMap((0.0171, 0.0175, 0.0174), (-2.1, -2.0, -1.8), (2, 1, 0))


def gray(zero_point: int) -> QuantGraph:
    """conv - fc on a gray picture of signed bytes."""
    build = Builder("gray", (1, 1, 6, 9), True, seed=3)
    kind = NumType(8, signed=True, scale=1 / 64, zero_point=zero_point)
    build.tensor("env", (1, 1, 6, 9), kind)
    conv = build.weighted("conv", Conv(), "env", (4, 1, 3, 3), NumType(8, signed=False, scale=1 / 128))
    return build.finish(build.weighted("fc", Fc(), conv, (3, 4 * 4 * 7), NumType(8, scale=0.0625)))


def fitted(picture: np.ndarray, high: int, wide: int) -> np.ndarray:
    """The middle of a picture (H, W, C) with the shape (high, wide); means of the pixels under each, rounded half up."""
    height, width, channels = picture.shape
    lines = height if height * wide <= width * high else max(1, width * high // wide)
    columns = width if height * wide > width * high else max(1, height * wide // high)
    top, left = (height - lines) // 2, (width - columns) // 2
    made = np.zeros((high, wide, channels), np.int64)
    for y in range(high):
        for x in range(wide):
            y0, x0 = top + y * lines // high, left + x * columns // wide
            y1, x1 = top + (y + 1) * lines // high, left + (x + 1) * columns // wide
            part = picture[y0 : max(y1, y0 + 1), x0 : max(x1, x0 + 1)].astype(np.int64).reshape(-1, channels)
            made[y, x] = (2 * part.sum(0) + len(part)) // (2 * len(part))
    return made


def expected(graph: QuantGraph, picture: np.ndarray, pixels: PixelMap) -> np.ndarray:
    """Real scores of the simulator for a picture (H, W, C), red, green, blue or gray."""
    _, count, high, wide = graph.shape("env")
    if picture.shape[2] < count:
        picture = np.repeat(picture, count, axis=2)
    if picture.shape[2] > count:
        picture = ((picture.astype(np.int64) @ [77, 150, 29] + 128) >> 8)[..., None]
    values = fitted(picture, high, wide)[..., list(pixels.order)].astype(np.float64)
    real = (values * np.float32(pixels.factors).astype(np.float64) + np.float32(pixels.offsets)).astype(np.float32)
    scores = simulate(graph, quantize_inputs(graph, [np.moveaxis(real, 2, 0)[None]]))[graph.outputs[0]][0]
    kind = graph.type(graph.outputs[0])
    return (kind.dequantize(scores) if not kind.is_float else scores).ravel()


def scores(folder: Path, program: str, picture: np.ndarray) -> np.ndarray:
    height, width, channels = picture.shape
    header = f"P{6 if channels == 3 else 5}\n# made by a test\n{width} {height}\n255\n"
    (folder / "picture.ppm").write_bytes(header.encode() + picture.tobytes())
    done = subprocess.run([folder / "bin" / program, "picture.ppm"], cwd=folder, text=True, check=True, stdout=subprocess.PIPE)
    *lines, best = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert [(int(index), name) for index, _, name in lines] == [(k, f"name {k}") for k in range(len(lines))]
    found = np.array([float(value) for _, value, _ in lines])
    assert best == ["best:", str(found.argmax()), f"name {found.argmax()}"]
    return found


@pytest.mark.parametrize(
    "graph, pixels",
    [
        (chain(True), NORMALIZED),
        pytest.param(chain(False), NORMALIZED, marks=pytest.mark.slow),
        pytest.param(chain(True), None, marks=pytest.mark.slow),
        pytest.param(gray(-5), PixelMap((1 / 255,), (-0.5,), (0,)), marks=pytest.mark.slow),
    ],
    ids=["normalized", "float", "assumed", "gray"],
)
def test_a_picture_to_scores(graph, pixels, tmp_path):
    _, count, high, wide = graph.shape("env")
    order = ORDERS[pixels.order] if pixels else "gray" if count == 1 else "RGB"
    names = tuple(f"name {k}" for k in range(graph.shape(graph.outputs[0])[1]))
    folder = write_export(tmp_path / "out", request(graph, contract=InputContract(order, (wide, high), pixels, names)))
    make(folder, "OPT=-O2", "examples")
    used = pixels or PixelMap((1 / 255,) * 3, (0.0,) * 3, (0, 1, 2))
    assert ("THIS IS ASSUMED" in (folder / "examples" / "camera.h").read_text()) == (pixels is None)
    rng = np.random.default_rng(4)
    found = []
    for height, width, channels in ((12, 10, 3), (31, 97, 3), (480, 41, 3), (5, 4, 3), (1, 1, 3), (40, 33, 1)):
        picture = rng.integers(0, 256, (height, width, channels), np.uint8)
        wanted = expected(graph, picture, used)
        for program in ("camera_c", "camera_cpp"):
            np.testing.assert_allclose(scores(folder, program, picture), wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())
        found.append(wanted)
    assert len({tuple(one) for one in found}) == len(found)  # pictures matter
    refused = subprocess.run([folder / "bin" / "camera_c", folder / "Makefile"], text=True, capture_output=True)
    assert refused.returncode == 2 and "usage: camera_c" in refused.stderr


def test_what_takes_no_picture_has_no_example(tmp_path):
    build = Builder("vector", (1, 300), True)
    folder = write_export(
        tmp_path / "out", request(build.finish(build.weighted("fc", Fc(), "env", (5, 300), NumType(8, scale=0.1))))
    )
    assert not (folder / "examples").exists() and "make examples" not in (folder / "README.md").read_text()
    printed = run_command("make", "examples", cwd=folder)
    assert "no example" in printed


@pytest.mark.compiles
@pytest.mark.parametrize("compiler", few_fast(["gcc -std=c99", "g++ -x c++ -std=c++11"]))
def test_the_program_of_the_readme(compiler, tmp_path):
    """It runs on zeros, whose best class is that of the simulator; the manifest and Python have the contract of the header."""
    graph = chain(True)
    names = tuple(f"name {k}" for k in range(graph.shape(graph.outputs[0])[1]))
    contract = InputContract("BGR", (7, 6), NORMALIZED, names)
    folder = write_export(tmp_path / "out", request(graph, contract=contract))
    make(folder, "OPT=-O1", "OPENMP=0", "lib")
    text = (folder / "README.md").read_text()
    program = text.partition("```c\n")[2].partition("```")[0]
    assert "7x6 BGR, real values -2.1 to 2.637" in program
    (tmp_path / "app.c").write_text(program)
    options = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", f"-I{folder}/include"]
    library = next((folder / "lib").glob("*.a"))
    words = [*compiler.split(), *options, "app.c", "-x", "none", str(library), "-lm", "-lstdc++", "-o", "app"]
    run_command(*words, cwd=tmp_path)
    stored = quantize_inputs(graph, [np.zeros((1, *graph.shape("env")[1:]), np.float32)])
    best = simulate(graph, stored)[graph.outputs[0]].argmax()
    printed = run_command(tmp_path / "app")
    assert printed == f"output: best {best}\n"
    assert load_export(folder).contract == contract


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
    folder = networks / "other"
    before = set(folder.rglob("*"))
    make(folder, "OPT=-O0", "all", "lib", "size")
    made = {path.relative_to(folder).parts[0] for path in set(folder.rglob("*")) - before}
    assert made == {"build", "bin", "lib"}
    make(folder, "clean")
    assert set(folder.rglob("*")) == before
