"""Functions that exporters spell out with several nodes, recognised at their last product.

    x * g(x)                                         the function with the gate g
    x * hardsigmoid(x), x * clip(a x + b, 0, h) * c  HardSwish
    x * (1 + erf(x / sqrt(2))) * c                   GELU times 2 c

The layers of the parts stay where something else reads them; the others are pruned at the end of the import.
"""

from __future__ import annotations

from math import isclose, sqrt

import numpy as np

from n2d2py.graph import Graph
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.arrays.map import scale_and_shift
from n2d2py.operators.functions import FUNCTIONS, Clip, Erf, FunctionRow, Gelu, HardSigmoid, HardSwish


def gated(graph: Graph, a: str, b: str) -> tuple[str, FunctionRow, float] | None:
    """(x, f, g) where the product of the tensors a and b is g * f(x) for one of the known functions, else None."""
    for value, gate in ((a, b), (b, a)):
        x, gain, shift = _scaled(graph, value)
        if shift == 0 and gain != 0:
            found = _gate(graph, x, gate)
            if found is not None:
                return x, found[0], found[1] * gain
        found = _gate(graph, value, gate)
        if found is not None:
            return value, *found
    return None


def merged_gain(graph: Graph, tensor: str, gain: np.ndarray) -> tuple[str, FunctionRow | None, np.ndarray]:
    """(source, function, gain) with gain * tensor = the new gain * function(source), as far back as it is a product."""
    producer = graph.producer(tensor)
    if producer is None or producer.activation is not None:
        return tensor, None, gain
    if isinstance(producer.op, Affine) and not producer.params["bias"].any():
        weights = producer.params["weights"].astype(np.float64)
        product = gain * weights
        # what a pair of factors such as 2 and 1/2 leaves beside 1 is rounding
        product = np.where(np.abs(product - 1) < 1e-6, 1.0, product)
        x, function = _applied(graph, producer.inputs[0])
        return (x, function, product) if (product == 1).all() else (producer.inputs[0], None, product)
    if isinstance(producer.op, Activation) and isinstance(producer.op.function, HardSwish) and gain.min() == gain.max() > 0:
        function, factor = producer.op.function, float(gain.flat[0])
        return (
            producer.inputs[0],
            HardSwish(function.gain * factor, function.shift * factor, function.high * factor),
            np.ones_like(gain),
        )
    return tensor, None, gain


def _scaled(graph: Graph, tensor: str) -> tuple[str, float, float]:
    """(source, gain, shift) where `tensor` is one gain times a source plus one shift; (tensor, 1, 0) otherwise."""
    producer = graph.producer(tensor)
    if producer is None:
        return tensor, 1.0, 0.0
    if isinstance(producer.op, Affine) and producer.activation is None:
        weights, bias = producer.params["weights"], producer.params["bias"]
        if (weights == weights[0]).all() and (bias == bias[0]).all():
            return producer.inputs[0], float(weights[0]), float(bias[0])
    found = scale_and_shift(producer)
    return (tensor, 1.0, 0.0) if found is None else (producer.inputs[0], *found)


def _applied(graph: Graph, tensor: str) -> tuple[str, FunctionRow | None]:
    """(x, f) where `tensor` is f(x) by an activation layer."""
    producer = graph.producer(tensor)
    if producer is not None and isinstance(producer.op, Activation) and producer.activation is None:
        return producer.inputs[0], producer.op.function
    return tensor, None


def _gate(graph: Graph, x: str, gate: str) -> tuple[FunctionRow, float] | None:
    """(f, g) with x * gate = g * f(x)."""
    inner, factor, offset = _scaled(graph, gate)
    source, function = _applied(graph, inner)
    if function is None:
        return None
    before, gain, shift = _scaled(graph, source)
    if (
        isinstance(function, Erf)
        and before == x
        and shift == 0
        and isclose(gain, sqrt(0.5), rel_tol=1e-5)
        and isclose(factor, offset)
    ):
        return Gelu(), 2 * factor
    if offset != 0 or factor <= 0:
        return None
    if isinstance(function, Clip) and before == x and function.low == 0 and np.isfinite(function.high) and function.high > 0:
        return HardSwish(gain * factor, shift * factor, function.high * factor), 1.0
    if isinstance(function, HardSigmoid) and source == x:
        return HardSwish(function.gain * factor, function.shift * factor, factor), 1.0
    for made in FUNCTIONS.values():
        if made.gate and _chain(graph, inner, len(made.gate)) == (x, made.gate):
            return made(), factor
    return None


def _chain(graph: Graph, tensor: str, length: int) -> tuple[str, tuple[FunctionRow | None, ...]]:
    """(x, (f1, ..., fn)) where `tensor` is fn(... f1(x)) by activation layers; None stands for what is none."""
    found: list[FunctionRow | None] = []
    for _ in range(length):
        tensor, function = _applied(graph, tensor)
        found.insert(0, function)
    return tensor, tuple(found)
