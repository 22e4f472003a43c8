"""Weights of 16 bits: every kernel on panels of them, bit for bit."""

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_arm import TARGETS, check
from support.kernel_simd import (
    AMX_TILES,
    EMULATED,
    ISAS,
    SANITIZERS,
    dense_cases,
    full_cases,
    line_cases,
    need_emulated_avxvnni,
    need_isa,
)
from support.tables import few_fast

from n2d2py.arithmetic import NumType
from n2d2py.contracts.cpp.identifiers import Identifiers
from n2d2py.contracts.cpp.layer import layer_code


class WideWeights(cases.Sweep):
    """Layers whose weights are as large as 32-bit sums of them allow, of at most 16 bits."""

    def weights(self, shape, kind: NumType) -> np.ndarray:
        safe_distances = int(np.prod(shape[1:])) * max(kind.qmax, -kind.qmin)
        most = min(32767, 3 * 2**29 // safe_distances)
        if self.rng.integers(4) == 0:
            return np.full(shape, -most, np.int16)
        return self.rng.integers(-most, most, shape, endpoint=True).astype(np.int16)


def wide_cases(seed: int) -> list[harness.Case]:
    sweep = WideWeights(seed)
    made = [*dense_cases(sweep), *line_cases(sweep), *full_cases(sweep)]
    return [case for case in made if np.abs(case.node.params["weights"]).max() > 127]


def test_the_cases_use_panels_of_16_bits():
    codes = [layer_code(case.node, case.graph, case.plan, Identifiers(case.graph)) for case in wide_cases(1)]
    native = [code for code in codes if "typedef n2d2::Native Isa;" in code.config]
    assert len(codes) > 50 and len(native) > 0.8 * len(codes)
    for code in native:
        assert "typedef std::int16_t Weight;" in code.config and "panels of 16 outputs" in code.selection.kernel.name
        (weights,) = [array for array in code.arrays if array.name.endswith("weights")]
        assert weights.ctype == "std::int16_t" and all(form.values.dtype == np.int16 for form in weights.forms)


def test_portable(tmp_path):
    harness.check_all(wide_cases(1)[::3], tmp_path, "g++", ("-O0",))


@pytest.mark.parametrize("isa", few_fast(ISAS))
def test_simd(tmp_path, isa):
    harness.check_all(wide_cases(2)[:: 4 if isa == "sse4" else 2], tmp_path, "g++", ("-O0", *need_isa(isa)))


def test_few_on_arm(tmp_path):
    check(wide_cases(5)[::40], "aarch64", tmp_path, "-O0")


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_arm(tmp_path, target):
    check(wide_cases(4), target, tmp_path, "-O3")


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ("-O0",),
        ("-O3", "-fopenmp", "-DN2D2_PARALLEL_WORK=0", "-march=native"),
        ("-march=native", *SANITIZERS),
        ("-O1", *EMULATED),
        ("-O1", *AMX_TILES, *EMULATED),
    ],
    ids=("O0", "O3-all-loops-parallel", "sanitizers", "avx512", "amx"),
)
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_builds(tmp_path, compiler, flags):
    if EMULATED[0] in flags and compiler == "clang++":
        pytest.skip("SIMDe is tried with GCC")
    if compiler == "clang++":
        flags = tuple(flag for flag in flags if flag != "-fopenmp")
    harness.check_all(wide_cases(3), tmp_path, compiler, flags)


@pytest.mark.slow
def test_avxvnni_emulated(tmp_path):
    harness.check_all(wide_cases(6), tmp_path, "g++", ("-O1", *need_emulated_avxvnni()))
