"""NaN, infinities, both zeros, the ends of the types: kernels of every instruction set against the normative arithmetic."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_arm import TARGETS, check
from support.kernel_edges import edge_cases
from support.kernel_simd import EMULATED, FLAGS, SANITIZERS, need_emulated_avxvnni, need_isa
from support.kernel_sweep import need

from n2d2py.arithmetic import NumType, plain_type


def test_stored_values_by_hand():
    """5 / 0.5 - 3 = 7; NaN counts as 0, which the zero point stands for; infinities saturate."""
    real = np.array([5, np.nan, np.inf, -np.inf, -0.0, 1e-45], np.float32)
    for kind in (np.float32, np.float64):
        assert NumType(8, scale=0.5, zero_point=-3).quantize(real.astype(kind)).tolist() == [7, -3, 127, -127, -3, -3]
    assert NumType(8, False, scale=0.5).quantize_linear(real).tolist() == [10, 0, 255, 0, 0, 0]
    assert plain_type("int16").quantize(real).tolist() == [5, 0, 32767, -32768, 0, 0]


def test_portable(tmp_path):
    need("g++")
    harness.check_all(edge_cases(3), tmp_path, "g++", SANITIZERS)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("isa", sorted(FLAGS))
def test_instruction_sets(tmp_path, isa, compiler):
    need(compiler)
    harness.check_all(edge_cases(3), tmp_path, compiler, ("-O2", *need_isa(isa)))


@pytest.mark.slow
def test_emulated(tmp_path):
    need("g++")
    if platform.machine() not in ("x86_64", "AMD64") or not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("needs x86 and SIMDe (libsimde-dev)")
    harness.check_all(edge_cases(3), tmp_path / "avx512", "g++", ("-O1", *EMULATED))
    harness.check_all(edge_cases(3), tmp_path / "avxvnni", "g++", ("-O1", *need_emulated_avxvnni()))


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_cross_compiled(tmp_path, target):
    check(edge_cases(3), target, tmp_path, "-O2")
