"""Random networks for the three configurations that NVIDIA's runtime knows, against the Python integers."""

from __future__ import annotations

import numpy as np
import pytest
from support.nvdla_networks import compiled, expected, run
from support.nvdla_random import random_network

from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py_nvdla.firmware import FP16, INT8

TARGETS = (("nv_small", INT8), ("nv_large", INT8), ("nv_full", INT8), ("nv_full", FP16))
LIMITS = {"int8": 6.01, "average": 20, "fp16": 0.005}


def measure(seed: int) -> tuple[str, float]:
    """(kind, largest error) of a network: steps of the output against the Python integers; fp16: parts of the range.

    An average pool keeps the scale of its input, which the Python integers do not: a kind of its own. Sums differ by a
    few steps where the integers limit an operand that the hardware adds before it limits.
    """
    config, precision = TARGETS[seed % len(TARGETS)]
    other = seed // len(TARGETS)
    graph = random_network(seed, 2 + other % 6, other % 5 == 0)
    x = np.random.default_rng(seed + 1).standard_normal((2, *graph.shape("x")[1:])).astype(np.float32)
    quantized, lowered, program = compiled(graph, config, precision, x)
    found, name = run(lowered, program, x), graph.outputs[0]
    if other % 5 == 0 and config == "nv_small":
        assert max(len(layer.chains) for layer in lowered.layers) > 1  # its weights do not fit at once
    if precision == FP16:
        wanted = expected(graph, x)
        return "fp16", float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-3))
    scale = quantized.type(name).scale
    stored = simulate(quantized, quantize_inputs(quantized, [x]))[name].reshape(found.shape)
    steps = np.abs(found - stored * scale).max() / max(scale, lowered.outputs[name][1])
    average = any(node.op.kind == "Pool" and node.op.mode == "Average" for node in graph.nodes)
    return "average" if average else "int8", float(steps)


def check(seed: int) -> None:
    kind, error = measure(seed)
    assert error <= LIMITS[kind], (seed, kind, error)


@pytest.mark.parametrize("seed", range(24))
def test_random_networks(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1250, 10))
def test_many_random_networks(first):
    for seed in range(first, first + 10):
        check(seed)
