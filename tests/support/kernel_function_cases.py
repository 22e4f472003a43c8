"""Functions, chosen positions and repeated operands, for the sweeps of kernels."""

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType
from n2d2py.operators.depth_to_space import DepthToSpace, SpaceToDepth
from n2d2py.operators.functions import Abs, Elu, Erf, Exp, Gelu, GeluTanh, HardSigmoid, HardSwish, Log, Mish, Softsign, Sqrt
from n2d2py.operators.index_select import IndexSelect
from n2d2py.operators.softmax import Softmax
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8, Sweep
from support.kernel_functions import repeated

FUNCTIONS = (
    Abs(),
    Elu(),
    Elu(1.67, 1.05),
    Elu(2.0, 1.0, 0.5),
    Erf(),
    Exp(),
    Gelu(),
    GeluTanh(),
    HardSigmoid(),
    HardSwish(),
    HardSwish(1.0, 3.0, 6.0),
    Log(),
    Mish(),
    Softsign(),
    Sqrt(),
)


def functions(sweep: Sweep) -> Iterator[harness.Case]:
    for function in FUNCTIONS:
        for kind in (FLOAT32, FLOAT64):
            case = sweep.activation(function, (1, 13, 5, 3), (kind, kind), "strided")
            if isinstance(function, (Log, Sqrt)):
                case.inputs["x"] = np.abs(case.inputs["x"]) + kind.dtype.type(0.01)
            yield case
        yield sweep.activation(function, (1, 7, 2, 3), (S8, U8), "apart")


def takes(sweep: Sweep) -> list[harness.Case]:
    placed = cycle(cases.POINTWISE_LAYOUTS)
    shapes = [
        ((1, 8), ((2, 3, 4),)),
        ((1, 8), ((7, 0, 0, 3),)),
        ((1, 5, 6), ((4, 3, 2), None)),
        ((1, 5, 6), (None, (1, 0, 0, 1, 5, 4))),
        ((1, 7, 5, 4), ((1, 3, 5), (4, 3, 2, 1, 0), None)),
        ((1, 4, 5, 6), (None, (1, 0, 1, 2, 3, 4, 3), (2, 1, 0, 1))),
        ((1, 3, 2, 2), ((2,), (1,), (0, 0, 0))),
    ]
    return [
        sweep.move(IndexSelect(indices), shape, kind, next(placed))
        for (shape, indices), kind in zip(shapes, cycle((U8, FLOAT32, S16, FLOAT64, S8)))
    ]


def blocks(sweep: Sweep) -> Iterator[harness.Case]:
    placed, kinds = cycle(cases.POINTWISE_LAYOUTS), cycle((U8, FLOAT32, S16, FLOAT64))
    for first in (False, True):
        for block, channels in ((2, 3), (3, 2), (1, 5)):
            yield sweep.move(DepthToSpace(block, first), (1, channels * block**2, 3, 4), next(kinds), next(placed))
            yield sweep.move(SpaceToDepth(block, first), (1, channels, 2 * block, 3 * block), next(kinds), next(placed))
    yield from [
        sweep.move(Softmax(log=True), (1, 10), FLOAT32, "apart"),
        sweep.move(Softmax(4, True), (1, 12, 3, 2), FLOAT64, "apart"),
    ]


def repeats(sweep: Sweep) -> Iterator[harness.Case]:
    placed, swap = cycle(cases.POINTWISE_LAYOUTS), cycle((False, True))
    others = ((1, 13, 1, 1), (1, 1, 5, 3), (1, 1, 1, 1), (1, 13, 5, 1), (1, 13, 1, 3), (1, 1, 1, 3))
    zero = NumType(8, False, zero_point=9)
    for operation in ("Prod", "Sum", "Min"):
        for other, kinds in zip(others, cycle(((U8, U8), (FLOAT32, FLOAT32), (S8, S8), (FLOAT64, FLOAT64), (zero, U8)))):
            yield repeated(sweep, operation, (1, 13, 5, 3), other, kinds, next(placed), next(swap))
    yield repeated(sweep, "Sum", (1, 1, 4, 70), (1, 1, 1, 70), (U8, U8), "apart", False)
    yield repeated(sweep, "Sum", (1, 1, 4, 70), (1, 1, 4, 1), (FLOAT32, FLOAT32), "apart", True)
    yield from [sweep.elemwise("Min", (1, 13, 4, 3), 3, kinds, "apart") for kinds in ((U8, S8), (S16, S16), (FLOAT32,))]


def all_cases(seed: int) -> list[harness.Case]:
    sweep = Sweep(seed)
    return [*functions(sweep), *takes(sweep), *blocks(sweep), *repeats(sweep)]
