"""Activation functions that exporters decompose into several nodes, recognized at their last multiplication.

    x * g(x)                                         the function with the gate g
    x * hardsigmoid(x), x * clip(a x + b, 0, h) * c  HardSwish
    x * (1 + erf(x / sqrt(2))) * c                   GELU times 2 c
    x * (1 + tanh(p(x))) * c, p its polynomial       GELU by tanh times 2 c

Replaced layers stay if another layer reads them; the import removes the others as dead code.
"""

import numpy as np

from n2d2py.contracts import functions
from n2d2py.graph import Graph, Node
from n2d2py.operators.arrays.map import MAP_FUNCTIONS, ArrayMap, scale_and_shift
from n2d2py.operators.elemwise.op import ElemWise
from n2d2py.operators.pointwise import Activation, Affine

_MAX_STEPS = 9
"""Largest number of consecutive layers that compute a gate."""
_POINTS = np.array([*np.linspace(-4.0, 4.0, 16), 50.0])
"""Where a gate is compared with those of known functions; all of them are 1 at the last point."""


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
    if isinstance(function, (functions.Clip, functions.HardSigmoid)):
        return _find_hard_swish(graph, x, source, function, factor) if offset == 0 and factor > 0 else None
    values = _evaluate(graph, gate, x, _MAX_STEPS)
    if function is None or values is None:
        return None
    for kind in functions.FUNCTIONS.values():
        if kind.gate or kind in (functions.Gelu, functions.GeluTanh):
            expected = kind()(_POINTS) / _POINTS
            gain = float(values[-1] / expected[-1])
            if gain > 0 and np.allclose(values, gain * expected, rtol=1e-4, atol=1e-7 * gain):
                return kind(), gain
    return None


def _find_hard_swish(
    graph: Graph, x: str, source: str, function: functions.FunctionRow, factor: float
) -> tuple[functions.FunctionRow, float] | None:
    if isinstance(function, functions.HardSigmoid) and source == x:
        return functions.HardSwish(function.gain * factor, function.shift * factor, factor), 1.0
    found = next((one for one in _scalings(graph, source) if one[0] == x), None)
    if found is not None and isinstance(function, functions.Clip) and function.low == 0 < function.high < np.inf:
        return functions.HardSwish(found[1] * factor, found[2] * factor, function.high * factor), 1.0
    return None


def _evaluate(graph: Graph, tensor: str, x: str, steps: int) -> np.ndarray | None:
    """Return the values of a tensor where those of `x` are `_POINTS`, if at most `steps` layers after each other compute it from
    `x` alone, element by element; else None."""
    node = None if steps == 0 else graph.producer(tensor)
    if tensor == x or node is None or node.activation is not None:
        return _POINTS if tensor == x else None
    op, scaling = node.op, _scaling(node)
    if not isinstance(op, (Activation, Affine, ElemWise, ArrayMap)):
        return None
    inputs = [values for name in node.inputs if (values := _evaluate(graph, name, x, steps - 1)) is not None]
    if not inputs or len(inputs) < len(node.inputs):
        return None
    if scaling is not None:
        return scaling[0] * inputs[0] + scaling[1]
    if isinstance(op, Activation) or (isinstance(op, ElemWise) and op.operation in ("Sum", "Prod")):
        return op.run(inputs, node)[0]
    if isinstance(op, ArrayMap) and op.function in ("Add", "Mul", "Pow") and not op.result:
        constants = {index: np.ravel(node.params[f"operand{index}"]) for index, slot in enumerate(op.slots) if slot < 0}
        if all(constant.size == 1 for constant in constants.values()):
            operands = [inputs[slot] if slot >= 0 else constants[index] for index, slot in enumerate(op.slots)]
            return MAP_FUNCTIONS[op.function](*operands)
    return None
