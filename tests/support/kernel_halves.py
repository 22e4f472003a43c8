"""Layers with weights in binary16, for the sweeps of kernels."""

import numpy as np

from n2d2py.arithmetic import FLOAT32
from n2d2py.graph.forms import Real
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K1, K3, Window


def half_cases(seed: int) -> list[harness.Case]:
    """Convolutions of all kinds and fully connected layers with halves for weights."""
    sweep, f = cases.Sweep(seed), (FLOAT32, FLOAT32)
    made = [
        sweep.conv((1, 5, 7, 6), 11, K3, f, "strided"),
        sweep.conv((1, 16, 5, 5), 4, K1, f),
        sweep.depthwise((1, 8, 9, 8), Window((3, 2), (2, 1), (1, 0, 1, 1), (1, 2)), f, "wrapped"),
        sweep.conv((1, 12, 6, 6), 8, K3, f, groups=4),
        sweep.fc((1, 7, 3, 3), 10, f, "apart"),
        sweep.fc((1, 100), 5, f, "strided"),
    ]
    for case in made:
        case.node.form = Real({**case.node.params, "weights": case.node.params["weights"].astype(np.float16)})
    return made
