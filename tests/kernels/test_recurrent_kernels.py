"""LSTM and GRU: C++ gives Python's bits, in integers and in floating point, portable and with every instruction set."""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_simd import EMULATED, ISAS, need_isa
from support.kernel_sweep import SLOW_BUILDS, need
from support.recurrent_cases import everything


def test_portable(tmp_path):
    need("g++")
    harness.check_all(everything(1, 3), tmp_path, flags=("-O0", "-DN2D2_ISA_PORTABLE"), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
def test_instruction_sets(tmp_path, isa):
    need("g++")
    harness.check_all(everything(2), tmp_path, "g++", ("-O3", *need_isa(isa)), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_in_every_build(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(everything(3), tmp_path, compiler, flags)


@pytest.mark.slow
def test_emulated(tmp_path):
    need("g++")
    harness.check_all(everything(5), tmp_path, "g++", ("-O1", *EMULATED))
