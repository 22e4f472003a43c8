"""RuntimeDispatch=1: one binary for several instruction sets, the same bits from each, no symbol compiled twice."""

import ctypes
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.export_build import make, run_export
from support.export_networks import chain, request, residual, write_export
from support.programs import needs, run_command

from n2d2py.quant.simulator import simulate

pytestmark = needs("make")
x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 machine")
VARIANTS = ("portable", "sse4", "avx2", "avxvnni", "avx512vnni", "amx")


def dispatching(folder: Path, graph):
    made = request(graph, count=3, parameters={"RuntimeDispatch": True})
    return made, write_export(folder, made)


def test_layers_and_constants_are_in_the_namespaces_of_variants(tmp_path):
    _, out = dispatching(tmp_path / "out", chain(True))
    layer = (out / "dnn" / "src" / "layers_1.cpp").read_text()
    assert "namespace N2D2_VARIANT {" in layer and (out / "dnn" / "src" / "variant.cpp").is_file()
    constants = (out / "dnn" / "parameters" / "fc.cpp").read_text()
    assert constants.count("fc_weights[") >= 2 and "__aarch64__" in constants and "N2D2_NEON" not in constants
    plain = write_export(tmp_path / "plain", request(chain(True)))
    assert not (plain / "dnn" / "src" / "variant.cpp").exists()
    assert "N2D2_VARIANT" not in (plain / "dnn" / "src" / "layers_1.cpp").read_text()


def expected_bytes(graph, made) -> bytes:
    """What -outputs writes for the stimuli of a request."""
    values = simulate(graph, made.stimuli.inputs)
    return b"".join(np.moveaxis(values[name][i], 0, -1).tobytes() for i in range(3) for name in graph.outputs)


@x86
@pytest.mark.slow
@pytest.mark.parametrize("network", [chain, residual])
def test_every_level_gives_the_same_bits(tmp_path, monkeypatch, network):
    graph = network(True)
    made, out = dispatching(tmp_path / "out", graph)
    make(out, "OPT=-O2", "CXXFLAGS=-Werror -DN2D2_PARALLEL_WORK=0", "all", "lib")
    flags = Path("/proc/cpuinfo").read_text().split()
    if ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0:  # arch_prctl: the registers of AMX are given
        flags.append("amx, given")
    expected = expected_bytes(graph, made)
    known = {
        "portable": "lm",
        "sse4": "sse4_1",
        "avx2": "avx2",
        "avxvnni": "avx_vnni",
        "avx512vnni": "avx512_vnni",
        "amx": "amx, given",
    }
    for variant in VARIANTS:
        monkeypatch.setenv("N2D2_ISA", variant)
        done = run_export(out, "-outputs", "all.bin")
        if known[variant] in flags:
            assert done.returncode == 0 and (out / "all.bin").read_bytes() == expected, variant
        else:
            assert done.returncode == 2
            assert f"N2D2_ISA={variant} " in done.stderr
    monkeypatch.setenv("N2D2_ISA", "sse5")
    assert run_export(out, "-outputs", "all.bin").returncode == 2
    monkeypatch.delenv("N2D2_ISA")
    for threads in "12":
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        assert run_export(out, "-outputs", "all.bin").returncode == 0 and (out / "all.bin").read_bytes() == expected
    symbols = []
    for variant in VARIANTS:
        listed = run_command("nm", "-g", "--defined-only", *(out / "build" / variant).rglob("*.o"))
        symbols.append({words[2] for words in map(str.split, listed.splitlines()) if len(words) == 3})
    assert all(symbols) and not any(a & b for i, a in enumerate(symbols) for b in symbols[:i])


@pytest.mark.slow
@pytest.mark.parametrize("network", [chain, residual])
def test_one_program_serves_every_arm(tmp_path, network):
    """In QEMU, on processors without dot products, with them, and with matrix products."""
    graph = network(True)
    made, out = dispatching(tmp_path / "out", graph)
    make(out, "CXX=aarch64-linux-gnu-g++", "OPT=-O1", "LDFLAGS=-static")
    expected, variants = expected_bytes(graph, made), ("portable", "neon", "neondot", "neoni8mm")
    for processor, known in (("cortex-a53", 2), ("cortex-a76", 3), ("max", 4)):
        for variant in variants:
            (out / "all.bin").unlink(missing_ok=True)
            words = ["qemu-aarch64", "-cpu", processor, "-E", f"N2D2_ISA={variant}", "bin/run_export", "-outputs", "all.bin"]
            done = subprocess.run(words, cwd=out, capture_output=True, text=True)
            if variant in variants[:known]:
                assert done.returncode == 0 and (out / "all.bin").read_bytes() == expected, (processor, variant)
            else:
                assert f"using {variants[known - 1]}" in done.stderr


@x86
@pytest.mark.slow
@pytest.mark.parametrize(
    "level, present, flags",
    [
        ("avx512vnni", 'return supports("avx512f")', "-DN2D2_EMULATED_AVX512VNNI -isystem {folder}/emulated -Wno-psabi"),
        (
            "amx",
            "return n2d2::amx::available()",
            "-DN2D2_EMULATED_AMX=1 -isystem {folder}/emulated_amx -DN2D2_EMULATED_AVX512VNNI -isystem {folder}/emulated -Wno-psabi",
        ),
        (
            "avxvnni",
            'return supports("avx2") && leaf7Bit(1, 4)',
            "-mavx2 -mf16c -DN2D2_EMULATED_AVXVNNI -isystem {folder}/emulated_avxvnni",
        ),
    ],
)
def test_vnni_levels_by_emulation(tmp_path, monkeypatch, level, present, flags):
    """The layers of a level with functions in place of its instructions, chosen on any machine."""
    if not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("SIMDe is not installed")
    if level == "avxvnni" and "avx2" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this machine lacks AVX2")
    graph = residual(True)
    made, out = dispatching(tmp_path / "out", graph)
    dispatch = out / "dnn" / "src" / "dispatch.cpp"
    source = dispatch.read_text()
    assert source.count(present) == 1
    source = source.replace(present, present.replace("return", "return 1 ||"))
    dispatch.write_text(source)
    folder = Path(__file__).resolve().parents[1] / "kernels"
    run_command("make", "-j2", "OPT=-O1", f"VARIANT_{level}={flags.format(folder=folder)}", cwd=out)
    monkeypatch.setenv("N2D2_ISA", level)
    done = run_export(out, "-outputs", "all.bin")
    assert done.returncode == 0, done.stderr
    assert (out / "all.bin").read_bytes() == expected_bytes(graph, made)


@x86
@pytest.mark.slow
def test_cmake_builds_every_level(tmp_path, monkeypatch):
    graph = chain(True)
    made, out = dispatching(tmp_path / "out", graph)
    for words in (["cmake", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"], ["cmake", "--build", "build", "-j2"]):
        done = subprocess.run(words, cwd=out, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
    for variant in ("portable", "sse4"):
        monkeypatch.setenv("N2D2_ISA", variant)
        run_command(out / "build" / "run_export", "-outputs", "all.bin", cwd=out)
        assert (out / "all.bin").read_bytes() == expected_bytes(graph, made)


@pytest.mark.parametrize(
    "flags, name, native",
    [
        ("-msse4.1", "sse4", "Sse41"),
        ("-mavx2", "avx2", "Avx2"),
        ("-mavx2 -mavxvnni", "avxvnni", "Avx2"),
        ("-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni", "avx512vnni", "Avx512Vnni"),
        ("-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mamx-int8", "amx", "Avx512Vnni"),
        ("-mavx2 -mamx-int8", "avx2", "Avx2"),
        ("-msse3", "portable", "Portable"),
        ("-mavx2 -DN2D2_ISA_PORTABLE", "portable", "Portable"),
    ],
)
@x86
def test_name_of_the_instruction_set(tmp_path, flags, name, native):
    """Names of the level and of the tag that kernels, and those of plug-ins, are specialised for."""
    (tmp_path / "a.cpp").write_text(f'''#include "n2d2/isa.hpp"
template <class A, class B> struct Same {{ enum : bool {{ value = false }}; }};
template <class A> struct Same<A, A> {{ enum : bool {{ value = true }}; }};
constexpr char name[] = N2D2_ISA_NAME;
static_assert(Same<n2d2::Native, n2d2::{native}>::value && sizeof(name) == sizeof("{name}"), "");
''')
    kernels = Path(__file__).resolve().parents[2] / "kernels"
    run_command(
        "g++",
        "-std=c++11",
        "-Wall",
        "-Wextra",
        "-Werror",
        *flags.split(),
        f"-I{kernels}",
        "-fsyntax-only",
        "a.cpp",
        cwd=tmp_path,
    )


@pytest.mark.slow
def test_threads_change_no_bit_and_one_needs_no_team(tmp_path, monkeypatch):
    """Without OpenMP, with one thread and with several: the same bytes; with one, no parallel region is entered."""
    graph = residual(True)
    made = request(graph, count=3)
    expected = expected_bytes(graph, made)
    out = write_export(tmp_path / "out", made)
    (tmp_path / "spy.c").write_text("""#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void GOMP_parallel(void (*f)(void*), void* data, unsigned threads, unsigned flags) {
    void (*real)(void (*)(void*), void*, unsigned, unsigned) = dlsym(RTLD_NEXT, "GOMP_parallel");
    fputs("region\\n", stderr);
    real(f, data, threads, flags);
}
""")
    run_command("gcc", "-shared", "-fPIC", "spy.c", "-o", "spy.so", "-ldl", cwd=tmp_path)
    for options, threads, regions in ((("OPENMP=0",), "2", False), ((), "", False), ((), "1", False), ((), "2", True)):
        make(out, "OPT=-O1", "CXXFLAGS=-DN2D2_PARALLEL_WORK=0 -Werror", *options)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if threads:
            monkeypatch.setenv("OMP_NUM_THREADS", threads)
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "spy.so"))
        done = run_export(out, "-outputs", "all.bin")
        monkeypatch.delenv("LD_PRELOAD")
        assert done.returncode == 0 and (out / "all.bin").read_bytes() == expected
        assert ("region" in done.stderr) == regions, (options, threads)


@pytest.mark.slow
def test_threads_and_instruction_set_of_the_interface(tmp_path, monkeypatch):
    """One thread unless it is asked for more; the teams of the caller keep their size."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    out = write_export(tmp_path / "out", request(chain(True)))
    make(out, "OPT=-O1", "lib", "ARCH=", "CXXFLAGS=-DN2D2_ISA_PORTABLE")
    library = ctypes.CDLL(str(next((out / "lib").glob("*.so"))))
    prefix = next((out / "lib").glob("*.so")).stem[3:]
    threads, set_threads, isa = (getattr(library, f"{prefix}_{name}") for name in ("threads", "set_threads", "isa"))
    isa.restype = ctypes.c_char_p
    assert threads() == 1 and isa() == b"portable"
    set_threads(2)
    assert threads() in (1, 2)
    set_threads(0)
    assert threads() == 1
    (tmp_path / "teams.cpp").write_text("""#include <omp.h>
#include <cstdio>
#include "Digits_1.hpp"
static Digits_1::input_t in[Digits_1::Input::Elements];
static Digits_1::output_t out[Digits_1::Output::Elements];
int main() {
    omp_set_num_threads(3);
    std::printf("%d", Digits_1_threads());
    Digits_1_set_threads(2);
    Digits_1::forward(in, out);
    std::printf(" %d %d\\n", Digits_1_threads(), omp_get_max_threads());
}
""")
    words = ["-std=c++11", "-fopenmp", "teams.cpp", f"-I{out}/include", f"{out}/lib/libDigits_1.a", "-o", "teams"]
    if subprocess.run(["g++", *words], cwd=tmp_path).returncode == 0:
        assert run_command(tmp_path / "teams") == "1 2 3\n"
