"""Every kernel that can run line by line, one or two lines at a call, bit for bit."""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_lines import line_cases
from support.kernel_sweep import SLOW_BUILDS, need


def test_line_by_line(tmp_path):
    need("g++")
    harness.check_all(line_cases(5), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_line_by_line_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(line_cases(6), tmp_path, compiler, flags)
