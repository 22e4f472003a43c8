"""Processors that an export can be built for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Processor:
    """A processor to build for. `processor` and `system` as CMake calls them, `flags` of the compiler, `prefix` of its name,
    `emulator` and its arguments, which runs the programs elsewhere; `clang`: whether clang compiles for it, not GCC."""

    name: str
    processor: str
    flags: tuple[str, ...]
    prefix: str = ""
    emulator: tuple[str, ...] = ()
    system: str = "Linux"
    clang: bool = False

    @property
    def compilers(self) -> tuple[str, str]:
        """Those of C and of C++."""
        return ("clang", "clang++") if self.clang else (f"{self.prefix}gcc", f"{self.prefix}g++")

    @property
    def root(self) -> str:
        """Where the libraries for it are."""
        return f"/usr/{self.prefix[:-1]}" if self.prefix else ""

    @property
    def runner(self) -> tuple[str, ...]:
        """The command before the name of a program; empty for what runs by itself."""
        return (*self.emulator, "-L", self.root) if self.emulator and self.system == "Linux" else self.emulator


_WASI = ("--target=wasm32-wasi", "-fno-exceptions")
_RISCV = "riscv64-linux-gnu-"
_AARCH64, _ARM, _MINGW = "aarch64-linux-gnu-", "arm-linux-gnueabihf-", "x86_64-w64-mingw32-"

TARGETS = (
    Processor("x86-64", "x86_64", ("-march=x86-64",)),
    Processor("x86-64-v2", "x86_64", ("-march=x86-64-v2",)),
    Processor("x86-64-v3", "x86_64", ("-march=x86-64-v3",)),
    Processor("x86-64-v3-vnni", "x86_64", ("-march=x86-64-v3", "-mavxvnni")),
    Processor("x86-64-v4", "x86_64", ("-march=x86-64-v4", "-mavx512vnni")),
    Processor("i686", "i686", ("-m32", "-march=i686", "-mfpmath=sse", "-msse2"), "i686-linux-gnu-", ("qemu-i386",)),
    Processor("aarch64", "aarch64", ("-march=armv8-a",), _AARCH64, ("qemu-aarch64",)),
    Processor("aarch64-dot", "aarch64", ("-march=armv8.2-a+dotprod",), _AARCH64, ("qemu-aarch64", "-cpu", "max")),
    Processor("aarch64-i8mm", "aarch64", ("-march=armv8.2-a+dotprod+i8mm",), _AARCH64, ("qemu-aarch64", "-cpu", "max")),
    Processor(
        "aarch64-sve256",
        "aarch64",
        ("-march=armv8.2-a+sve+dotprod+i8mm", "-msve-vector-bits=256"),
        _AARCH64,
        ("qemu-aarch64", "-cpu", "max,sve-default-vector-length=32"),
    ),
    Processor("armv7", "arm", ("-march=armv7-a", "-mfpu=neon", "-mfloat-abi=hard", "-Wno-psabi"), _ARM, ("qemu-arm",)),
    Processor("riscv64", "riscv64", ("-march=rv64gc",), _RISCV, ("qemu-riscv64",)),
    Processor(
        "riscv64-rvv",
        "riscv64",
        ("--target=riscv64-linux-gnu", "-march=rv64gcv"),
        _RISCV,
        ("qemu-riscv64", "-cpu", "rv64,v=true,vlen=256,vext_spec=v1.0"),
        clang=True,
    ),
    Processor("wasm32", "wasm32", _WASI, "", ("node", "run/wasi.mjs"), "WASI", True),
    Processor("wasm32-simd", "wasm32", (*_WASI, "-msimd128"), "", ("node", "run/wasi.mjs"), "WASI", True),
    Processor(
        "mips64el-msa",
        "mips64el",
        ("-march=mips64r5", "-mmsa", "-Wno-psabi"),
        "mips64el-linux-gnuabi64-",
        ("qemu-mips64el", "-cpu", "Loongson-3A4000"),
    ),
    Processor("windows-x86-64", "x86_64", ("-march=x86-64",), _MINGW, ("wine",), "Windows"),
    Processor("windows-x86-64-v3", "x86_64", ("-march=x86-64-v3",), _MINGW, ("wine",), "Windows"),
)


def lacks_byte_products(flags: str) -> bool:
    """True if a processor with these flags (of /proc/cpuinfo) runs the x86 kernels that sum 8-bit products in 16 bits, as it has no
    dot product of bytes."""
    return "sse4_1" in flags.split() and not {"avx_vnni", "avx512_vnni", "amx_int8"}.intersection(flags.split())
