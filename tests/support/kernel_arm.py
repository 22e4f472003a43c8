"""Shared by the tests of kernels: the NEON kernels, bit for bit, cross-compiled and run by QEMU: the sweep of the SIMD kernels."""

from __future__ import annotations

import shutil

import pytest

from support import kernel_harness as harness

TARGETS = {
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
}


def check(made, target: str, folder, *flags: str) -> None:
    compiler, machine, emulator = TARGETS[target]
    for program in (compiler, emulator[0]):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    harness.check_all(made, folder, compiler, ("-static", "-Wno-psabi", *machine, *flags), emulator)
