"""Weights of 16 bits: every kernel on panels of them, bit for bit."""

import numpy as np
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_builds import TARGETS, check_build, on_builds
from support.kernel_simd import dense_cases, full_cases, line_cases

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


@on_builds(
    {"-O0": 3, "-O0 avx2": 2, "-O0 aarch64": 40},
    "-O0 amx|avx512|sse4",
    f"{'|'.join(sorted(TARGETS))} -O3",
    "g++|clang++ -O0|-O3,parallel,native|native,sanitizers",
    "-O1 emulated-avx512|emulated-amx|emulated-avxvnni",
)
def test_wide_weights(tmp_path, build, every):
    check_build(wide_cases(3)[::every], tmp_path, build)
