"""The processors that a host export can be built for, with compilers and emulators; the processor of this machine."""

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Processor:
    """A processor to build for. `processor` and `system` as CMake calls them, `flags` of the compiler, `prefix` of its name,
    `emulator` and its arguments, which runs the programs elsewhere; `clang`: whether clang compiles for it, not GCC.

    Attributes:
        compilers: those of C and of C++.
        root: where the libraries for it are.
        runner: the command before the name of a program; empty for what runs by itself.
    """

    name: str
    processor: str
    flags: tuple[str, ...]
    prefix: str = ""
    emulator: tuple[str, ...] = ()
    system: str = "Linux"
    clang: bool = False

    def __post_init__(self) -> None:
        self.compilers = ("clang", "clang++") if self.clang else (f"{self.prefix}gcc", f"{self.prefix}g++")
        self.root = f"/usr/{self.prefix[:-1]}" if self.prefix else ""
        libraries = ("-L", self.root) if self.emulator and self.system == "Linux" else ()
        self.runner = (*self.emulator, *libraries)


_ROWS = """
x86-64 | x86_64 | -march=x86-64
x86-64-v2 | x86_64 | -march=x86-64-v2
x86-64-v3 | x86_64 | -march=x86-64-v3
x86-64-v3-vnni | x86_64 | -march=x86-64-v3 -mavxvnni
x86-64-v4 | x86_64 | -march=x86-64-v4 -mavx512vnni
i686 | i686 | -m32 -march=i686 -mfpmath=sse -msse2 | i686-linux-gnu- | qemu-i386
aarch64 | aarch64 | -march=armv8-a | aarch64-linux-gnu- | qemu-aarch64
aarch64-dot | aarch64 | -march=armv8.2-a+dotprod | aarch64-linux-gnu- | qemu-aarch64 -cpu max
aarch64-i8mm | aarch64 | -march=armv8.2-a+dotprod+i8mm | aarch64-linux-gnu- | qemu-aarch64 -cpu max
armv7 | arm | -march=armv7-a -mfpu=neon -mfloat-abi=hard -Wno-psabi | arm-linux-gnueabihf- | qemu-arm
riscv64 | riscv64 | -march=rv64gc | riscv64-linux-gnu- | qemu-riscv64
riscv64-rvv | riscv64 | --target=riscv64-linux-gnu -march=rv64gcv | riscv64-linux-gnu- | qemu-riscv64 -cpu rv64,v=true,vlen=256,vext_spec=v1.0
wasm32 | wasm32 | --target=wasm32-wasi -fno-exceptions | | node run/wasi.mjs | WASI
wasm32-simd | wasm32 | --target=wasm32-wasi -fno-exceptions -msimd128 | | node run/wasi.mjs | WASI
mips64el-msa | mips64el | -march=mips64r5 -mmsa -Wno-psabi | mips64el-linux-gnuabi64- | qemu-mips64el -cpu Loongson-3A4000
windows-x86-64 | x86_64 | -march=x86-64 | x86_64-w64-mingw32- | wine | Windows
windows-x86-64-v3 | x86_64 | -march=x86-64-v3 | x86_64-w64-mingw32- | wine | Windows
"""
"""Name, processor, flags, prefix, emulator, system; clang compiles for those with --target."""


def _processor(row: str) -> Processor:
    name, processor, flags, *more = (cell.strip() for cell in row.split("|"))
    prefix, emulator, system = (*more, *("", "", "Linux")[len(more) :])
    clang = flags.startswith("--target")
    return Processor(name, processor, tuple(flags.split()), prefix, tuple(emulator.split()), system, clang)


TARGETS = tuple(map(_processor, _ROWS.strip().splitlines()))


def lacks_byte_products(flags: str) -> bool:
    """True if a processor with these flags (of /proc/cpuinfo) runs the x86 kernels that sum 8-bit products in 16 bits, as it has no
    dot product of bytes."""
    return "sse4_1" in flags.split() and not {"avx_vnni", "avx512_vnni", "amx_int8"}.intersection(flags.split())


def cpu_info(field: str) -> str:
    """Return the value of the first line of /proc/cpuinfo for a field; "" without one."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")
