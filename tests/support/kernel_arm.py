"""Shared by the tests of kernels: those of ARM, RISC-V and MIPS, cross-compiled and run by QEMU."""

from __future__ import annotations

from n2d2py.exports.cpp import isa
from support import kernel_harness as harness
from support.programs import need

_NAMES = ("aarch64", "aarch64-dot", "aarch64-i8mm", "aarch64-sve256", "armv7", "mips64el-msa", "riscv64", "riscv64-rvv")
_PROCESSORS = {one.name: one for one in isa.TARGETS}

# Compiler, its flags, emulator; RISC-V vectors of three lengths.
TARGETS = {
    name + bits: (
        _PROCESSORS[name].compiler.split()[0],
        (*_PROCESSORS[name].compiler.split()[1:], *_PROCESSORS[name].flags),
        tuple(word.replace("vlen=256", f"vlen={bits}") for word in _PROCESSORS[name].emulator),
    )
    for name in _NAMES
    for bits in (("128", "256", "512") if name == "riscv64-rvv" else ("",))
}


def check(made, target: str, folder, *flags: str) -> None:
    compiler, machine, emulator = TARGETS[target]
    library = ("riscv64-linux-gnu-g++",) if "--target=riscv64-linux-gnu" in machine else ()
    need(compiler, emulator[0], *library)
    harness.check_all(made, folder, compiler, ("-static", "-Wno-psabi", *machine, *flags), emulator)
