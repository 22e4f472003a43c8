"""Every kernel against the normative arithmetic, bit for bit (floating point: 1e-5 of the largest value)."""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_sweep import SLOW_BUILDS, need, sweep_cases


def test_sweep(tmp_path):
    need("g++")
    harness.check_all(sweep_cases(1, 66), tmp_path, flags=("-O1",))


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_sweep_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(sweep_cases(2, 132), tmp_path, compiler, flags)
