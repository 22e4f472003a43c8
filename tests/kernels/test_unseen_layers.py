"""Layers of networks that no kernel was made for: sizes around the vectors of the kernels of moves and of pointwise layers."""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_simd import EMULATED, SANITIZERS, need_isa
from support.kernel_sweep import SLOW_BUILDS, need
from support.kernel_unseen_layers import all_cases


def test_unseen_layers(tmp_path):
    need("g++")
    harness.check_all(all_cases(21), tmp_path, flags=("-O1", *need_isa("avx2")))


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_unseen_layers_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(all_cases(22), tmp_path, compiler, flags)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [("-O2", *EMULATED), ("-O2", "-DN2D2_ISA_PORTABLE"), ("-mavx2", "-mfma", *SANITIZERS)],
    ids=("emulated AVX-512", "portable", "sanitizers"),
)
def test_unseen_layers_instruction_sets(flags, tmp_path):
    need("g++")
    need_isa("avx2")
    harness.check_all(all_cases(23), tmp_path, flags=flags)
