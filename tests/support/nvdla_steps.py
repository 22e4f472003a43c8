"""Compiled networks against the integers that Python computes, counted in steps of the result."""

from collections.abc import Callable

import numpy as np

from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py_nvdla.firmware import FP16
from support.nvdla_networks import Net, compiled, cosine, expected, run

__all__ = ["half_error", "steps"]


def samples(shape: tuple[int, int, int], count: int = 2) -> np.ndarray:
    return np.random.default_rng(5).standard_normal((count, *shape)).astype(np.float32)


def steps(build: Callable[[Net], str], shape: tuple[int, int, int], config: str) -> tuple[np.ndarray, object, object]:
    """(differences in steps of the accelerator's result, typed graph, lowered network) of an int8 network."""
    net = Net(shape)
    graph = net.done(build(net))
    x = samples(shape)
    quantized, lowered, program = compiled(graph, config, 0, x)
    found = run(lowered, program, x)
    name = graph.outputs[0]
    kind = quantized.type(name)
    stored = simulate(quantized, quantize_inputs(quantized, [x]))[name].reshape(found.shape)
    real = stored if kind.is_float else stored * kind.scale
    return np.abs(found - real) / lowered.outputs[name][1], quantized, lowered


def half_error(build: Callable[[Net], str], shape: tuple[int, int, int]) -> float:
    """The largest error of an fp16 network, over the largest value; infinite where the direction is another."""
    net = Net(shape)
    graph = net.done(build(net))
    x = samples(shape)
    _, lowered, program = compiled(graph, "nv_full", FP16, x)
    found, wanted = run(lowered, program, x), expected(graph, x)
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / np.abs(wanted).max()) if cosine(found, wanted) > 0.9999 else np.inf
