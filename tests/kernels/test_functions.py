"""Functions, chosen positions and repeated operands: kernels against the normative arithmetic."""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_function_cases import all_cases
from support.kernel_sweep import SLOW_BUILDS, need


def test_functions_takes_and_repeats(tmp_path):
    need("g++")
    harness.check_all(all_cases(5), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_functions_takes_and_repeats_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(all_cases(6), tmp_path, compiler, flags)
