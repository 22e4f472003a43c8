"""Conversions between number types, ties and zero points included, for the sweeps of kernels."""

from itertools import cycle

import numpy as np

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, make_rescale
from n2d2py.operators.convert import Convert
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8, U16, Sweep

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


def all_cases(seed: int) -> list[harness.Case]:
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
