"""Every kernel with its output as far over an input as the planner lets it, lines forwards and backwards, bit for
bit.
"""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_overlaps import overlapping_cases
from support.kernel_sweep import SLOW_BUILDS, need


def test_outputs_over_inputs(tmp_path):
    need("g++")
    made = overlapping_cases(3)
    for way in ("forwards", "backwards"):
        assert sum(case.inplace and case.title.endswith(way) for case in made) > 25
    harness.check_all(made, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_outputs_over_inputs_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(overlapping_cases(4), tmp_path, compiler, flags)


def test_every_kernel_with_an_order_has_both_directions():
    for header in sorted((harness.ROOT / "kernels").rglob("*.hpp")):
        text = header.read_text()
        if "Cfg::Serial != 0" in text or "Cfg::Serial)" in text:
            assert "reverse" in text.lower(), f"{header.name} orders its lines, but only forwards"
