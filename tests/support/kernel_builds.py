"""The builds that kernels must be right in: compilers, flags, instruction sets of this machine or emulated, other processors in QEMU."""

import ctypes
import re
import shutil
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from support import kernel_harness as harness
from support.programs import need

_AVX512 = ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni")
FLAGS = {"amx": (*_AVX512, "-mamx-tile", "-mamx-int8"), "avx512": _AVX512, "avx2": ("-mavx2", "-mfma"), "sse4": ("-msse4.1",)}
"""Options that n2d2/isa.hpp needs for the set; without -march, which would allow other instructions of the machine too."""
_NEEDED_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"}
NEEDED = {
    "amx": {*_NEEDED_AVX512, "amx_tile", "amx_int8"},
    "avx512": _NEEDED_AVX512,
    "avx2": {"avx2", "fma"},
    "sse4": {"sse4_1"},
}
ISAS = sorted(FLAGS, key=lambda isa: (isa != "avx2", isa))
X86 = "|".join(ISAS)


def _emulation(macro: str, folder: str) -> tuple[str, ...]:
    return (f"-DN2D2_EMULATED_{macro}", "-isystem", str(harness.ROOT / "tests" / "kernels" / folder))


EMULATED = (*_emulation("AVX512VNNI", "emulated"), "-Wno-psabi")
"""The AVX-512 kernels on any x86 machine, with the instructions of SIMDe."""
AMX_TILES = _emulation("AMX=1", "emulated_amx")
"""Beside the flags of AVX-512, or EMULATED: AMX with its registers in memory."""
SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WORDS: dict[str, tuple[str, ...]] = {
    "native": ("-march=native",),
    "openmp": ("-fopenmp",),
    "parallel": ("-fopenmp", "-DN2D2_PARALLEL_WORK=0"),
    "sanitizers": SANITIZERS,
    "portable": ("-DN2D2_ISA_PORTABLE",),
    "emulated-avx512": EMULATED,
    "emulated-amx": (*AMX_TILES, *EMULATED),
    "emulated-avxvnni": (*FLAGS["avx2"], *_emulation("AVXVNNI", "emulated_avxvnni")),
}
"""Names of flags: `parallel` shares every loop among threads."""
LEVELS = "-O0|-O3,parallel|sanitizers"
SLOW_BUILDS = ("g++|clang++ -O0|sanitizers", "g++|clang++ -O3,native,openmp", "g++ -O2,parallel", "g++ -O2,native,parallel")
"""Those of the sweeps of all kernels."""

# Debian's clang without a number is older than the vectors of RISC-V.
CLANG = next((name for name in (f"clang++-{version}" for version in range(21, 15, -1)) if shutil.which(name)), "clang++-16")

_WASI = ("--target=wasm32-wasi", "-isystem", "/usr/include/wasm32-wasi/c++/v1", "-fno-exceptions", "-msimd128")
_NODE = ("node", "--no-warnings", str(harness.ROOT / "export_templates" / "cpp" / "run" / "wasi.mjs"))

TARGETS = {
    "wasm32-simd": (CLANG, (*_WASI, "-Wl,-z,stack-size=8388608", "-Wno-unused-command-line-argument"), _NODE),
    "aarch64": ("aarch64-linux-gnu-g++", ("-march=armv8-a",), ("qemu-aarch64", "-cpu", "max")),
    "aarch64-dot": ("aarch64-linux-gnu-g++", ("-march=armv8.2-a+dotprod",), ("qemu-aarch64", "-cpu", "max")),
    "aarch64-i8mm": ("aarch64-linux-gnu-g++", ("-march=armv8.2-a+dotprod+i8mm",), ("qemu-aarch64", "-cpu", "max")),
    "armv7": ("arm-linux-gnueabihf-g++", ("-march=armv7-a", "-mfpu=neon", "-mfloat-abi=hard"), ("qemu-arm", "-cpu", "max")),
    "riscv64": ("riscv64-linux-gnu-g++", (), ("qemu-riscv64",)),
    "mips64el-msa": ("mips64el-linux-gnuabi64-g++", ("-march=mips64r5", "-mmsa"), ("qemu-mips64el", "-cpu", "Loongson-3A4000")),
    **{
        f"riscv64-rvv{bits}": (
            CLANG,
            ("--target=riscv64-linux-gnu", "-march=rv64gcv"),
            ("qemu-riscv64", "-cpu", f"rv64,v=true,vlen={bits},vext_spec=v1.0"),
        )
        for bits in (128, 256, 512)
    },
}


def need_isa(isa: str) -> tuple[str, ...]:
    """The compiler's flags for an instruction set that this machine has."""
    cpuinfo = Path("/proc/cpuinfo")
    known = set(cpuinfo.read_text().split()) if cpuinfo.is_file() else set()
    if not NEEDED[isa] <= known:
        pytest.skip(f"this machine lacks {', '.join(sorted(NEEDED[isa] - known))}")
    if isa == "amx" and ctypes.CDLL(None).syscall(158, 0x1023, 18) != 0:  # arch_prctl, ARCH_REQ_XCOMP_PERM
        pytest.skip("the system does not give the registers of AMX")
    return FLAGS[isa]


def set_name(isa: str) -> str:
    """The name of an instruction set in the table."""
    return {"avx512": "avx512vnni"}.get(isa, isa)


def flags_of(word: str) -> tuple[str, ...]:
    """The flags of one word of a build; the test is skipped where this machine cannot run it."""
    if word in FLAGS:
        return need_isa(word)
    if word.startswith("emulated"):
        need_isa("avx2" if word.endswith("avxvnni") else "sse4")
        if not Path("/usr/include/simde/x86/avx512.h").is_file():
            pytest.skip("SIMDe is not installed (libsimde-dev)")
    return WORDS.get(word, (word,))


def check_build(made: Sequence[harness.Case], folder: Path, build: str) -> None:
    """Check the cases in a build, such as "clang++ -O3,parallel avx2" or "aarch64 -O0"; the compiler is g++ unless it says another.

    OpenMP is used with g++ only.
    """
    words = re.split("[ ,]", build.strip())
    compiler, machine, emulator = next((TARGETS[word] for word in words if word in TARGETS), ("g++", (), ()))
    if emulator:
        need(compiler, emulator[0], *(["riscv64-linux-gnu-g++"] if "--target=riscv64-linux-gnu" in machine else []))
        machine = ("-static", "-Wno-psabi", *machine)
    compiler = next((word for word in words if word.endswith("++")), compiler)
    flags = [flag for word in words if word not in TARGETS and not word.endswith("++") for flag in flags_of(word)]
    if "clang" in compiler:
        flags = [flag for flag in flags if flag != "-fopenmp"]
    harness.check_all(list(made), folder, compiler, (*machine, *flags), emulator)


def on_builds(fast: Mapping[str, int], *slow: str) -> pytest.MarkDecorator:
    """Arguments `build` and `every` of a test: each n-th case in the fast builds, all in the slow ones.

    Words of a slow build are alternatives joined by "|": "g++|clang++ -O0|-O3 avx2|sse4" are eight builds.
    """
    forms = [" ".join(words) for form in slow for words in product(*(word.split("|") for word in form.split()))]
    rows = [pytest.param(build, 1, marks=pytest.mark.slow) for build in forms]
    return pytest.mark.parametrize("build, every", [*fast.items(), *rows])
