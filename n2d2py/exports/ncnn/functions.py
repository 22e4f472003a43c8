"""Element-wise functions as ncnn layers, and integer limits as clamps."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite

from n2d2py.contracts import functions
from n2d2py.exports.ncnn.file import Value
from n2d2py.graph import QuantGraph, QuantNode


@dataclass(frozen=True)
class Unary:
    """A layer of one input without weights.

    Attributes:
        fused: type and parameters as activation of a convolution; None if it cannot be fused.
    """

    type: str
    parameters: dict[int, Value] = field(default_factory=dict)
    fused: tuple[int, tuple[float, ...]] | None = None


_UNARY = {"Sqrt": 5, "Exp": 7, "Log": 8}
_PLAIN = {
    "Abs": Unary("AbsVal"),
    "Logistic": Unary("Sigmoid", {}, (4, ())),
    "Mish": Unary("Mish", {}, (5, ())),
    "Softplus": Unary("Softplus"),
    "Swish": Unary("Swish"),
    **{name: Unary("UnaryOp", {0: number}) for name, number in _UNARY.items()},
}
"""Functions without attributes."""


def clamp_layers(low: float, high: float) -> list[Unary]:
    """Return the layers of min(max(x, low), high)."""
    if low == -inf and high == inf:
        return []
    if low == 0 and high == inf:
        return [Unary("ReLU", {}, (1, ()))]
    limits: dict[int, Value] = {number: float(edge) for number, edge in enumerate((low, high)) if isfinite(edge)}
    return [Unary("Clip", limits, (3, (float(low), float(high))) if len(limits) == 2 else None)]


def limit_layers(graph: QuantGraph, node: QuantNode, saturates: bool) -> list[Unary]:
    """Return the limits of an integer layer's results as layers.

    `saturates`: also limit to the ends of their type, since the consumers do not.
    """
    kind = graph.type(node.output)
    low, high = node.clamp or (kind.qmin, kind.qmax)
    above = saturates or high < kind.qmax
    below = saturates or low > kind.qmin or (not kind.signed and kind.zero_point == 0)
    return clamp_layers(
        kind.scale * (low - kind.zero_point) if below else -inf, kind.scale * (high - kind.zero_point) if above else inf
    )


def function_layers(function: functions.FunctionRow) -> list[Unary] | None:
    """Return the layers of a function; None if ncnn has none."""
    if type(function) is functions.FUNCTIONS.get(function.kind) and function.kind in _PLAIN:
        return [_PLAIN[function.kind]]
    if isinstance(function, functions.Clip):
        return clamp_layers(function.low, function.high)
    if isinstance(function, functions.LeakyRectifier):
        slope = float(function.slope)
        return [Unary("ReLU", {0: slope}, (2, (slope,))), *clamp_layers(-inf, function.high)]
    if isinstance(function, functions.Tanh):
        return [*([] if function.alpha == 1 else [scale_layer(function.alpha)]), Unary("TanH")]
    if isinstance(function, functions.HardSigmoid):
        return [Unary("HardSigmoid", {0: float(function.gain), 1: float(function.shift)})]
    if isinstance(function, functions.HardSwish) and function.high == 1:
        gain, shift = float(function.gain), float(function.shift)
        return [Unary("HardSwish", {0: gain, 1: shift}, (6, (gain, shift)))]
    if isinstance(function, functions.Elu) and function.rate == 1:
        if function.gain == 1:
            return [Unary("ELU", {0: float(function.alpha)})]
        return [Unary("SELU", {0: float(function.alpha), 1: float(function.gain)})]
    if isinstance(function, (functions.Gelu, functions.GeluTanh)):
        return [Unary("GELU", {0: int(isinstance(function, functions.GeluTanh))})]
    return None


def scale_layer(factor: float) -> Unary:
    """Return the layer of x * factor."""
    return Unary("BinaryOp", {0: 2, 1: 1, 2: float(factor)})


def shift_layer(offset: float) -> Unary:
    """Return the layer of x + offset."""
    return Unary("BinaryOp", {0: 0, 1: 1, 2: float(offset)})


def rounding_layers(scale: float) -> list[Unary]:
    """Return the layers that round to a multiple of `scale`, ties to even."""
    return [scale_layer(1 / scale), Unary("UnaryOp", {0: 18}), scale_layer(scale)]
