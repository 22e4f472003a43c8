"""AMX: convolutions in its registers, where the machine has them or with registers in memory, bit for bit."""

import platform
import subprocess
from itertools import cycle
from pathlib import Path

import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import AMX_TILES, FLAGS, NEEDED, check_build, flags_of, on_builds
from support.kernel_cases import K1, K3, S8, U8
from support.kernel_overlaps import over, overlapping_cases
from support.kernel_simd import dense_cases, line_cases
from support.programs import run_command

from n2d2py.arithmetic import NumType

ALWAYS = "-DN2D2_AMX_ALWAYS"
"""Layers too that are faster without."""

BYTES = ((U8, U8), (S8, U8), (U8, S8), (S8, S8))


def amx_cases(seed: int) -> list[harness.Case]:
    """Inputs around 16, 64 and 128 to a window, outputs around 16 and 32, pixels around 16, 32 and 64, several blocks of windows, in place
    and gathered, strides, both paddings, groups, outputs of 16 and 32 bits, with a zero point, layers over their inputs."""
    sweep, made = cases.Sweep(seed), []
    kinds = cycle((*BYTES, (U8, NumType(16)), (U8, NumType(8, True, zero_point=9)), (S8, NumType(32))))
    placed = cycle(("apart", "apart", "wrapped", "strided", "apart", "ring", "columns"))
    shapes = cycle(((4, 4), (3, 11), (8, 8), (5, 7), (1, 17), (16, 3), (13, 11), (6, 6)))
    outputs = cycle((16, 32, 24, 7, 64, 33, 48, 80, 8))
    for channels in (16, 32, 64, 128, 192, 8, 15, 20, 60, 63, 65, 68, 96, 127, 129, 130, 144, 256, 16, 64, 32, 128):
        shape = next(shapes)
        made.append(sweep.conv((1, channels, *shape), next(outputs), K1, next(kinds), next(placed)))
    for i, window in enumerate(cases.WINDOWS * 2):
        channels = (64, 3, 32, 22, 16, 128, 7)[i % 7]
        made.append(
            sweep.conv((1, channels, 9 + i % 3, 11 + i % 5), next(outputs), window, next(kinds), next(placed), zero=9 * (i % 2))
        )
    for groups, channels in ((2, 64), (3, 60), (2, 256)):
        made.append(sweep.conv((1, channels, 6, 7), groups * 16, K3, next(kinds), groups=groups))
    for channels, size in ((192, (16, 30)), (64, (40, 33))):  # several blocks
        made.append(sweep.conv((1, channels, *size), 33, K3, next(kinds), zero=5))
    for i, (channels, some, window) in enumerate(((64, 16, K1), (16, 64, K1), (32, 48, K3), (64, 64, K3), (96, 24, K3))):
        case = sweep.conv((1, channels, 12, 9), some, window, BYTES[i % 4])
        made += [over(case, False), over(case, True)]
    return made


def emulated() -> str:
    """Flags for registers in memory beside the AVX-512 of the machine, or of SIMDe."""
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
        pytest.skip("the AMX kernels are for x86-64 and Linux")
    own = set(Path("/proc/cpuinfo").read_text().split()) >= NEEDED["avx512"]
    return ",".join((ALWAYS, *((*AMX_TILES, *FLAGS["avx512"]) if own else flags_of("emulated-amx"))))


@on_builds(
    {f"-O0,{ALWAYS} amx": 2}, f"g++|clang++ -O0,{ALWAYS}|-O3,{ALWAYS}|sanitizers,{ALWAYS} amx", f"g++ -O3,parallel,{ALWAYS} amx"
)
def test_in_registers(tmp_path, build, every):
    made = amx_cases(3)[::every]
    check_build(made if every > 1 else [*made, *overlapping_cases(9)], tmp_path, build)


@on_builds({"-O1": 6}, "-O1|-O2,parallel|-O1,-DN2D2_SHARES_BACKWARDS,-DN2D2_PARALLEL_WORK=0|sanitizers")
def test_in_memory(tmp_path, build, every):
    """Each use of a register is checked: its shape, that it was configured, that it was released."""
    sweep, made = cases.Sweep(11), amx_cases(4)[::every]
    more = [] if every > 1 else [*dense_cases(sweep), *line_cases(sweep), *overlapping_cases(7)]
    check_build([*made, *more], tmp_path, f"{build} {emulated()}")


@on_builds({"-O1": 7}, "-O1")
def test_where_the_system_refuses(tmp_path, build, every):
    """Sums by AVX-512, and no use of a register: it would end the program."""
    flags = emulated().replace("-DN2D2_EMULATED_AMX=1", "-DN2D2_EMULATED_AMX=0")
    check_build(amx_cases(5)[:: max(2, every)], tmp_path, f"{build} {flags}")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_instructions_compile(tmp_path, compiler):
    """For processors that may not be at hand."""
    if platform.machine() not in ("x86_64", "AMD64") or platform.system() != "Linux":
        pytest.skip("the AMX kernels are for x86-64 and Linux")
    made = amx_cases(6)[::8]
    (tmp_path / "cases.cpp").write_text("\n".join(harness.source(case, i) for i, case in enumerate(made)))
    words = [*harness.WARNINGS, "-O3", ALWAYS, *FLAGS["amx"], f"-I{harness.ROOT / 'kernels'}"]
    run_command(compiler, *words, "-c", tmp_path / "cases.cpp", "-o", tmp_path / "cases.o")
    text = subprocess.run(["objdump", "-d", tmp_path / "cases.o"], stdout=subprocess.PIPE, check=True).stdout
    assert all(name in text for name in (b"tdpbusd", b"tileloadd", b"tilestored", b"ldtilecfg", b"tilerelease"))
