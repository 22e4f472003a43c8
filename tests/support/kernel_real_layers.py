"""Normalisations and steps beside transposed convolutions, resampling and unpooling, for the sweeps of kernels."""

from n2d2py.arithmetic import FLOAT32, FLOAT64
from n2d2py.operators.functions import Step
from n2d2py.operators.lrn import LRN
from n2d2py.operators.normalize.op import lp_normalize
from support import kernel_harness as harness
from support.kernel_cases import S8, U8, Sweep
from support.kernel_more_layers import deconvolutions, resizes, unpools


def float_layers(sweep: Sweep) -> list[harness.Case]:
    made = []
    for kind, shape, layout in zip(
        (FLOAT32, FLOAT64, FLOAT32), ((1, 7, 3, 4), (1, 12), (1, 4, 2, 5)), ("apart", "strided", "wrapped"), strict=True
    ):
        for op in (LRN(), LRN(4, 0.5, 0.5, 1.0), LRN(3, 2.0, 1.25, 0.5)):
            made.append(sweep.move(op, shape, kind, layout))
        made += [sweep.move(lp_normalize(shape[1], power), shape, kind, "apart") for power in (1, 2)]
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
