"""The NEON kernels, bit for bit, cross-compiled and run by QEMU: the sweep of the SIMD kernels, on three targets."""

from __future__ import annotations

import shutil

import kernel_cases as cases
import kernel_harness as harness
import numpy as np
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


def check(made, target: str, folder, *flags: str) -> None:
    compiler, machine, emulator = TARGETS[target]
    for program in (compiler, emulator[0]):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    harness.check_all(made, folder, compiler, ("-static", "-Wno-psabi", *machine, *flags), emulator)


def test_few(tmp_path):
    """A handful, for the fast tests."""
    check(simd_cases(5)[::40][:2] + line_cases(5)[::24][1:], "aarch64-dot", tmp_path, "-O0")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["aarch64", "armv7"])
def test_weights_of_minus_128(tmp_path, target):
    """Two products of -128 by -128 do not fit into 16 bits: such layers add each by itself."""
    sweep = cases.Sweep(3)
    made = [
        sweep.conv((1, 7, 4, 5), 18, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, (cases.U8, cases.U8), "apart"),
        sweep.fc((1, 36), 21, (cases.U8, cases.S8), "apart"),
    ]
    for case in made:
        case.node.params["weights"][:] = -128
        case.inputs["x"][:] = np.where(np.arange(case.inputs["x"].size).reshape(case.inputs["x"].shape) % 3 == 0, 255, 0)
    check(made, target, tmp_path, "-O2")


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("flags", ["-O0", "-O3"])
def test_simd(tmp_path, target, flags):
    check([*simd_cases(4), *line_cases(4)], target, tmp_path, flags)


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_whole_sweep(tmp_path, target):
    check(sweep_cases(9, 66), target, tmp_path, "-O2")
