"""Layers with weights in binary16, for the sweeps of kernels."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import FLOAT32
from n2d2py.graph.forms import Real
from support import kernel_cases as cases
from support import kernel_harness as harness


def half_cases(seed: int) -> list[harness.Case]:
    """Convolutions of all kinds and fully connected layers with halves for weights."""
    sweep, f = cases.Sweep(seed), (FLOAT32, FLOAT32)
    made = [
        sweep.conv((1, 5, 7, 6), 11, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1, f, "strided"),
        sweep.conv((1, 16, 5, 5), 4, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, f, "apart"),
        sweep.conv((1, 8, 9, 8), 8, (3, 2), (2, 1), (1, 0, 1, 1), (1, 2), 8, f, "wrapped"),
        sweep.conv((1, 12, 6, 6), 8, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4, f, "apart"),
        sweep.fc((1, 7, 3, 3), 10, f, "apart"),
        sweep.fc((1, 100), 5, f, "strided"),
    ]
    for case in made:
        case.node.form = Real({**case.node.params, "weights": case.node.params["weights"].astype(np.float16)})
    return made
