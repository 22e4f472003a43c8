"""The NEON kernels, bit for bit, cross-compiled and run by QEMU: the sweep of the SIMD kernels, on three targets."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_cases as cases
from support.kernel_arm import TARGETS, check
from support.kernel_lines import line_cases
from support.kernel_simd import simd_cases
from support.kernel_sweep import sweep_cases


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
