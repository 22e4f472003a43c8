"""Compilers and emulators of ARM, RISC-V, MIPS and WebAssembly, for the kernel sweeps."""

import shutil

from support import kernel_harness as harness
from support.programs import need

# Debian's clang without a number is older than the vectors of RISC-V.
CLANG = next((name for name in (f"clang++-{version}" for version in range(21, 15, -1)) if shutil.which(name)), "clang++-16")

_WASI = ("--target=wasm32-wasi", "-isystem", "/usr/include/wasm32-wasi/c++/v1", "-fno-exceptions", "-msimd128")
_NODE = ("node", "--no-warnings", str(harness.ROOT / "export_templates" / "cpp" / "run" / "wasi.mjs"))

TARGETS = {
    "wasm32-simd": (CLANG, (*_WASI, "-Wl,-z,stack-size=8388608", "-Wno-unused-command-line-argument"), _NODE),
    "aarch64": ("aarch64-linux-gnu-g++", ("-march=armv8-a",), ("qemu-aarch64", "-cpu", "max")),
    "aarch64-dot": ("aarch64-linux-gnu-g++", ("-march=armv8.2-a+dotprod",), ("qemu-aarch64", "-cpu", "max")),
    "aarch64-i8mm": ("aarch64-linux-gnu-g++", ("-march=armv8.2-a+dotprod+i8mm",), ("qemu-aarch64", "-cpu", "max")),
    "aarch64-sve256": (
        "aarch64-linux-gnu-g++",
        ("-march=armv8.2-a+sve+dotprod+i8mm", "-msve-vector-bits=256"),
        ("qemu-aarch64", "-cpu", "max,sve-default-vector-length=32"),
    ),
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


def check(made, target: str, folder, *flags: str) -> None:
    compiler, machine, emulator = TARGETS[target]
    library = ("riscv64-linux-gnu-g++",) if "--target=riscv64-linux-gnu" in machine else ()
    need(compiler, emulator[0], *library)
    harness.check_all(made, folder, compiler, ("-static", "-Wno-psabi", *machine, *flags), emulator)
