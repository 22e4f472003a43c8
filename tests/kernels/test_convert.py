"""Conversions between number types: kernels against the normative arithmetic, ties and zero points included."""

from __future__ import annotations

import numpy as np

from n2d2py.arithmetic import FLOAT32, NumType, make_rescale
from n2d2py.operators.convert import Convert


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
