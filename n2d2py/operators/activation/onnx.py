"""Activation functions that are no functions of single values: slopes per channel, and what becomes a gain."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.graph.shapes import channels
from n2d2py.operators.activation import Activation
from n2d2py.operators.affine import Affine
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.functions import Clip, LeakyRectifier


@onnx("PRelu")
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


@onnx("Neg")
def _neg(node: OnnxNode, builder: Builder) -> None:
    count = channels(node.shape())
    builder.layer(node, Affine(), [node.tensor()], {"weights": np.full(count, -1.0), "bias": np.zeros(count)})
