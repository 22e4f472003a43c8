"""The NEON kernels, bit for bit, cross-compiled and run by QEMU: the sweep of the SIMD kernels, on three targets."""
from __future__ import annotations

import shutil

import kernel_harness as harness
import pytest
from test_kernel_lines import line_cases
from test_simd import simd_cases
from test_sweep import sweep_cases

TARGETS = {
    "aarch64": ("aarch64-linux-gnu-g++", ("-march=armv8-a",), ("qemu-aarch64", "-cpu", "max")),
    "aarch64-dot": ("aarch64-linux-gnu-g++", ("-march=armv8.2-a+dotprod",), ("qemu-aarch64", "-cpu", "max")),
    "armv7": ("arm-linux-gnueabihf-g++", ("-march=armv7-a", "-mfpu=neon", "-mfloat-abi=hard"), ("qemu-arm", "-cpu", "max")),
    "riscv64": ("riscv64-linux-gnu-g++", (), ("qemu-riscv64",)),
}


def check(cases, target: str, folder, *flags: str) -> None:
    compiler, machine, emulator = TARGETS[target]
    for program in (compiler, emulator[0]):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    harness.check_all(cases, folder, compiler, ("-static", "-Wno-psabi", *machine, *flags), emulator)


def test_few(tmp_path):
    """A handful, for the fast tests."""
    check(simd_cases(5)[::40][:2] + line_cases(5)[::24][1:], "aarch64-dot", tmp_path, "-O0")


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("flags", ["-O0", "-O3"])
def test_simd(tmp_path, target, flags):
    check([*simd_cases(4), *line_cases(4)], target, tmp_path, flags)


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_whole_sweep(tmp_path, target):
    check(sweep_cases(9, 66), target, tmp_path, "-O2")
