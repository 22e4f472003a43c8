"""Activation functions that exporters decompose into several nodes, recognized at their last multiplication.

    x * g(x)                                         the function with the gate g
    x * hardsigmoid(x), x * clip(a x + b, 0, h) * c  HardSwish
    x * (1 + erf(x / sqrt(2))) * c                   GELU times 2 c
    x * (1 + tanh(p(x))) * c, p its polynomial       GELU by tanh times 2 c

Replaced layers stay if another layer reads them; the import removes the others as dead code.
"""

from __future__ import annotations

from functools import reduce
from math import isclose, sqrt

import numpy as np
from numpy.polynomial import polynomial

from n2d2py.contracts import functions
from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import ArrayMap, scale_and_shift
from n2d2py.operators.elemwise.op import ElemWise
from n2d2py.operators.pointwise import Activation, Affine

_MAX_STEPS = 6
"""Largest number of consecutive layers that compute a polynomial."""


def find_gated_function(graph: Graph, a: str, b: str) -> tuple[str, functions.FunctionRow, float] | None:
    """Return (x, f, g) if the product of tensors a and b is g * f(x) for a known function f; else None."""
    for value, gate in ((a, b), (b, a)):
        for x, gain, shift in reversed(_scalings(graph, value)):
            result = _find_gate(graph, x, gate) if shift == 0 and gain != 0 else None
            if result is not None:
                return x, result[0], result[1] * gain
    return None


def merge_gain(graph: Graph, tensor: str, gain: np.ndarray) -> tuple[str, functions.FunctionRow | None, np.ndarray]:
    """Return (source, function, new gain) with gain * tensor = new gain * function(source), as far back as products reach."""
    producer = graph.producer(tensor)
    if producer is None or producer.activation is not None:
        return tensor, None, gain
    if isinstance(producer.op, Affine) and not producer.params["bias"].any():
        weights = producer.params["weights"].astype(np.float64)
        product = gain * weights
        # factors such as 2 and 1/2 cancel up to rounding
        product = np.where(np.abs(product - 1) < 1e-6, 1.0, product)
        x, function = _split_activation(graph, producer.inputs[0])
        return (x, function, product) if (product == 1).all() else (producer.inputs[0], None, product)
    function = producer.op.function if isinstance(producer.op, Activation) else None
    if isinstance(function, functions.HardSwish) and gain.min() == gain.max() > 0:
        factor = float(gain.flat[0])
        scaled = functions.HardSwish(function.gain * factor, function.shift * factor, function.high * factor)
        return producer.inputs[0], scaled, np.ones_like(gain)
    return tensor, None, gain


def _scalings(graph: Graph, tensor: str) -> list[tuple[str, float, float]]:
    """Return (source, gain, shift) of each source with tensor = gain * source + shift, from `tensor` itself backwards."""
    result = [(tensor, 1.0, 0.0)]
    while (producer := graph.producer(result[-1][0])) is not None and (step := _scaling(producer)) is not None:
        _, gain, shift = result[-1]
        result.append((producer.inputs[0], gain * step[0], gain * step[1] + shift))
    return result


def _scaling(node: Node) -> tuple[float, float] | None:
    if isinstance(node.op, Affine) and node.activation is None:
        weights, bias = node.params["weights"], node.params["bias"]
        if (weights == weights[0]).all() and (bias == bias[0]).all():
            return float(weights[0]), float(bias[0])
    return scale_and_shift(node)


def _split_activation(graph: Graph, tensor: str) -> tuple[str, functions.FunctionRow | None]:
    """Return (x, f) if an activation layer computes `tensor` as f(x); else (tensor, None)."""
    producer = graph.producer(tensor)
    if producer is not None and isinstance(producer.op, Activation) and producer.activation is None:
        return producer.inputs[0], producer.op.function
    return tensor, None


def _find_gate(graph: Graph, x: str, gate: str) -> tuple[functions.FunctionRow, float] | None:
    """Return (f, g) with x * gate = g * f(x); else None."""
    inner, factor, offset = _scalings(graph, gate)[-1]
    source, function = _split_activation(graph, inner)
    if function is None:
        return None
    before, gain, shift = next((one for one in _scalings(graph, source) if one[0] == x), (source, 1.0, 0.0))
    scales_x = before == x and shift == 0
    if isinstance(function, functions.Erf) and scales_x and isclose(gain, sqrt(0.5), rel_tol=1e-5) and isclose(factor, offset):
        return functions.Gelu(), 2 * factor
    if isinstance(function, functions.Tanh) and isclose(factor, offset) and _is_gelu_polynomial(graph, source, x):
        return functions.GeluTanh(), 2 * factor
    if offset != 0 or factor <= 0:
        return None
    if isinstance(function, functions.Clip) and before == x and function.low == 0 < function.high < np.inf:
        return functions.HardSwish(gain * factor, shift * factor, function.high * factor), 1.0
    if isinstance(function, functions.HardSigmoid) and source == x:
        return functions.HardSwish(function.gain * factor, function.shift * factor, factor), 1.0
    for kind in functions.FUNCTIONS.values():
        if kind.gate and _split_activations(graph, inner, len(kind.gate)) == (x, kind.gate):
            return kind(), factor
    return None


def _is_gelu_polynomial(graph: Graph, tensor: str, x: str) -> bool:
    """True if a tensor is sqrt(2 / pi) * (x + 0.044715 x^3), in any order of products and sums."""
    result = _polynomial(graph, tensor, x, _MAX_STEPS)
    if result is None or result.shape != functions.GELU_POLYNOMIAL.shape:
        return False
    return np.allclose(result, functions.GELU_POLYNOMIAL, rtol=1e-5, atol=1e-9)


def _polynomial(graph: Graph, tensor: str, x: str, steps: int) -> np.ndarray | None:
    """Return the coefficients of a tensor as a polynomial of `x` of degree 3 at most, constant first; else None."""
    if tensor == x:
        return np.array([0.0, 1.0])
    node = graph.producer(tensor)
    if node is None or node.activation is not None or steps == 0:
        return None
    scaling = _scaling(node)
    parts = [_polynomial(graph, name, x, steps - 1) for name in node.inputs]
    results = [part for part in parts if part is not None]
    if len(results) < len(parts):
        return None
    if scaling is not None:
        return polynomial.polyadd(scaling[0] * results[0], [scaling[1]])
    if isinstance(node.op, ElemWise):
        return _combined(node.op, results)
    if isinstance(node.op, ArrayMap) and node.op.function in ("Add", "Mul", "Pow") and not node.op.result:
        operands = [results[slot] for slot in node.op.slots if slot >= 0]
        if node.op.function == "Pow":
            exponent = np.ravel(node.params.get("operand1", ()))
            return polynomial.polypow(operands[0], 3) if np.array_equal(exponent, [3]) else None
        return _combined(ElemWise("Sum" if node.op.function == "Add" else "Prod"), operands) if len(operands) == 2 else None
    return None


def _combined(op: ElemWise, operands: list[np.ndarray]) -> np.ndarray | None:
    if op.operation == "Sum":
        terms = zip(operands, *op.coefficients(len(operands)), strict=True)
        return reduce(polynomial.polyadd, (polynomial.polyadd(weight * part, [shift]) for part, weight, shift in terms))
    result = reduce(polynomial.polymul, operands) if op.operation == "Prod" else None
    return result if result is not None and len(result) <= len(functions.GELU_POLYNOMIAL) else None


def _split_activations(graph: Graph, tensor: str, length: int) -> tuple[str, tuple[functions.FunctionRow | None, ...]]:
    """Return (x, (f1, ..., fn)) if activation layers compute `tensor` as fn(... f1(x)); None for a missing function."""
    result: list[functions.FunctionRow | None] = []
    for _ in range(length):
        tensor, function = _split_activation(graph, tensor)
        result.insert(0, function)
    return tensor, tuple(result)
