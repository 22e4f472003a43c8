"""Attention in integers: C++ gives Python's integers, portable and with every instruction set."""

from __future__ import annotations

import pytest
from support import attention_cases as cases
from support import kernel_harness as harness
from support.kernel_simd import EMULATED, ISAS, SANITIZERS, need_isa
from support.kernel_sweep import SLOW_BUILDS, need


def every_case(seed: int, every: int = 1) -> list[harness.Case]:
    """All layers."""
    kinds = (cases.products, cases.softmaxes, cases.masked_softmaxes, cases.norms, cases.sums)
    return [case for made in kinds for case in made(seed, every)]


def test_portable(tmp_path):
    need("g++")
    harness.check_all(every_case(1, 5), tmp_path, flags=("-O0", "-DN2D2_ISA_PORTABLE"), units=2)


@pytest.mark.parametrize("isa", ISAS)
def test_instruction_sets(tmp_path, isa):
    need("g++")
    harness.check_all(every_case(2, 4), tmp_path, "g++", ("-O1", *need_isa(isa)), units=2)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_in_every_build(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(every_case(3), tmp_path, compiler, flags)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("flags", [("-O0",), ("-O3", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS], ids=["O0", "O3", "sanitizers"])
def test_instruction_sets_in_every_build(tmp_path, compiler, flags, isa):
    need(compiler)
    harness.check_all(every_case(4), tmp_path, compiler, (*flags, *need_isa(isa)))


@pytest.mark.slow
def test_emulated(tmp_path):
    need("g++")
    harness.check_all(every_case(5), tmp_path, "g++", ("-O1", *EMULATED))
