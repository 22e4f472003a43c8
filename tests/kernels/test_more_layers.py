"""Transposed convolutions, resampling, unpooling, normalisations: kernels against the normative arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_real_layers import all_cases
from support.kernel_sweep import SLOW_BUILDS, need

from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Step


def test_more_layers(tmp_path):
    need("g++")
    harness.check_all(all_cases(3), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_more_layers_builds(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(all_cases(4), tmp_path, compiler, flags)


def test_the_activation_layer_of_a_step_is_a_table():
    assert Activation(Step(0.5)).function(np.array([0.5, 0.6], np.float32)).tolist() == [0.0, 1.0]
