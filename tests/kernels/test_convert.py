"""Conversions between number types: kernels against the normative arithmetic, ties and zero points included."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from support import kernel_cases as cases
from support import kernel_harness as harness
from support.kernel_cases import S8, S16, U8, U16, Sweep
from support.kernel_sweep import SLOW_BUILDS, need

from n2d2py.arithmetic import FLOAT32, FLOAT64, NumType, make_rescale
from n2d2py.operators.convert import Convert

SHAPES = [(1, 7, 3, 5), (1, 24), (1, 1, 1, 1), (1, 16, 4, 8), (1, 3, 9, 2)]


def scaled(kind: NumType, scale: float, zero: int = 0) -> NumType:
    return kind if kind.is_float else NumType(kind.bits, kind.signed, False, scale, zero)


def convert(sweep: Sweep, shape, source: NumType, target: NumType, layout: str) -> harness.Case:
    x = sweep.stored(shape, source, "random")
    node = {}
    if source.is_float:  # ties, values beyond the range, both zeros
        steps = sweep.rng.integers(-2 * target.qmax, 2 * target.qmax, shape) + sweep.rng.choice([0.0, 0.5, 0.25], shape)
        x = (steps * target.scale).astype(source.dtype)
        x.flat[0] = -0.0
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


def test_conversions(tmp_path):
    need("g++")
    harness.check_all(all_cases(5), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("build", sorted(SLOW_BUILDS))
def test_conversions_in_every_build(build, tmp_path):
    compiler, flags = SLOW_BUILDS[build]
    need(compiler)
    harness.check_all(all_cases(6), tmp_path, compiler, flags)


def test_a_conversion_by_hand():
    """5 * 0.5 = 2.5 is a tie between 1 and 2 steps of 1 (to even: 2), with zero points on both sides."""
    from n2d2py.graph import QuantGraph, QuantNode, QuantTensor
    from n2d2py.quant.simulator import simulate

    kinds = {"x": NumType(8, True, scale=0.5, zero_point=-3), "r": FLOAT32, "y": NumType(8, False, scale=1.0, zero_point=4)}
    nodes = [
        QuantNode("r", Convert(True), ["x"], ["r"]),
        QuantNode("y", Convert(), ["r"], ["y"], rescale=make_rescale("Floating-point", np.ones(1))[0], clamp=(0, 255)),
    ]
    graph = QuantGraph("net", 8, {name: QuantTensor(name, (1, 3), kind) for name, kind in kinds.items()}, nodes, ["x"], ["y"])
    values = simulate(graph, [np.array([[2, 0, -103]])], keep=True)
    assert values["r"].tolist() == [[2.5, 1.5, -50.0]] and values["r"].dtype == np.float32
    assert values["y"].tolist() == [[6, 6, 0]]
