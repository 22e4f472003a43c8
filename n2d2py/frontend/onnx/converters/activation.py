"""Activation functions as layers."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.onnx.builder import Builder
from n2d2py.frontend.onnx.node import OnnxNode
from n2d2py.frontend.onnx.registry import Unsupported
from n2d2py.graph.shapes import channels
from n2d2py.operators import (
    Abs,
    Activation,
    Affine,
    Clip,
    ElemWise,
    Elu,
    Erf,
    Exp,
    Function,
    Gelu,
    GeluTanh,
    HardSigmoid,
    HardSwish,
    LeakyRectifier,
    Log,
    Logistic,
    Mish,
    Softplus,
    Softsign,
    Sqrt,
    Step,
    Tanh,
)

__all__ = ["CONVERTERS"]


def _apply(function: Function):
    def convert(node: OnnxNode, builder: Builder) -> None:
        builder.layer(node, Activation(function), [node.tensor()])

    return convert


def _clip(node: OnnxNode, builder: Builder) -> None:
    limits = []
    for index, name, default in ((1, "min", -np.inf), (2, "max", np.inf)):
        given = node.optional_constant(index, name)
        value = node.attribute(name, default) if given is None else given.reshape(-1)[0]
        limits.append(float(value))
    low, high = limits
    # exporters write "no limit" as the largest float32
    low = -np.inf if low <= np.finfo(np.float32).min else low
    high = np.inf if high >= np.finfo(np.float32).max else high
    builder.layer(node, Activation(Clip(min(low, high), high)), [node.tensor()])


def _leaky(node: OnnxNode, builder: Builder) -> None:
    builder.layer(node, Activation(LeakyRectifier(float(node.attribute("alpha", 0.01)))), [node.tensor()])


def _prelu(node: OnnxNode, builder: Builder) -> None:
    """One slope: a LeakyRectifier. One per channel, all at most 1: max(x, slope x); else max(x, 0) + slope min(x, 0)."""
    slope, shape, x = node.constant(1, "slope"), node.shape(), node.tensor()
    if slope.size and (slope == slope.flat[0]).all():
        builder.layer(node, Activation(LeakyRectifier(float(slope.flat[0]))), [x])
        return
    if (
        slope.size != shape[1]
        or slope.ndim > len(shape)
        or slope.ndim < len(shape) - 1
        or slope.shape[slope.ndim - len(shape) + 1] != shape[1]
    ):
        raise Unsupported("its slope differs within a channel", "use one slope for each channel")
    params = {"weights": slope.reshape(-1), "bias": np.zeros(slope.size)}
    if slope.max() <= 1:
        builder.layer(node, ElemWise("Max"), [x, builder.layer(node, Affine(), [x], params, part="below")])
        return
    above = builder.layer(node, Activation(Clip(0.0)), [x], part="above")
    negative = builder.layer(node, Activation(Clip(high=0.0)), [x], part="negative")
    below = builder.layer(node, Affine(), [negative], params, part="below")
    builder.layer(node, ElemWise("Sum"), [above, below])


def _hard_sigmoid(node: OnnxNode, builder: Builder) -> None:
    function = HardSigmoid(float(node.attribute("alpha", 0.2)), float(node.attribute("beta", 0.5)))
    builder.layer(node, Activation(function), [node.tensor()])


def _elu(node: OnnxNode, builder: Builder) -> None:
    builder.layer(node, Activation(Elu(float(node.attribute("alpha", 1.0)))), [node.tensor()])


def _selu(node: OnnxNode, builder: Builder) -> None:
    function = Elu(
        float(node.attribute("alpha", 1.67326319217681884765625)), float(node.attribute("gamma", 1.05070102214813232421875))
    )
    builder.layer(node, Activation(function), [node.tensor()])


def _celu(node: OnnxNode, builder: Builder) -> None:
    alpha = float(node.attribute("alpha", 1.0))
    if alpha <= 0:
        raise Unsupported("its alpha is not positive")
    builder.layer(node, Activation(Elu(alpha, 1.0, 1 / alpha)), [node.tensor()])


def _thresholded(node: OnnxNode, builder: Builder) -> None:
    builder.layer(node, Activation(Step(float(node.attribute("alpha", 1.0)), 0.0, None)), [node.tensor()])


def _gelu(node: OnnxNode, builder: Builder) -> None:
    forms = {"none": Gelu(), "tanh": GeluTanh()}
    form = node.attribute("approximate", "none")
    if form not in forms:
        raise Unsupported(f"its approximation is {form}")
    builder.layer(node, Activation(forms[form]), [node.tensor()])


def _neg(node: OnnxNode, builder: Builder) -> None:
    count = channels(node.shape())
    builder.layer(node, Affine(), [node.tensor()], {"weights": np.full(count, -1.0), "bias": np.zeros(count)})


CONVERTERS = {
    "Relu": _apply(Clip(0.0)),
    "Sigmoid": _apply(Logistic()),
    "Tanh": _apply(Tanh()),
    "Softplus": _apply(Softplus()),
    "Clip": _clip,
    "LeakyRelu": _leaky,
    "PRelu": _prelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _apply(HardSwish()),
    "Elu": _elu,
    "Selu": _selu,
    "Celu": _celu,
    "ThresholdedRelu": _thresholded,
    "Gelu": _gelu,
    "Neg": _neg,
    **{
        kind: _apply(function)
        for kind, function in (
            ("Abs", Abs()),
            ("Erf", Erf()),
            ("Exp", Exp()),
            ("Log", Log()),
            ("Mish", Mish()),
            ("Softsign", Softsign()),
            ("Sqrt", Sqrt()),
        )
    },
}
