"""Every kernel that has a version for an instruction set of this machine, bit for bit: sizes around each block."""

from __future__ import annotations

import platform
import re
import subprocess
from itertools import cycle
from pathlib import Path

import kernel_cases as cases
import kernel_harness as harness
import numpy as np
import pytest
from kernel_cases import S8, S16, U8, U16
from test_kernel_overlap import over, overlapping_cases
from test_sweep import need, sweep_cases

from n2d2py.arithmetic import FLOAT32, NumType
from n2d2py.export.cpp import variants
from n2d2py.export.cpp.code import layer_code
from n2d2py.export.cpp.identifiers import Identifiers
from n2d2py.export.cpp.tiles import tile_constants

FLAGS = {
    "avx512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni"),
    "avx2": ("-mavx2", "-mfma"),
    "sse4": ("-msse4.1",),
}
"""What n2d2/isa.hpp asks for; no -march, so that nothing else of the machine is used unseen."""
NEEDED = {"avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}, "avx2": {"avx2", "fma"}, "sse4": {"sse4_1"}}
EMULATED = ("-DN2D2_EMULATED_AVX512VNNI", "-isystem", str(Path(__file__).parent / "emulated"), "-Wno-psabi")
"""The AVX-512 kernels on any x86 machine, with the instructions of SIMDe."""
EMULATED_AVXVNNI = ("-DN2D2_EMULATED_AVXVNNI", "-isystem", str(Path(__file__).parent / "emulated_avxvnni"))
"""The AVX-VNNI kernels on a machine with AVX2, in the same way."""
ISAS = sorted(FLAGS)
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
KINDS = ((U8, U8), (S8, U8), (U8, S8), (S8, S8), (U8, S16), (S8, U16), (U8, NumType(32)))
LAYOUTS = ("apart", "strided", "wrapped", "over", "ring", "strided wrapped")


def need_isa(isa: str) -> tuple[str, ...]:
    """The compiler's flags for an instruction set that this machine has."""
    cpuinfo = Path("/proc/cpuinfo")
    known = set(cpuinfo.read_text().split()) if cpuinfo.is_file() else set()
    if not NEEDED[isa] <= known:
        pytest.skip(f"this machine lacks {', '.join(sorted(NEEDED[isa] - known))}")
    return FLAGS[isa]


def byte_weights(case: harness.Case) -> harness.Case:
    """The case with its 16-bit weights divided to 8 bits, as layers with 16-bit inputs and 8-bit weights have them."""
    params = case.node.params
    params["weights"], params["bias"] = params["weights"] // 260, params["bias"] // 260
    case.node.bound = int(params["weights"][0].size * 128 * 2**16 + np.abs(params["bias"]).max())
    return case


def dense_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Outputs around 16, inputs around 4, pixels around a tile, several blocks of windows, every layout."""
    made, kinds, placed = [], cycle(KINDS), cycle(LAYOUTS)
    for outputs, channels in zip(
        (1, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 80, 81, 96, 128, 130), cycle((4, 5, 16, 63, 64, 65, 3, 32))
    ):
        size = [(1, 1), (1, 5), (6, 8), (7, 7), (5, 13)][outputs % 5]
        made.append(
            sweep.conv((1, channels, *size), outputs, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, next(kinds), next(placed))
        )
    for i, (kernel, stride, pads, dilation) in enumerate(cases.GEOMETRY):
        channels, outputs = (3, 20, 33, 1, 16)[i % 5], (16, 40, 70)[i % 3]
        made.append(
            sweep.conv((1, channels, 9, 11), outputs, kernel, stride, pads, dilation, 1, next(kinds), next(placed), 9 * (i % 2))
        )
    for kind, layout in zip(KINDS, ("over", "ring", "wrapped", "over", "apart", "ring", "apart"), strict=True):
        made.append(sweep.conv((1, 72, 13, 12), 24, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, kind, layout))
    for i, (kind, layout) in enumerate(zip(((S16, U8), (U16, S8), (S16, S16), (U16, U16)) * 3, cycle(LAYOUTS))):
        channels, outputs = (1, 3, 8, 33)[i % 4], (16, 64, 5, 48, 33)[i % 5]
        kernel, pads = (((1, 1), (0, 0, 0, 0)), ((3, 2), (1, 1, 1, 0)))[i % 2]
        made.append(
            byte_weights(sweep.conv((1, channels, 6, 7), outputs, kernel, (1, 1), pads, (1, 1), 1, kind, layout, 5 * (i % 2)))
        )
    made.append(sweep.conv((1, 64, 5, 6), 48, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 2, (S8, S8), "over"))
    made.append(sweep.conv((1, 36, 7, 6), 51, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1), 3, (U8, U8), "ring"))
    return made


def line_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Windows read from padded lines where a kernel has that: lines of whole and of unequal tiles, several blocks, input beyond the
    last window, padding on each side, strides, dilated lines, kernels of one line and of one column."""
    made, kinds, placed = [], cycle(KINDS), cycle(("apart", "wrapped", "over", "apart", "ring"))
    for i, (channels, outputs, kernel, stride, pads, dilation, size) in enumerate(
        (
            (16, 16, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (9, 16)),
            (4, 20, (3, 3), (2, 2), (1, 1, 0, 0), (1, 1), (9, 26)),
            (8, 33, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), (7, 17)),
            (16, 16, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1), (8, 24)),
            (12, 24, (1, 4), (1, 1), (0, 2, 0, 1), (1, 1), (6, 25)),
            (16, 40, (3, 3), (1, 1), (2, 1, 2, 1), (2, 1), (10, 16)),
            (16, 16, (2, 2), (2, 3), (0, 0, 0, 0), (1, 1), (9, 52)),
            (20, 64, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), (7, 24)),
            (64, 16, (3, 3), (1, 1), (0, 3, 0, 0), (1, 1), (24, 46)),
            (32, 7, (3, 3), (1, 1), (1, 0, 1, 2), (1, 1), (12, 35)),
            (2, 16, (3, 2), (1, 1), (1, 1, 1, 0), (1, 1), (8, 33)),
            (4, 48, (7, 7), (2, 2), (3, 3, 3, 3), (1, 1), (14, 48)),
        )
    ):
        made.append(
            sweep.conv((1, channels, *size), outputs, kernel, stride, pads, dilation, 1, next(kinds), next(placed), 6 * (i % 2))
        )
    for kind in ((S16, U8), (U16, S8)):
        made.append(byte_weights(sweep.conv((1, 8, 8, 16), 16, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, kind, "apart")))
    return made


def depthwise_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Channels around 16 and 64, 1 to 9 lines of a kernel, lines longer than a buffer."""
    made, kinds, placed = [], cycle(KINDS), cycle(LAYOUTS)
    kernels = cycle([(3, 3), (1, 1), (4, 2), (5, 5), (2, 3), (8, 1), (9, 3), (3, 3)])
    for i, channels in enumerate((1, 15, 16, 17, 48, 63, 64, 65, 79, 80, 81, 112, 127, 128, 129, 192)):
        kernel, stride = next(kernels), ((1, 1), (2, 2), (1, 2))[i % 3]
        pads = (kernel[0] // 2, kernel[1] // 2, (kernel[0] - 1) // 2, (kernel[1] - 1) // 2)
        size = ((6, 7), (9, 35), (5, 17))[i % 3]
        made.append(
            sweep.conv(
                (1, channels, *size), channels, kernel, stride, pads, (1, 1), channels, next(kinds), next(placed), 7 * (i % 2)
            )
        )
    for i, channels in enumerate((1, 3, 4, 5, 7, 8, 9, 12, 13, 16, 20, 24, 28, 40, 56, 68, 72, 96, 136, 144, 16)):
        stride, width = ((1, 1), (2, 2), (1, 1), (1, 2), (2, 1))[i % 5], (1, 2, 3, 4, 5, 6, 7, 8, 9, 17, 34)[i % 11]
        before, after = ((0, 0), (1, 1), (0, 1), (2, 0), (1, 0), (2, 2), (4, 1))[i % 7]
        pads = (before % 3, before, 2, max(after, 3 - width - before))
        made.append(
            sweep.conv(
                (1, channels, 1 + i % 6, width),
                channels,
                (3, 3),
                stride,
                pads,
                (1, 1),
                channels,
                next(kinds),
                next(placed),
                5 * (i % 2),
            )
        )
    made.append(sweep.conv((1, 64, 9, 9), 64, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 64, (S8, U8), "over"))
    made.append(sweep.conv((1, 80, 9, 9), 80, (3, 2), (1, 2), (1, 3, 1, 0), (1, 3), 80, (U8, S16), "apart", 3))
    return made


def full_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Fully connected layers around 16 and 8 * 16 outputs."""
    shapes = cycle([(1, 64), (1, 5), (1, 67), (1, 16, 3, 2), (1, 5, 4, 3)])
    return [
        sweep.fc(next(shapes), outputs, kind, layout)
        for outputs, kind, layout in zip((1, 15, 16, 17, 127, 128, 129, 144, 250), cycle(KINDS), cycle(cases.POINTWISE_LAYOUTS))
    ] + [
        byte_weights(sweep.fc(next(shapes), outputs, (kind, U8), layout))
        for outputs, kind, layout in ((17, S16, "apart"), (130, U16, "apart"), (10, S16, "strided"), (16, U16, "wrapped"))
    ]


def run_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Pointwise layers in runs around 16, 32 and 64 elements."""
    made, placed = [], cycle(cases.POINTWISE_LAYOUTS)
    for i, (channels, columns) in enumerate(
        ((1, 16), (7, 5), (16, 1), (31, 1), (32, 3), (33, 2), (64, 1), (80, 1), (96, 2), (129, 1))
    ):
        kinds = (KINDS[i % 4][0], U8, S8)[: 2 + i % 2]
        made.append(
            sweep.elemwise(
                ("Sum", "Max", "Sum", "Min")[i % 4],
                (1, channels, 2, columns),
                2 + i % 2,
                (*kinds, KINDS[i % 7][1]),
                next(placed),
            )
        )
        made.append(sweep.affine((1, channels, 2, columns), KINDS[i % 7], next(placed)))
    return made


def zero_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """Outputs with a zero point, as quantized files have them, in the kernels with a last stage in registers."""
    made, placed = [], cycle(cases.POINTWISE_LAYOUTS)
    for i, (signed, zero) in enumerate(((False, 131), (True, -17), (False, 3), (True, 100), (False, 255), (True, -128))):
        kinds = ((U8, S8)[i % 2], NumType(8, signed, zero_point=zero))
        made.append(
            sweep.conv(
                (1, (16, 5)[i % 2], 6, 7), (16, 40, 7)[i % 3], (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, kinds, next(placed)
            )
        )
        channels = (64, 17, 8)[i % 3]
        made.append(
            sweep.conv((1, channels, 7, 6), channels, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), channels, kinds, next(placed))
        )
        made.append(sweep.fc((1, 20), (10, 48)[i % 2], kinds, next(placed)))
        made.append(sweep.elemwise("Sum", (1, (33, 8, 64)[i % 3], 2, 3), 2, (U8, S8, kinds[1]), next(placed)))
    return made


def real_cases(sweep: cases.Sweep) -> list[harness.Case]:
    """float32: outputs around 16, channels around 4, 8 and 16, pixels around a tile, padding, strides, groups of 16."""
    kinds, placed, made = (FLOAT32, FLOAT32), cycle(LAYOUTS), []
    for outputs, channels, (kernel, stride, pads, dilation) in zip(
        (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 70),
        cycle((1, 3, 8, 16, 17, 20, 5)),
        cycle(cases.GEOMETRY[:5] + cases.GEOMETRY[6:8]),
    ):
        made.append(sweep.conv((1, channels, 6, 7), outputs, kernel, stride, pads, dilation, 1, kinds, next(placed)))
    made.append(sweep.conv((1, 12, 5, 7), 64, (3, 1), (1, 1), (1, 0, 1, 0), (1, 1), 4, kinds, "apart"))
    for channels, (kernel, stride, pads, dilation) in zip(cycle((3, 8, 9, 16, 20, 33, 4)), cases.GEOMETRY[1:]):
        made.append(sweep.conv((1, channels, 9, 7), channels, kernel, stride, pads, dilation, channels, kinds, next(placed)))
    made += [sweep.fc((1, 37), outputs, kinds, layout) for outputs, layout in ((10, "apart"), (65, "strided"), (144, "apart"))]
    return made


def simd_cases(seed: int) -> list[harness.Case]:
    """The cases of all SIMD kernels; forwards and backwards over the input where there is room."""
    sweep = cases.Sweep(seed)
    made = [
        *dense_cases(sweep),
        *line_cases(sweep),
        *depthwise_cases(sweep),
        *full_cases(sweep),
        *run_cases(sweep),
        *zero_cases(sweep),
        *real_cases(sweep),
    ]
    apart = [
        sweep.conv((1, c, 9, 14), o, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), c if c == o else 1, kinds, "apart")
        for c, o, kinds in ((96, 96, (U8, U8)), (20, 40, (S8, U8)), (64, 16, (U8, S8)), (72, 72, (S8, S8)))
    ]
    return made + [over(case, backwards) for case in apart for backwards in (False, True)]


def test_cases_use_the_panels():
    made = simd_cases(1)
    texts = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in made]
    native = [code for code in texts if re.search("typedef n2d2::(Real)?Native Isa;", code.config)]
    assert len(native) > 0.9 * len(made)
    assert all(code.kernel for code in native)
    for code in native:
        portable = code.portable()
        assert "Native" not in portable.config and not portable.kernel
        assert all(not array.forms for array in portable.arrays)


@pytest.mark.parametrize("isa", ISAS)
def test_simd(tmp_path, isa):
    need("g++")
    every = 4 if isa == "sse4" else 1  # the slow builds take all
    harness.check_all(simd_cases(1)[::every], tmp_path, "g++", ("-O1", *need_isa(isa)))


def check_tile(tmp_path, monkeypatch, isa: str, tile: str, every: int, flags: tuple[str, ...] = ()) -> None:
    constants = tile_constants(f"{'avx512vnni' if isa == 'avx512' else isa}:{tile}")
    monkeypatch.setattr(harness, "layer_code", lambda *layer: layer_code(*layer).tiled(constants))
    made = [*dense_cases(cases.Sweep(9)), *overlapping_cases(8)][::every]
    harness.check_all(made, tmp_path, "g++", ("-O1", *(flags or need_isa(isa))))


def test_another_tile(tmp_path, monkeypatch):
    need("g++")
    check_tile(tmp_path, monkeypatch, "avx2", "3x2:1024", 12)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("tile", ["6x1:8192", "3x2:65536", "5x1:1024", "24x1:24576", "1x4:65536"])
def test_tiles(tmp_path, monkeypatch, isa, tile):
    need("g++")
    check_tile(tmp_path, monkeypatch, isa, tile, 2)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS],
    ids=["O0", "O3-all-loops-parallel", "sanitizers"],
)
def test_simd_builds(tmp_path, compiler, flags, isa):
    need(compiler)
    if compiler == "clang++":
        flags = tuple(flag for flag in flags if flag != "-fopenmp")
    harness.check_all([*simd_cases(2), *overlapping_cases(6)], tmp_path, compiler, (*flags, *need_isa(isa)))


def need_emulated_avxvnni() -> tuple[str, ...]:
    """The compiler's flags for the AVX-VNNI kernels on this machine."""
    if not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("SIMDe is not installed (libsimde-dev)")
    return (*need_isa("avx2"), *EMULATED_AVXVNNI)


def test_some_of_avxvnni_emulated(tmp_path):
    """The convolutions and fully connected layers, which alone differ from AVX2."""
    need("g++")
    sweep = cases.Sweep(12)
    harness.check_all(
        [*dense_cases(sweep)[::20], *line_cases(sweep)[::3], *full_cases(sweep)[::6]],
        tmp_path,
        "g++",
        ("-O1", *need_emulated_avxvnni()),
    )


def test_layers_whose_windows_are_read_from_lines(tmp_path):
    """Those of which enough of the time is gathering: few channels, lines that tiles divide."""
    need("g++")
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
    harness.command(
        "g++", *harness.WARNINGS, "-mavx2", "-mavxvnni", f"-I{harness.ROOT / 'kernels'}", "-fsyntax-only", tmp_path / "a.cpp"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [("-O1",), ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS],
    ids=["one-thread", "all-loops-parallel", "sanitizers"],
)
def test_avxvnni_emulated(tmp_path, flags):
    need("g++")
    harness.check_all([*simd_cases(4), *overlapping_cases(7)], tmp_path, "g++", (*flags, *need_emulated_avxvnni()))


@pytest.mark.slow
@pytest.mark.parametrize("tile", ["3x2:65536", "5x1:1024", "1x4:65536"])
def test_tiles_of_avxvnni_emulated(tmp_path, monkeypatch, tile):
    need("g++")
    check_tile(tmp_path, monkeypatch, "avxvnni", tile, 2, need_emulated_avxvnni())


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_avxvnni_itself_compiles(tmp_path, compiler, level):
    """The instructions, for processors that may not be at hand."""
    need(compiler)
    sweep = cases.Sweep(13)
    made = [*dense_cases(sweep)[::6], *line_cases(sweep)[::4], *full_cases(sweep)[::4]]
    (tmp_path / "cases.cpp").write_text("\n".join(harness.source(case, i) for i, case in enumerate(made)))
    harness.command(
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


@pytest.mark.slow
@pytest.mark.parametrize("threads", [(), ("-fopenmp", "-DN2D2_PARALLEL_WORK=0")], ids=["one-thread", "all-loops-parallel"])
def test_avx512_emulated(tmp_path, threads):
    need("g++")
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the AVX-512 kernels are for x86")
    if not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("SIMDe is not installed (libsimde-dev)")
    harness.check_all(
        [*simd_cases(4), *overlapping_cases(7)][:: 1 + len(threads)], tmp_path, "g++", ("-O1", *threads, *EMULATED), units=2
    )


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
def test_whole_sweep(tmp_path, isa):
    need("g++")
    harness.check_all(sweep_cases(8, 132), tmp_path, "g++", ("-O3", *need_isa(isa)))


@pytest.mark.slow
def test_portable_where_simd_would_be(tmp_path):
    need("g++")
    harness.check_all(simd_cases(3), tmp_path, "g++", ("-O2", *need_isa("avx512"), "-DN2D2_ISA_PORTABLE"))


def test_matrix_panels():
    weights = np.arange(2 * 18 * 5).reshape(36, 5) % 127
    packed = variants.packed_matrix(weights, 18)
    first, rest = packed[: 2 * 16 * 4].reshape(2, 16, 4), packed[2 * 16 * 4 : 2 * 18 * 4].reshape(2, 2, 4)
    assert packed.size == 36 * 8
    assert first[0, 3].tolist() == weights[3, :4].tolist() and first[1, 3].tolist() == [weights[3, 4], 0, 0, 0]
    assert rest[0, 1].tolist() == weights[17, :4].tolist()
    assert packed[2 * 18 * 4 :][:4].tolist() == weights[18, :4].tolist()


def test_depthwise_panels():
    weights = np.arange(70 * 5 * 2).reshape(70, 5, 2) % 127
    order = variants.depthwise_order(70)
    packed = variants.packed_depthwise(weights)
    assert sorted(order.tolist()) == list(range(70)) and order[64:].tolist() == list(range(64, 70))
    assert order[:8].tolist() == [0, 1, 2, 3, 16, 17, 18, 19]
    panel = packed[: 2 * 2 * 16 * 4].reshape(2, 2, 16, 4)  # fours, columns, channels, lines
    assert panel[0, 1, 4].tolist() == weights[16, :4, 1].tolist()
    assert panel[1, 0, 4].tolist() == [weights[16, 4, 0], 0, 0, 0]
    last = packed[4 * 2 * 2 * 16 * 4 :].reshape(2, 2, 6, 4)
    assert last[0, 0, 5].tolist() == weights[69, :4, 0].tolist()


def test_bias_of_signed_inputs():
    """sum of w * (x + 128) + bias' is sum of w * x + bias, also where that leaves 32 bits on the way."""
    weights = np.array([[127] * 300, [-128] * 300])
    bias = np.array([2**31 - 1, -(2**31)])
    facts = variants.Facts("convolution", S8, S8, "std::int8_t", "std::int32_t", 1, 2, 300, 1)
    x = np.arange(300) % 255 - 127
    panels = variants.choose(facts)[0].pack(weights, bias, facts)
    wrapped = (panels.bias.astype(np.int64) + (weights * (x + 128)).sum(axis=1)) & 0xFFFFFFFF
    assert wrapped.tolist() == ((bias + (weights * x).sum(axis=1)) & 0xFFFFFFFF).tolist()


@pytest.mark.parametrize(
    "change, reason",
    [
        (
            {"kernel": "depthwise", "outputs": 1, "input": S16},
            "no lines by four: its inputs are int16; it takes integers of 8 bits",
        ),
        ({"weight_type": "std::int16_t"}, "no panels of 16 outputs: its weights are int16; it takes int8"),
        ({"sum_type": "std::int64_t"}, "no panels of 16 outputs: its sums are int64; it takes int32"),
        ({"groups": 4, "outputs": 2}, "no panels of 16 outputs: its groups have 2 outputs; it takes 8 and more"),
        ({"inputs": 3, "taps": 1}, "no panels of 16 outputs: an output has 3 inputs; it takes 4 and more"),
        ({"weight_type": "double"}, "no panels of 16 outputs in floating point: its weights are double; it takes float"),
        ({"kernel": "softmax"}, ""),
    ],
)
def test_other_layers_stay_portable(change, reason):
    facts = {
        "kernel": "convolution",
        "input": U8,
        "output": U8,
        "weight_type": "std::int8_t",
        "sum_type": "std::int32_t",
        "groups": 1,
        "outputs": 16,
        "inputs": 16,
        "taps": 9,
    }
    assert variants.choose(variants.Facts(**facts)) == (variants.IMPLEMENTATIONS[0], "")
    assert variants.choose(variants.Facts(**{**facts, **change})) == (None, reason)
