"""Transposed convolutions, resampling, unpooling, normalisations: kernels against the normative arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from support import kernel_harness as harness
from support.kernel_cases import S8, U8, Sweep
from support.kernel_more_layers import deconvolutions, resizes, unpools
from support.kernel_sweep import SLOW_BUILDS, need

from n2d2py.arithmetic import FLOAT32, FLOAT64
from n2d2py.operators.activation import Activation
from n2d2py.operators.functions import Clip, Step
from n2d2py.operators.lrn import LRN
from n2d2py.operators.normalize import Normalize


def float_layers(sweep: Sweep) -> list[harness.Case]:
    made = []
    for kind, shape, layout in zip(
        (FLOAT32, FLOAT64, FLOAT32), ((1, 7, 3, 4), (1, 12), (1, 4, 2, 5)), ("apart", "strided", "wrapped"), strict=True
    ):
        for op in (LRN(), LRN(4, 0.5, 0.5, 1.0), LRN(3, 2.0, 1.25, 0.5), Normalize("L1"), Normalize("L2")):
            made.append(sweep.move(op, shape, kind, layout))
        made.append(sweep.move(Normalize("L2"), shape, kind, layout, Clip(0.0)))
    zeros = made[4]
    zeros.inputs["x"][:] = 0
    steps = [Step(0.1), Step(0.2, 3.0, 0.0), Step(-0.3, None, 0.0), Step(0.4, 0.0, None)]
    made += [
        sweep.activation(step, (1, 13, 5, 3), (kind, kind), "strided")
        for step, kind in zip(steps, (FLOAT32, FLOAT64, FLOAT32, FLOAT32), strict=True)
    ]
    return made


def all_cases(seed: int) -> list[harness.Case]:
    sweep = Sweep(seed)
    return [
        *deconvolutions(sweep),
        *resizes(sweep),
        *unpools(sweep),
        *float_layers(sweep),
        sweep.activation(Step(0.5), (1, 7, 3, 3), (S8, U8), "apart"),
    ]


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
