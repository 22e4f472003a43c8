"""Convolutions that add a residual where they store, bit for bit: the integers of two layers one after the other, on every instruction set."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from support import kernel_harness as harness
from support.kernel_arm import TARGETS, check
from support.kernel_residual import residual_cases, winograd_cases
from support.kernel_simd import AMX_TILES, EMULATED, ISAS, SANITIZERS, need_isa
from support.kernel_sweep import need
from support.kernel_winograd import SETS, forced, having_form

from n2d2py.exports.cpp.identifiers import Identifiers
from n2d2py.exports.cpp.layer import layer_code


def test_cases_add():
    """Every case is one call that stores over the residual, nearly all by SIMD kernels, and all rescales occur in both stages."""
    made = [*residual_cases(1), *winograd_cases(1)]
    codes = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in made]
    assert all(code.sum == "total" and "n2d2::Added<" in code.config and "elemwise" not in code.call for code in codes)
    assert sum(bool(code.kernel) for code in codes) > 0.9 * len(codes)
    wide = [max(abs(case.node.residual.multiplier), abs(case.node.residual.residual_multiplier)) > 32767 for case in made]
    assert 0.2 < sum(wide) / len(wide) < 0.5
    for at in (0, 1):
        assert {type(case.apart.nodes[at].rescale).__name__ for case in made} == {
            "FloatRescale",
            "FixedPointRescale",
            "ShiftRescale",
        }


def test_portable(tmp_path):
    need("g++")
    harness.check_all(residual_cases(1)[::12], tmp_path, "g++", ("-O1", "-DN2D2_ISA_PORTABLE"))


@pytest.mark.parametrize("isa", ISAS)
def test_residual(tmp_path, isa):
    need("g++")
    harness.check_all(residual_cases(1)[::18], tmp_path, "g++", ("-O1", *need_isa(isa)))


def test_residual_winograd(tmp_path, monkeypatch):
    need("g++")
    monkeypatch.setattr(harness, "layer_code", forced)
    harness.check_all(winograd_cases(1)[:1], tmp_path, "g++", ("-O1", *need_isa("avx2")))


def test_sums_of_a_small_last_group_as_the_compiler_orders_them(tmp_path):
    """g++ -O3 once read the buffer of such a group before it was stored."""
    need("g++")
    harness.check_all(residual_cases(2), tmp_path, "g++", ("-O3", *need_isa("sse4")))


@pytest.mark.slow
@pytest.mark.parametrize("isa", [*ISAS, ""])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3",), ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS],
    ids=["O0", "O3", "O3-all-loops-parallel", "sanitizers"],
)
def test_residual_builds(tmp_path, compiler, flags, isa):
    need(compiler)
    if compiler == "clang++" and "-fopenmp" in flags:
        pytest.skip("OpenMP with g++ only")
    machine = need_isa(isa) if isa else ("-DN2D2_ISA_PORTABLE",)
    harness.check_all(residual_cases(2), tmp_path, compiler, (*flags, *machine))


@pytest.mark.slow
@pytest.mark.parametrize("isa", [one for one in SETS if one != "neon"])
@pytest.mark.parametrize(
    "flags",
    [("-O0",), ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0"), SANITIZERS],
    ids=["O0", "O3-all-loops-parallel", "sanitizers"],
)
def test_residual_winograd_builds(tmp_path, monkeypatch, flags, isa):
    need("g++")
    cases = having_form(winograd_cases(2))
    assert len(cases) >= 6
    monkeypatch.setattr(harness, "layer_code", forced)
    harness.check_all(cases, tmp_path, "g++", (*flags, *need_isa(isa)))


@pytest.mark.slow
@pytest.mark.parametrize("flags", [EMULATED, (*AMX_TILES, *EMULATED)], ids=["avx512", "amx"])
def test_residual_emulated(tmp_path, flags):
    need("g++")
    if platform.machine() not in ("x86_64", "AMD64") or not Path("/usr/include/simde/x86/avx512.h").is_file():
        pytest.skip("needs an x86 machine and SIMDe (libsimde-dev)")
    harness.check_all(residual_cases(3)[::2], tmp_path, "g++", ("-O1", *flags))


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
@pytest.mark.parametrize("flags", ["-O0", "-O3"])
def test_residual_arm(tmp_path, target, flags):
    check(residual_cases(4), target, tmp_path, flags)
