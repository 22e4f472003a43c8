"""WeightsFile=1: the weights in a file apart, checked when a program takes it, and never copied."""

import platform
import struct
import subprocess
import zlib

import numpy as np
import pytest
from support.errors import error_line, refused
from support.export_build import compare_outputs, make, run_export
from support.export_networks import S8, Builder, chain, request, residual, write_export
from support.ops import Conv, Fc
from support.programs import need, run_command
from support.tables import few_fast

import n2d2py
from n2d2py.exports import find_target
from n2d2py.exports.cpp.weights_file import WeightsFile
from n2d2py.quant.simulator import simulate
from n2d2py.runtime.graph_file import GRAPH_FILE, read_graph

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 machine")
APART = {"WeightsFile": True, "OpenMP": False}


def winograd_net(name: str = "wino", seed: int = 4):
    build = Builder(name, (1, 8, 6, 6), True, seed)
    one = build.weighted("one", Conv(pads=(1, 1, 1, 1)), "env", (16, 8, 3, 3), S8, fixed=True)
    return build.finish(build.weighted("two", Fc(), one, (9, 576), S8))


def exported(path, graph, **parameters):
    made = request(graph, parameters={**APART, **parameters})
    return made, write_export(path, made)


@pytest.mark.parametrize("network", few_fast([residual, chain, lambda integer: winograd_net()]))
def test_the_program_reads_its_weights(network, tmp_path):
    graph = network(True)
    made, out = exported(tmp_path / "out", graph)
    make(out, "OPT=-O0")
    compare_outputs(out, graph, list(made.stimuli.inputs))
    other = tmp_path / "elsewhere.bin"
    (out / "dnn/parameters/weights.bin").rename(other)
    done = run_export(out)
    assert done.returncode == 2 and "weights.bin: cannot be read" in done.stderr
    assert run_export(out, "-weights", str(other)).returncode == 0


@pytest.mark.slow
@x86
def test_floats_and_other_processors(tmp_path):
    for integer in (True, False):
        graph = residual(integer)
        made, out = exported(tmp_path / f"simd{integer}", graph)
        for words in (("ARCH=-march=x86-64-v3",), ("ARCH=-march=x86-64-v3", "CXX=clang++"), ("ARCH=-march=x86-64-v2",)):
            make(out, "OPT=-O1", *words)
            compare_outputs(out, graph, list(made.stimuli.inputs))
        done = subprocess.run(
            ["make", "ARCH=-march=x86-64"], cwd=out, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert (
            done.returncode != 0
            and "order of SIMD kernels, which this processor does not have: export with SIMD=none" in done.stdout
        )
        made, out = exported(tmp_path / f"none{integer}", graph, SIMD="none")
        make(out, "OPT=-O1", "ARCH=-march=x86-64")
        compare_outputs(out, graph, list(made.stimuli.inputs))


def test_simulator_and_library_read_the_same_file(tmp_path):
    need("g++", "make")
    graph = chain(True)
    made, out = exported(tmp_path / "out", graph)
    read = read_graph(out / GRAPH_FILE)
    for node, other in zip(graph.nodes, read.nodes, strict=True):
        for role, values in node.params.items():
            np.testing.assert_array_equal(other.params[role], values)
    network = n2d2py.load_export(out)
    expected = simulate(graph, list(made.stimuli.inputs))[graph.outputs[0]]
    np.testing.assert_array_equal(network.run_raw(made.stimuli.inputs[0]), expected)
    file = out / "dnn/parameters/weights.bin"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert "the weights of Digits_1: error 8" in error_line(n2d2py.load_export, out)
    assert refused(r"E806: .*weights.bin was changed since it was written", read_graph, out / GRAPH_FILE)


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(MAPPED)
#include <fcntl.h>
#include <sys/mman.h>
#endif
#include "Digits_1.h"
static unsigned char input[Digits_1_INPUT_ELEMENTS], output[2 * Digits_1_OUTPUT_ELEMENTS];
static unsigned char* file(const char* path, size_t* size) {
    FILE* f = fopen(path, "rb");
    unsigned char* data = (unsigned char*)aligned_alloc(64, 1 << 20);
    *size = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}
static int run(void) {
    const void* in[] = {input};
    void* out[] = {output};
    return Digits_1_forward_raw(in, out, Digits_1_static_arena());
}
#define CHECK(what, wanted) do { int found = (what); if (found != (wanted)) { printf("%d: %d, not %d\n", __LINE__, found, wanted); return 1; } } while (0)
int main(int argc, char** argv) {
    size_t size, length, i;
    unsigned char *data = file(argv[1], &size), *other = file(argv[2], &length);
    unsigned char first[sizeof(output)];
    CHECK(argc, 3);
    CHECK(run(), Digits_1_NO_WEIGHTS);
    CHECK(size != Digits_1_WEIGHTS_BYTES, 0);
    CHECK(Digits_1_load_weights(NULL, size), Digits_1_NO_WEIGHTS);
    for (i = 0; i < size; i += i < 200 ? 1 : 61) {
        unsigned char* part = (unsigned char*)malloc(i + 64); /* the sanitizer sees what is read beyond */
        unsigned char* at = part + (64 - (size_t)part % 64) % 64;
        size_t room = i + 64 - (size_t)(at - part);
        memcpy(at, data, i < room ? i : room);
        CHECK(Digits_1_load_weights(at, i), Digits_1_WEIGHTS_TRUNCATED);
        free(part);
    }
    memmove(other + 1, data, size);
    CHECK(Digits_1_load_weights(other + 1, size), Digits_1_WEIGHTS_MISALIGNED);
    free(other);
    other = file(argv[2], &length);
    CHECK(Digits_1_load_weights(other, length), Digits_1_WEIGHTS_OTHER);
    CHECK(Digits_1_load_weights(data, size) || Digits_1_load_weights(other, length) != Digits_1_WEIGHTS_OTHER, 0);
    CHECK(run(), 0); /* what was loaded stays in use */
    memcpy(first, output, sizeof(first));
    for (i = 0; i < size; ++i) { /* no changed bit is taken */
        int status;
        data[i] ^= 1 << i % 8;
        status = Digits_1_load_weights(data, size);
        if (i < 16) CHECK(status, Digits_1_WEIGHTS_FORMAT);
        else if (status == 0) { printf("byte %d\n", (int)i); return 1; }
        else if (i >= 64) CHECK(status, Digits_1_WEIGHTS_DAMAGED);
        if (i >= 64 && i < 64 + 32) CHECK(Digits_1_use_weights(data, size), Digits_1_WEIGHTS_DAMAGED); /* the table is checked in any case */
        data[i] ^= 1 << i % 8;
    }
    free(data);
#if defined(MAPPED)
    {
        void* map = mmap(NULL, Digits_1_WEIGHTS_BYTES, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
        CHECK(map == MAP_FAILED, 0);
        CHECK(Digits_1_use_weights(map, Digits_1_WEIGHTS_BYTES), 0);
    }
#else
    data = file(argv[1], &size);
    CHECK(Digits_1_use_weights(data, size), 0);
#endif
    CHECK(run(), 0);
    CHECK(memcmp(first, output, sizeof(first)), 0);
    puts("good");
    return 0;
}
"""


def test_no_wrong_file_is_taken(tmp_path):
    """In C and in C++, under sanitizers: cut off, damaged, misplaced files, that of another network, none."""
    _, out = exported(tmp_path / "out", chain(True))
    _, other = exported(tmp_path / "other", chain(True, seed=2))
    same = [(folder / "dnn/parameters/weights.bin").stat().st_size for folder in (out, other)]
    assert same[0] == same[1]
    checks = "-fsanitize=address,undefined -fno-sanitize-recover=all"
    run_command("make", "lib/libDigits_1.a", "OPT=-O1", f"CXXFLAGS=-Werror {checks}", cwd=out)
    files = [str(folder / "dnn/parameters/weights.bin") for folder in (out, other)]
    (tmp_path / "p.c").write_text(PROGRAM)
    for words in (("gcc", "-std=c11", "-D_DEFAULT_SOURCE", "-DMAPPED"), ("g++", "-std=c++11", "-x", "c++")):
        build = [*words, *checks.split(), "-Wall", "-Wextra", "-Werror", tmp_path / "p.c", "-x", "none"]
        run_command(*build, "-I", out / "include", out / "lib/libDigits_1.a", "-lm", "-o", tmp_path / "p")
        done = subprocess.run([tmp_path / "p", *files], text=True, capture_output=True, env={"ASAN_OPTIONS": "detect_leaks=0"})
        assert done.stdout == "good\n", done.stdout + done.stderr


def test_two_networks_have_two_files(tmp_path):
    graphs = {"Digits_1": chain(True), "wino": winograd_net()}
    folders = {name: exported(tmp_path / name, graph)[1] for name, graph in graphs.items()}
    lines = []
    for name, folder in folders.items():
        make(folder, f"lib/lib{name}.a", "OPT=-O0")
        lines.append(f"""
    static {name}::input_t in_{name}[{name}::Input::Elements];
    static {name}::output_t out_{name}[{name}::Output::Elements];
    if ({name}::forward(in_{name}, out_{name}) != {name}_NO_WEIGHTS) return 1;
    alignas(64) static unsigned char {name}_file[{name}_WEIGHTS_BYTES];
    std::FILE* {name}_opened = std::fopen("{folder}/dnn/parameters/weights.bin", "rb");
    if (std::fread({name}_file, 1, sizeof({name}_file), {name}_opened) != sizeof({name}_file)) return 2;
    if ({name}::load_weights({name}_file, sizeof({name}_file)) != 0) return 3;
    if ({name}::forward(in_{name}, out_{name}) != 0) return 4;""")
    (tmp_path / "p.cpp").write_text(
        '#include <cstdio>\n#include "Digits_1.hpp"\n#include "wino.hpp"\nint main() {' + "".join(lines)
        + "\n    return Digits_1::load_weights(wino_file, sizeof(wino_file)) == Digits_1_WEIGHTS_OTHER ? 0 : 5;\n}\n"
    )  # fmt: skip
    include = [word for folder in folders.values() for word in ("-I", folder / "include")]
    libraries = [folder / f"lib/lib{name}.a" for name, folder in folders.items()]
    run_command("g++", "-std=c++11", tmp_path / "p.cpp", *include, *libraries, "-o", tmp_path / "p")
    assert subprocess.run([tmp_path / "p"]).returncode == 0


def test_the_file_is_what_its_description_says(tmp_path):
    graph = chain(True)
    _, out = exported(tmp_path / "out", graph)
    data = (out / "dnn/parameters/weights.bin").read_bytes()
    magic, version, order, size, count, crc = struct.unpack_from("<8sIIQII", data)
    assert (magic, version, order, size, count) == (b"N2D2WGT\0", 1, 0x01020304, len(data), 2)
    assert crc == zlib.crc32(data[64:])
    for index in range(count):
        begin, length = struct.unpack_from("<QQ", data, 64 + 16 * index)
        assert begin % 64 == 0 and begin + length <= size
    assert WeightsFile.of([], "other").identity != WeightsFile.of([], "one").identity
    again = exported(tmp_path / "again", graph)[1]
    assert (again / "dnn/parameters/weights.bin").read_bytes() == data


def test_what_does_not_fit_is_refused():
    cpp = find_target("CPP")
    made = request(chain(True), parameters={**APART, "RuntimeDispatch": True})
    assert "E705: WeightsFile=1 and RuntimeDispatch=1" in error_line(lambda: cpp.prepare(made).check())
    from n2d2py.operators.pool import Pool

    build = Builder("pools", (1, 3, 4, 4), True)
    graph = build.finish(build.pool("one", Pool("Max", (2, 2), (2, 2)), "env"))
    assert "E705: WeightsFile=1" in error_line(lambda: cpp.prepare(request(graph, parameters=APART)).check())
