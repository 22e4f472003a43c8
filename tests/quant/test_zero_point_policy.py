"""The price of the zero-point policy (`ZERO_POINT_GAIN`): decibels of activations of LeNet's layers on handwritten digits.

The referee is the network in floating point, on the digits that calibrate: what other data do differs by chance, and by clipping.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support.model_run import MODELS
from support.tables import every

from n2d2py.graph import Graph, Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.conv import Conv
from n2d2py.operators.functions import Elu, LeakyRectifier
from n2d2py.operators.pool import Pool
from n2d2py.quant.calibration import quantize
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.statistics import collect
from n2d2py.reference.engine import FloatEngine

MOST_DB = 1.05
"""What the policy may lose against the better of both types: a share of 0.8 is 0.97 dB, beside what histograms round."""
LEAST_DB = 0.9
"""What a zero point must gain at least: its layers take more operations on some kernels."""
FUNCTIONS = {"leaky 0.5": LeakyRectifier(0.5), "leaky 0.7": LeakyRectifier(0.7), "elu of 4": Elu(4.0)}
"""With zero points their results have 0.5 to 0.9 of the squared error."""


@cache
def digits() -> np.ndarray:
    """64 digits of 8 x 8, enlarged, from 0 to 1."""
    data = (MODELS / "data" / "digits" / "t10k-images-idx3-ubyte").read_bytes()
    return (np.frombuffer(data[16:], np.uint8).reshape(-1, 1, 8, 8)[:64] / 255).repeat(4, 2).repeat(4, 3).astype(np.float32)


def network(name: str) -> Graph:
    """The first two convolutions of LeNet with another function behind each."""
    stored = np.load(MODELS / "LeNet.npz")
    graph = Graph("digits")
    graph.add_input("x", (1, 1, 32, 32))
    source = "x"
    for layer in ("conv1", "conv2"):
        params = {"weights": stored[f"{layer}_weights"], "bias": stored[f"{layer}_biases"]}
        graph.add(Node(layer, Conv(), [source], [layer], params))
        graph.add(Node(f"{layer}_f", Activation(FUNCTIONS[name]), [layer], [f"{layer}_f"]))
        graph.add(Node(f"{layer}_p", Pool("Average", (2, 2), (2, 2)), [f"{layer}_f"], [f"{layer}_p"]))
        source = f"{layer}_p"
    rng = np.random.default_rng(0)
    params = {"weights": rng.normal(size=(8, 16, 5, 5)).astype(np.float32), "bias": np.zeros(8, np.float32)}
    graph.add(Node("y", Conv(), [source], ["y"], params))
    graph.outputs = ["y"]
    graph.verify()
    return graph


@cache
def decibels(name: str, zero_points: bool | None) -> dict[str, tuple[float, int]]:
    """Signal to error in dB, and the zero point, of what each function and pool gives: by the policy (None), or with zero points or without everywhere."""
    graph = network(name)
    histograms = collect(graph, [digits()]).histograms
    with pytest.MonkeyPatch.context() as patch:
        if zero_points:
            patch.setattr("n2d2py.quant.types.choose.ZERO_POINT_GAIN", 1e9)
        options = QuantOptions(equalize=False, zero_points=zero_points is not False)
        typed, _ = quantize(graph, histograms, options, {"x": (0.0, 1.0)})
    tensors = [node.output for node in graph.nodes if not isinstance(node.op, Conv)]
    found = {}
    for tensor, real in FloatEngine(graph, taps=tensors).run(digits()).items():
        if tensor in tensors:
            kind = typed.type(tensor)
            error = np.square(real - kind.dequantize(kind.quantize(real)).astype(np.float64)).sum()
            found[tensor] = 10 * float(np.log10(np.square(real, dtype=np.float64).sum() / error)), kind.zero_point
    return found


@every("name", FUNCTIONS)
def test_the_policy_loses_little_against_the_better_type(name):
    """A smaller share costs decibels: at 0.7 up to 1.5 of them."""
    chosen, with_one, without = (decibels(name, way) for way in (None, True, False))
    lost = {tensor: max(with_one[tensor][0], without[tensor][0]) - chosen[tensor][0] for tensor in chosen}
    worst = max(lost, key=lost.__getitem__)
    assert lost[worst] <= MOST_DB, f"{worst} loses {lost[worst]:.2f} dB"


@every("name", FUNCTIONS)
def test_a_zero_point_gains_enough(name):
    """A larger share pays for zero points that gain next to nothing."""
    chosen, without = decibels(name, None), decibels(name, False)
    gained = {tensor: chosen[tensor][0] - without[tensor][0] for tensor in chosen if chosen[tensor][1]}
    small = {tensor: f"{gain:.2f} dB" for tensor, gain in gained.items() if gain < LEAST_DB}
    assert not small, f"zero points of little gain: {small}"


def test_both_sides_of_the_policy_are_met():
    """Tensors whose squared error with a zero point is 0.7 to 0.8 of that without, and 0.8 to 0.95: they notice a move of the share."""
    shares = {}
    for name in FUNCTIONS:
        with_one, without = decibels(name, True), decibels(name, False)
        shares |= {(name, tensor): 10 ** ((without[tensor][0] - with_one[tensor][0]) / 10) for tensor in with_one}
    assert any(0.7 < share < 0.78 for share in shares.values()) and any(0.82 < share < 0.95 for share in shares.values())
