"""Layers of networks that come quantized: zero points of outputs, full ranges, biases with fractions, real sums."""

from __future__ import annotations

import pytest
from support import kernel_harness as harness
from support.kernel_cases import Sweep
from support.kernel_quantized_layers import length_cases, quantized_cases, table_cases
from support.kernel_sweep import SLOW_BUILDS, need


def test_quantized_layers(tmp_path):
    need("g++")
    harness.check_all([*quantized_cases(3)[::5], *table_cases(Sweep(3)), *length_cases(Sweep(3))], tmp_path, flags=("-O1",))


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_quantized_layers_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(quantized_cases(4), tmp_path, compiler, flags)
