"""Every kernel that has a version for an instruction set of this machine, bit for bit: sizes around each block."""

import platform
import re
import subprocess
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import ISAS, LEVELS, X86, check_build, on_builds, set_name
from support.kernel_cases import S8, sweep_cases
from support.kernel_overlaps import overlapping_cases
from support.kernel_simd import dense_cases, full_cases, line_cases, simd_cases
from support.programs import run_command

from n2d2py.contracts.cpp.forms import panels as forms
from n2d2py.contracts.cpp.forms.contract import KernelFacts
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import layer_code
from n2d2py.exports.cpp.tune import tile_constants


def test_cases_use_the_panels():
    made = simd_cases(1)
    texts = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in made]
    native = [
        code
        for code in texts
        if re.search(r"typedef n2d2::((Real)?Native|Choose<n2d2::\w+, n2d2::Native, .*) Isa;", code.config)
    ]
    assert len(native) > 0.9 * len(made)
    assert all(code.selection.kernel.name for code in native)
    for code in native:
        portable = code.portable()
        assert "Native" not in portable.config and not portable.selection.kernel.name
        assert all(not array.forms for array in portable.arrays)


@on_builds({f"-O0 {isa}": 5 for isa in ISAS}, f"g++|clang++ {LEVELS} {X86}")
def test_simd(tmp_path, build, every):
    made = simd_cases(2)[::every]
    check_build(made if every > 1 else [*made, *overlapping_cases(6)], tmp_path, build)


@on_builds(
    {"-O0 avx2 3x2:1024": 12},
    f"-O0 {X86} 6x1:8192|3x2:65536|5x1:1024|24x1:24576|1x4:65536",
    "-O0 emulated-avxvnni 3x2:65536|5x1:1024|1x4:65536",
)
def test_tiles(tmp_path, monkeypatch, build, every):
    *_, isa, tile = build.split()
    constants = tile_constants(f"{set_name(isa.removeprefix('emulated-'))}:{tile}")
    monkeypatch.setattr(harness, "layer_code", lambda *layer: layer_code(*layer).tiled(constants))
    made = [*dense_cases(cases.Sweep(9)), *overlapping_cases(8)]
    check_build(made[:: max(2, every)], tmp_path, build.removesuffix(tile))


def test_some_of_avxvnni_emulated(tmp_path):
    """The convolutions and fully connected layers, which alone differ from AVX2."""
    sweep = cases.Sweep(12)
    made = [*islice(dense_cases(sweep), 0, None, 20), *islice(line_cases(sweep), 0, None, 3), *full_cases(sweep)[::6]]
    check_build(made, tmp_path, "-O0 emulated-avxvnni")


def test_layers_whose_windows_are_read_from_lines(tmp_path):
    """Those of which enough of the time is gathering: few channels, lines that tiles divide."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the AVX-VNNI kernels are for x86")
    layers = {
        (32, 16, 16, 1): True,
        (32, 16, 32, 2): True,
        (16, 32, 32, 1): True,
        (16, 32, 64, 2): False,
        (8, 64, 64, 1): False,
        (7, 512, 512, 1): False,
        (32, 3, 16, 1): False,
    }
    text = "".join(
        f"static_assert(bool(n2d2::PanelTiles<Layer<{h}, {c}, {o}, {s}>, n2d2::avxvnni::Microkernel>::ByLines) == {str(lines).lower()}, "
        f'"{h}x{h}, {c} to {o}, stride {s}");\n'
        for (h, c, o, s), lines in layers.items()
    )
    (tmp_path / "a.cpp").write_text(
        """#include "n2d2/convolution.hpp"
template <int Size, int Count>
struct Plane {
    typedef unsigned char Type;
    enum : int { Height = Size, Width = Size, Channels = Count, Stride = Count, Lines = Size };
    enum : long { Offset = 0, WrapOffset = 0 };
};
struct Last { typedef unsigned char Type; };
template <int Size, int C, int O, int Step>
struct Layer {
    typedef Plane<Size, C> Input;
    typedef Plane<Size / Step, O> Output;
    typedef Last Epilogue;
    typedef signed char Weight;
    typedef int Sum;
    enum : int { KernelHeight = 3, KernelWidth = 3, StrideHeight = Step, StrideWidth = Step, DilationHeight = 1, DilationWidth = 1,
                 PadTop = 1, PadLeft = 1, Groups = 1, InputZero = 0, Serial = 0, Streamed = 0 };
};
"""
        + text
    )
    run_command(
        "g++", *harness.WARNINGS, "-mavx2", "-mavxvnni", f"-I{harness.ROOT / 'kernels'}", "-fsyntax-only", tmp_path / "a.cpp"
    )


@on_builds({}, "-O1|-O3,parallel|sanitizers emulated-avxvnni", "-O1|-O1,parallel emulated-avx512")
def test_emulated(tmp_path, build, every):
    check_build([*simd_cases(4), *overlapping_cases(7)][:: 1 + ("-O1,parallel" in build)], tmp_path, build)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_avxvnni_itself_compiles(tmp_path, compiler, level):
    """The instructions, for processors that may not be at hand."""
    sweep = cases.Sweep(13)
    made = [*islice(dense_cases(sweep), 0, None, 6), *islice(line_cases(sweep), 0, None, 4), *full_cases(sweep)[::4]]
    (tmp_path / "cases.cpp").write_text("\n".join(harness.source(case, i) for i, case in enumerate(made)))
    run_command(
        compiler,
        *harness.WARNINGS,
        level,
        "-mavx2",
        "-mfma",
        "-mavxvnni",
        f"-I{harness.ROOT / 'kernels'}",
        "-c",
        tmp_path / "cases.cpp",
        "-o",
        tmp_path / "cases.o",
    )
    assert b"vpdpbusd" in subprocess.run(["objdump", "-d", tmp_path / "cases.o"], stdout=subprocess.PIPE, check=True).stdout


@on_builds({}, f"-O3 {X86}")
def test_whole_sweep(tmp_path, build, every):
    check_build(sweep_cases(8, 132), tmp_path, build)


@on_builds({}, "-O2 avx512 portable")
def test_portable_where_simd_would_be(tmp_path, build, every):
    check_build(simd_cases(3), tmp_path, build)


def test_bias_of_signed_inputs():
    """sum of w * (x + 128) + bias' is sum of w * x + bias, also where that leaves 32 bits on the way."""
    weights = np.array([[127] * 300, [-128] * 300])
    bias = np.array([2**31 - 1, -(2**31)])
    layer = SimpleNamespace(inputs=[S8], integer=True, values={"bias": bias}.__getitem__)
    facts = KernelFacts(layer, "convolution", weights)
    x = np.arange(300) % 255 - 127
    wrapped = (forms.moved_bias(facts).astype(np.int64) + (weights * (x + 128)).sum(axis=1)) & 0xFFFFFFFF
    assert wrapped.tolist() == ((bias + (weights * x).sum(axis=1)) & 0xFFFFFFFF).tolist()
