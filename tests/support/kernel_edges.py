"""Kernels of real numbers on NaN, infinities and the ends of the types, for the sweeps of kernels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, plain_type
from n2d2py.operators.arrays.conv_pool import ArrayConvPool
from n2d2py.operators.arrays.map import ArrayMap
from n2d2py.operators.functions import Clip, HardSigmoid, HardSwish, LeakyRectifier
from n2d2py.operators.unpool import Unpool
from support import kernel_harness as harness
from support.kernel_cases import Sweep
from support.kernel_conversions import all_cases, convert, with_edges
from support.kernel_more_layers import unpool

KINDS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FUNCTIONS = (
    Clip(0.0),
    Clip(0.0, 6.0),
    Clip(-1.0, 1.0),
    LeakyRectifier(0.1),
    LeakyRectifier(0.25, 0.5),
    HardSigmoid(0.25, 0.5),
    HardSwish(0.25, 0.5),
)


def _cast(sweep: Sweep, source: NumType, kind: str) -> harness.Case:
    op, target = ArrayMap("Cast", (37,), ((37,),), result=kind), plain_type(kind)
    graph = sweep.graph(op, {"x": ((1, 37), source)}, ((1, 37), target))
    return sweep.case(f"{source.name} to {kind}", graph, {"x": sweep.stored((1, 37), source)}, "apart")


def _windows(sweep: Sweep, function: str, real: NumType) -> harness.Case:
    ones, none = (1, 1, 1), (0, 0, 0)
    op = ArrayConvPool(function, (1, 3, 1, 7, 9), 3, (1, 3, 4), (1, 2, 3), (1, 2, 2), none, ones, slots=(0,))
    target = plain_type("int64") if function == "MaxIndex" else real
    graph = sweep.graph(op, {"x": ((1, 189), real)}, ((1, 36), target))
    return sweep.case(function, graph, {"x": sweep.stored((1, 189), real)}, "apart")


def edge_cases(seed: int) -> list[harness.Case]:
    """Everything that turns real numbers into integers, and what compares them, exact in all bits: products of the constants here are, fused or not."""
    sweep, f, size = Sweep(seed), (FLOAT32, FLOAT32), (1, 13, 5, 7)
    made = [_cast(sweep, source, kind) for source, kind in product((FLOAT32, FLOAT64), KINDS)]
    made += [sweep.activation(function, size, f, "strided") for function in FUNCTIONS]
    made += [
        sweep.elemwise(operation, size, 3, (kind,), "apart") for operation, kind in product(("Max", "Min"), (FLOAT32, FLOAT64))
    ]
    for channels in (13, 64):
        made.append(sweep.pool("Max", (1, channels, 5, 7), (3, 3), (2, 2), (1, 1, 1, 1), True, f, "over"))
    for function in FUNCTIONS[:3]:
        made.append(sweep.conv((1, 1, 5, 7), 19, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, f, "apart"))
        node = made[-1].node
        node.params["weights"][:] = np.copysign(1, node.params["weights"])
        node.activation = function
    made += [_windows(sweep, function, real) for function, real in product(("Max", "MaxIndex"), (FLOAT32, FLOAT64))]
    made.append(unpool(sweep, Unpool((2, 3), (3, 4)), (8, 11), 5, *f, "apart"))
    made += [convert(sweep, size, real, NumType(32, scale=0.5, zero_point=7), "apart") for real in (FLOAT32, FLOAT64)]
    made = [replace(case, exact=True, inputs={name: with_edges(x) for name, x in case.inputs.items()}) for case in made]
    return made + all_cases(seed)
