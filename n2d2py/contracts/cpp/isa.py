"""The table of instruction sets.

All that names an instruction set outside of its kernels comes from here: the macros that choose one (`kernels/n2d2/isa.hpp`)
and its kernels (`kernels/n2d2/bindings.hpp`), the conditions of constants, the lists of the Makefile and of CMake, the choice at
run time, the pages. `kernels/n2d2/isa/<name>.hpp` binds the kernels of a set to the operators.
docs/explanation/instruction_sets.md says how to add one.

`python docs/site/generate.py` writes the two headers; a test compares them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from n2d2py.errors import InternalError
from n2d2py.registry import Registry

KERNELS = (
    (CONVOLUTION := "convolution"),  # on panels of weights (`forms/panels.py`), as the next two
    (DEPTHWISE := "depthwise"),
    (FULLY_CONNECTED := "fullyConnected"),
    (CHANNELS := "16-bit depthwise"),  # depthwise, of 16-bit inputs or weights, with vectors over channels (`forms/panels.py`)
    (LANES := "lanes"),  # convolutions that multiply the weights of two outputs at once (`forms/lanes.py`)
    (PAIRS := "pairs of taps"),  # depthwise, two taps at once
    (ROW_PAIRS := "pairs of rows"),  # depthwise, two rows at once
    (CHANNEL_PAIRS := "pairs of channels"),  # Winograd forms, two channels at once (`forms/lanes.py`)
    (DOTS := "dot products"),  # convolutions that multiply and add across vectors (`forms/vector_streams.py`)
    (TAPS := "taps of vectors"),  # depthwise, vectors hold channels
    (PIXELS := "pairs of pixels"),  # convolutions that multiply the inputs of two pixels at once (`forms/pixels.py`)
    (COLUMNS := "columns of taps"),  # depthwise, a channel along a line
    (OUTPUTS := "vectors of outputs"),  # dense and depthwise layers with vectors over outputs (`forms/vector_streams.py`)
    (WINOGRAD := "winograd"),  # the Winograd form of a convolution
    (FLOATS := "floats"),  # vectors of float32
    (RUNS := "runs"),  # the epilogue of runs of accumulators
    (BYTE_SUMS := "sums of bytes"),  # of two 8-bit tensors, of the pixels of a window
    (TABLES := "tables"),  # tables of 256 bytes in registers
    (PRODUCT := "product"),  # matrix products of two activations
    (ROWS := "rows"),  # products of a vector with rows of weights, in recurrent layers
    (ROW_PANELS := "panels of rows"),  # the same with panels of 16 rows (`forms.select.row_panels`)
)
"""Features of a set."""

_PANELS = frozenset((CONVOLUTION, DEPTHWISE, FULLY_CONNECTED))


@dataclass(frozen=True)
class Family:
    """Processors among which a program chooses an instruction set at start.

    Attributes:
        condition: preprocessor condition for a compiler that builds for them.
        machines: make patterns for the output of `-dumpmachine`.
        processors: CMAKE_SYSTEM_PROCESSOR, a regular expression of CMake.
        includes: headers of `export_templates/cpp/dnn/src/cpu_<name>.j2`, with which `present` of its sets queries the processor.
    """

    name: str
    condition: str
    machines: str
    processors: str
    includes: tuple[str, ...]


FAMILIES = (
    Family(
        "x86",
        "(defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)",
        "x86_64% i386% i486% i586% i686%",
        "x86_64|AMD64|i[3-6]86",
        ("cpuid.h",),
    ),
    Family("arm64", "defined(__aarch64__) && defined(__linux__) && defined(__GNUC__)", "aarch64%", "aarch64", ("sys/auxv.h",)),
)


@dataclass(frozen=True)
class Probe:
    """Build-time test of the compiler: it supports a set if it assembles `instruction` with `flag`. `note`: those that do not."""

    flag: str
    instruction: str
    note: str


@dataclass(frozen=True)
class InstructionSet:
    """A row of the table.

    Attributes:
        name: spelling in N2D2_ISA_NAME, the environment variable N2D2_ISA and the parameter Tile.
        tag: struct of n2d2 that its kernels are specialized for; `Native` if the code is compiled for it.
        macro: 1 if the code is compiled for it, or for a set that extends it; else 0.
        header: header below `kernels/` that binds its kernels to the operators.
        when: preprocessor condition on compiler features. The first row that holds is used.
        extends: the set whose kernels it inherits; "" for none.
        has: its own kernels.
        signed: kernels that multiply signed bytes, unsigned inputs - 128; others multiply unsigned bytes, signed inputs + 128.
        speed: multiply-accumulates in the time of one in portable code, for the choice of threads.
        tiles: (pixels, panels, bytes of windows) that `-tune` tries; zeros select the kernel's own choice.
        flags: compiler flags for one binary with several sets, for g++ and clang++.
        present: C++ that queries the processor for it; "" if no binary chooses it at start.
        asks: a header below `kernels/` for `present`; "" without.
        probe: test whether the compiler supports it; None if all compilers do.
        microcontroller: processors of the microcontroller export have it.
    """

    name: str
    title: str
    tag: str
    macro: str
    header: str
    text: str
    when: str
    extends: str = ""
    has: frozenset[str] = frozenset()
    signed: frozenset[str] = frozenset()
    speed: int = 8
    tiles: tuple[tuple[int, int, int], ...] = ((0, 0, 0),)
    flags: tuple[str, ...] = ()
    present: str = ""
    asks: str = ""
    family: str = ""
    probe: Probe | None = None
    microcontroller: bool = False


_FEW_REGISTERS = ((0, 0, 0), (4, 1, 8192), (4, 1, 65536), (2, 1, 24576), (3, 1, 24576))

PORTABLE = InstructionSet(
    "portable",
    "portable",
    "Portable",
    "",
    "",
    "everything else, and everything with -DN2D2_ISA_PORTABLE",
    "",
    tiles=_FEW_REGISTERS,
    flags=("-DN2D2_ISA_PORTABLE",),
    present="true",
)
"""Portable C++, if no row of the table holds."""


def _built_in(names: tuple[str, str, str, str], text: str, when: str, **more: Any) -> InstructionSet:
    """Return a set of this package; `names`: name, title, tag and macro."""
    return InstructionSet(*names, f"n2d2/isa/{names[0]}.hpp", text, when, **more)


def _extending(base: InstructionSet, names: tuple[str, str, str, str], text: str, when: str, **more: Any) -> InstructionSet:
    """Return a set that extends `base`, whose other fields it has where `more` does not say otherwise."""
    more |= {"extends": base.name, "header": f"n2d2/isa/{names[0]}.hpp", "text": text, "when": when}
    return replace(base, **dict(zip(("name", "title", "tag", "macro"), names, strict=True)), **more)


_AVX512VNNI = _built_in(
    ("avx512vnni", "AVX-512 VNNI", "Avx512Vnni", "N2D2_AVX512VNNI"),
    "x86 with AVX-512 F, BW, DQ, VL and VNNI",
    "(defined(N2D2_EMULATED_AVX512VNNI) || \\\n     (defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && "
    "defined(__AVX512VL__) && defined(__AVX512VNNI__)))",
    has=_PANELS | {CHANNELS, FLOATS, RUNS, TABLES, PRODUCT, ROWS, ROW_PANELS},
    speed=16,
    tiles=((0, 0, 0), (6, 4, 8192), (6, 4, 65536), (8, 3, 24576), (12, 2, 24576), (12, 2, 65536), (24, 1, 24576)),
    flags=("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx512vnni", "-mf16c"),
    present='supports("avx512f") && supports("avx512bw") && supports("avx512dq") && supports("avx512vl") && supports("avx512vnni")',
    family="x86",
)
_AVX2 = _built_in(
    ("avx2", "AVX2", "Avx2", "N2D2_AVX2"),
    "x86-64 with AVX2",
    "defined(__AVX2__) && defined(__x86_64__)",
    has=_PANELS | {CHANNELS, WINOGRAD, FLOATS, RUNS, TABLES, PRODUCT, ROWS},
    # The first choice of the kernels is Winograd; the last (0, 0, 0) stands for that of the direct form.
    tiles=((0, 0, 0), (6, 1, 8192), (6, 1, 65536), (5, 1, 24576), (4, 1, 24576), (3, 2, 24576), (3, 2, 65536), (0, 0, 0)),
    flags=("-mavx2", "-mf16c"),  # every processor with AVX2 has F16C
    present='supports("avx2")',
    family="x86",
)
_NEON = _built_in(
    ("neon", "NEON", "Neon", "N2D2_NEON"),
    "ARM with NEON, little-endian",
    "defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)",
    has=_PANELS | {CHANNELS, WINOGRAD, FLOATS},
    signed=frozenset((CONVOLUTION, FULLY_CONNECTED)),
    tiles=_FEW_REGISTERS,
    flags=("-march=armv8-a",),
    present="true",
    family="arm64",
)
_NEONDOT = _extending(
    _NEON,
    ("neondot", "NEON with dot products", "NeonDot", "N2D2_NEON_DOT"),
    "ARMv8.2 with the dot product instructions",
    f"{_NEON.when} && defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD)",
    has=_PANELS | {CHANNELS, FLOATS},
    tiles=((0, 0, 0), (4, 1, 8192), (4, 1, 65536), (6, 1, 24576), (3, 2, 24576)),
    flags=("-march=armv8.2-a+dotprod",),
    present="hardware(AT_HWCAP, 20)",
)
_NEONI8MM = _extending(
    _NEONDOT,
    ("neoni8mm", "NEON with matrix products", "NeonDot", "N2D2_NEON_I8MM"),
    "ARMv8.6 with 8-bit matrix instructions (I8MM)",
    f"{_NEONDOT.when} && \\\n    defined(__ARM_FEATURE_MATMUL_INT8)",
    signed=frozenset((FULLY_CONNECTED,)),
    tiles=((0, 0, 0), (6, 1, 8192), (6, 1, 65536), (4, 1, 24576), (2, 1, 24576)),
    flags=("-march=armv8.2-a+dotprod+i8mm",),
    present="hardware(AT_HWCAP, 20) && hardware(AT_HWCAP2, 13)",
    probe=Probe("-march=armv8.2-a+i8mm", "smmla v0.4s, v0.16b, v0.16b", "compilers before GCC 10 and clang 11 do not know it"),
)

# From the fastest to the slowest.
_TABLE = (
    _extending(
        _AVX512VNNI,
        ("amx", "AMX", "Avx512Vnni", "N2D2_AMX"),
        "x86-64 with AMX-INT8 and AVX-512 VNNI, Linux",
        "(defined(__AMX_INT8__) || defined(__AMXINT8__) || defined(N2D2_EMULATED_AMX)) && defined(__x86_64__) && \\\n"
        f"    defined(__linux__) && {_AVX512VNNI.when}",
        flags=(*_AVX512VNNI.flags, "-mamx-tile", "-mamx-int8"),
        present=f"n2d2::amx::available() && {_AVX512VNNI.present}",
        asks="n2d2/x86/amx_permission.hpp",
        probe=Probe("-mamx-int8", "tdpbusd %tmm2, %tmm1, %tmm0", "compilers before GCC 11 and clang 12 do not know it"),
    ),
    _AVX512VNNI,
    _extending(
        _AVX2,
        ("avxvnni", "AVX-VNNI", "Avx2", "N2D2_AVXVNNI"),
        "x86-64 with AVX2 and AVX-VNNI",
        "defined(__AVX2__) && defined(__x86_64__) && (defined(__AVXVNNI__) || defined(N2D2_EMULATED_AVXVNNI))",
        has=_AVX2.has | {ROW_PANELS},
        speed=16,
        flags=(*_AVX2.flags, "-mavxvnni"),
        present='supports("avx2") && leaf7Bit(1, 4)',
        probe=Probe("-mavxvnni", "{vex} vpdpbusd %ymm0, %ymm0, %ymm0", "compilers before GCC 11 and clang 12 do not know it"),
    ),
    _AVX2,
    _built_in(
        ("sse4", "SSE4.1", "Sse41", "N2D2_SSE41"),
        "x86-64 with SSE4.1",
        "defined(__SSE4_1__) && defined(__x86_64__)",
        has=_PANELS | {CHANNELS, WINOGRAD, FLOATS, PRODUCT},
        speed=4,
        tiles=((0, 0, 0), (2, 1, 8192), (2, 1, 65536), (3, 1, 24576), (1, 2, 24576)),
        flags=("-msse4.1",),
        present='supports("sse4.1")',
        family="x86",
    ),
    _NEONI8MM,
    _NEONDOT,
    _NEON,
    _built_in(
        ("rvv64", "RISC-V vectors, 64 bits", "Rvv64", "N2D2_RVV64"),
        "RV64 with the vector extension 1.0, of any length (SpacemiT K1, C908); clang 16, GCC 13 and later",
        "defined(__riscv_v) && __riscv_xlen == 64 && defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 11000",
        has=_PANELS | {CHANNELS, FLOATS},
        tiles=((0, 0, 0), (5, 4, 8192), (5, 4, 65536), (4, 2, 24576), (5, 1, 24576)),
    ),
    _built_in(
        ("simd128", "SIMD of WebAssembly", "Simd128", "N2D2_SIMD128"),
        "WebAssembly with vectors of 128 bits: browsers since 2023, Node.js since 16.4; clang 16 and later",
        "defined(__wasm_simd128__)",
        has=_PANELS | {CHANNELS, FLOATS},
        speed=4,
        tiles=_FEW_REGISTERS,
    ),
    _built_in(
        ("msa", "MIPS MSA", "Msa", "N2D2_MSA"),
        "MIPS with vectors of 128 bits (MSA), little-endian: P5600, I6400, Loongson 3A4000",
        "defined(__mips_msa) && defined(__MIPSEL__)",
        has=_PANELS | {CHANNELS, FLOATS},
        signed=frozenset((CONVOLUTION, FULLY_CONNECTED)),
        speed=4,
        tiles=((0, 0, 0), (4, 1, 8192), (4, 1, 65536), (5, 1, 65536), (2, 1, 24576)),
    ),
    _built_in(
        ("mve", "MVE (Helium)", "Mve", "N2D2_MVE"),
        "Cortex-M with the vector extension: M55, M85",
        "defined(__ARM_FEATURE_MVE) && defined(__ARM_FEATURE_DSP) && !defined(__ARM_BIG_ENDIAN)",
        extends="dsp",
        has=frozenset((LANES, PAIRS, DOTS, TAPS, RUNS, BYTE_SUMS, ROWS)),
        speed=4,
        microcontroller=True,
    ),
    _built_in(
        ("dsp", "DSP extension", "Dsp", "N2D2_DSP"),
        "Cortex-M with the DSP extension: M4, M7, M33",
        "defined(__ARM_FEATURE_DSP) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__ARM_BIG_ENDIAN)",
        has=frozenset((LANES, PAIRS, ROW_PAIRS, CHANNEL_PAIRS, BYTE_SUMS, ROWS)),
        speed=2,
        microcontroller=True,
    ),
    _built_in(
        ("rvv", "RISC-V vectors", "Rvv", "N2D2_RVV"),
        "RV32 with vectors of 32-bit integers or more, of 128 bits or more",
        "defined(__riscv_vector) && __riscv_xlen == 32",
        has=frozenset((OUTPUTS,)),
        speed=4,
        microcontroller=True,
    ),
    _built_in(
        ("rvm", "RV32IM", "Rvm", "N2D2_RVM"),
        "RV32 with multiplication, without vectors",
        "defined(__riscv_mul) && __riscv_xlen == 32 && !defined(__riscv_vector)",
        has=frozenset((PIXELS, COLUMNS)),
        speed=1,
        microcontroller=True,
    ),
)

MORE_SETS: Registry[InstructionSet] = Registry("the instruction set")
"""Instruction sets of plug-ins."""


def register_instruction_set(row: InstructionSet) -> None:
    """Insert a set before all others. Raise InternalError if its name, tag or macro is in use, or it refers to something
    unknown."""
    known = (*instruction_sets(), PORTABLE)
    for what in ("name", "tag", "macro"):
        if getattr(row, what) in (getattr(one, what) for one in known):
            raise InternalError(f"instruction set {row.name}: its {what} {getattr(row, what)} is taken")
    for what, names, choices in (
        ("has", row.has, KERNELS),
        ("signed", row.signed, row.has),
        ("extends", filter(None, [row.extends]), [one.name for one in known]),
        ("family", filter(None, [row.family]), [one.name for one in FAMILIES]),
    ):
        if unknown := [name for name in names if name not in choices]:
            raise InternalError(f"instruction set {row.name}: {what} names {unknown[0]}, not one of {', '.join(choices)}")
    MORE_SETS.add(row.name, row)


def instruction_sets() -> tuple[InstructionSet, ...]:
    """Return all sets except the portable one, from the fastest to the slowest."""
    return (*reversed(MORE_SETS.values()), *_TABLE)


def sets_with(kernel: str, signed: bool = False) -> tuple[str, ...]:
    """Return the names of the sets with a kernel, best first; with `signed`, those that multiply signed bytes."""
    return tuple(one.name for one in instruction_sets() if kernel in (one.signed if signed else one.has))


def reads_panels(row: InstructionSet) -> bool:
    """True if a set has all panel kernels (N2D2_PANELS)."""
    return row.has >= _PANELS


def dispatched() -> list[InstructionSet]:
    """Return the sets among which one binary chooses at start, from portable C++ to the fastest."""
    return [PORTABLE, *(one for one in reversed(instruction_sets()) if one.present)]


def exact_condition(row: InstructionSet) -> str:
    """Return the preprocessor condition of a set without the sets that extend it."""
    others = [one.macro for one in instruction_sets() if one.extends == row.name]
    return f"({' && '.join([row.macro, *(f'!{macro}' for macro in others)])})" if others else row.macro


def extending(row: InstructionSet) -> set[str]:
    """Return the names of the sets that extend a set, directly or not."""
    direct = [one for one in instruction_sets() if one.extends == row.name]
    return {one.name for one in direct}.union(*map(extending, direct))


def condition(names: Iterable[str]) -> str:
    """Return the preprocessor condition for any of the sets `names` and no other set."""
    wanted, rows = set(names), instruction_sets()
    parts = []
    panels = {one.name for one in rows if reads_panels(one)}
    if panels and panels <= wanted:
        parts.append("N2D2_PANELS")
        wanted -= panels
    whole = {one.name: more for one in rows if one.name in wanted and (more := extending(one)) <= wanted}
    covered = {name for more in whole.values() for name in more}
    separate = [one for one in rows if one.name in wanted - covered]
    parts += [one.macro if one.name in whole else exact_condition(one) for one in separate]
    return " || ".join(parts)


def tags() -> dict[str, InstructionSet]:
    """Return the tags of kernels, each with the set it was made for."""
    return {one.tag: one for one in (*instruction_sets(), PORTABLE)}  # a set stands after those that extend it
