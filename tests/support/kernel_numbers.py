"""Conversions between number types with ties and zero points, and real numbers at the ends of the types, for the sweeps of kernels."""

from dataclasses import replace
from itertools import cycle, product

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, make_rescale, plain_type
from n2d2py.contracts.functions import Clip, HardSigmoid, HardSwish, LeakyRectifier
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import K1, S8, S16, U8, U16, Sweep, Window
from support.kernel_resampling import unpool
from support.ops import ArrayMap, Convert, Pool3D, Unpool

SHAPES = [(1, 7, 3, 5), (1, 24), (1, 1, 1, 1), (1, 16, 4, 8), (1, 3, 9, 2)]


def with_edges(x: np.ndarray) -> np.ndarray:
    """Real numbers with those at the edges of their type among them: at the start, at the end and in between."""
    info = np.finfo(x.dtype)
    edges = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        info.max,
        -info.max,
        info.smallest_subnormal,
        -info.tiny,
        2.0**31,
        -(2.0**63),
        -np.nan,
    ]
    for number, edge in enumerate([*edges, *reversed(edges)][: x.size]):
        x.flat[number * x.size // (2 * len(edges)) if x.size >= 2 * len(edges) else number] = edge
    return x


def scaled(kind: NumType, scale: float, zero: int = 0) -> NumType:
    return kind if kind.is_float else NumType(kind.bits, kind.signed, False, scale, zero)


def convert(sweep: Sweep, shape, source: NumType, target: NumType, layout: str) -> harness.Case:
    x = sweep.stored(shape, source, "random")
    node = {}
    if source.is_float:  # ties, values beyond the range, both zeros
        steps = sweep.rng.integers(-2 * target.qmax, 2 * target.qmax, shape) + sweep.rng.choice([0.0, 0.5, 0.25], shape)
        x = (steps * target.scale).astype(source.dtype)
        x = with_edges(x)
    if not target.is_float:
        low = target.qmin + 3 if sweep.rng.integers(2) else target.qmin
        factor = 1 / target.scale if source.is_float else source.scale / target.scale
        mode = "Floating-point" if source.is_float else next(sweep.modes)
        node = {
            "clamp": (low, target.qmax),
            "bound": 2 ** (source.bits + 1),
            "rescale": make_rescale(mode, np.array([factor]))[0],
        }
    graph = sweep.graph(Convert(target.is_float), {"x": (shape, source)}, (shape, target), **node)
    return sweep.case(f"{source} to {target}, {shape[1:]}", graph, {"x": x}, layout)


def conversion_cases(seed: int) -> list[harness.Case]:
    sweep, shapes, placed = Sweep(seed), cycle(SHAPES), cycle(cases.POINTWISE_LAYOUTS)
    made = []
    for real in (FLOAT32, FLOAT64):
        for kind in (U8, S8, U16, S16):
            for scale, zero in ((0.5, 0), (0.0123, 9), (3.0, -5 if kind.signed else 200)):
                made.append(convert(sweep, next(shapes), scaled(kind, scale, zero), real, next(placed)))
                made.append(convert(sweep, next(shapes), real, scaled(kind, scale, zero), next(placed)))
    for source in (U8, S8, U16, S16):
        for target in (U8, S8, U16, S16):
            made.append(convert(sweep, next(shapes), scaled(source, 0.02, 3), scaled(target, 0.05, 7), next(placed)))
    return made


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
    op = Pool3D((1, 3, 1, 7, 9), (1, 3, 4), (1, 2, 3), (1, 2, 2), none, ones, function)
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
        made.append(sweep.pool("Max", (1, channels, 5, 7), Window((3, 3), (2, 2), (1, 1, 1, 1)), True, f, "over"))
    for function in FUNCTIONS[:3]:
        made.append(sweep.conv((1, 1, 5, 7), 19, K1, f))
        node = made[-1].node
        node.params["weights"][:] = np.copysign(1, node.params["weights"])
        node.activation = function
    made += [_windows(sweep, function, real) for function, real in product(("Max", "MaxIndex"), (FLOAT32, FLOAT64))]
    made.append(unpool(sweep, Unpool((2, 3), (3, 4)), (8, 11), 5, *f, "apart"))
    made += [convert(sweep, size, real, NumType(32, scale=0.5, zero_point=7), "apart") for real in (FLOAT32, FLOAT64)]
    made = [replace(case, exact=True, inputs={name: with_edges(x) for name, x in case.inputs.items()}) for case in made]
    return made + conversion_cases(seed)
