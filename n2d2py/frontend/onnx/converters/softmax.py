"""Softmax and LogSoftmax; over another axis than channels between transpositions."""

from __future__ import annotations

from math import prod

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.frontend.onnx.converters.orientation import channels_first
from n2d2py.operators.softmax import Softmax
from n2d2py.operators.transpose import Transpose

__all__ = ["CONVERTERS"]


def _softmax(node: OnnxNode, builder: Builder) -> None:
    _normalise(node, builder, Softmax(log=node.type == "LogSoftmax"))


def _normalise(node: OnnxNode, builder: Builder, op: Softmax) -> None:
    shape = node.shape()
    flattens = node.opset < 13
    axis = node.axis_of(node.attribute("axis", 1 if flattens else -1), len(shape))
    source, permutation = channels_first(node.tensor(), builder.graph)
    if flattens and prod(shape[axis:]) != shape[axis]:
        raise Unsupported(
            f"it normalises over all axes from {axis} on together", "export with opset 13 or newer, where Softmax has one axis"
        )
    if axis == 1:
        builder.layer(node, op, [node.tensor()])
    elif axis == 0:
        raise Unsupported("it normalises over the batch", "normalise over another axis")
    elif permutation[axis] == 1:
        result = builder.layer(node, op, [source], part="channels")
        builder.layer(node, Transpose(permutation), [result])
    else:
        swap = list(range(len(shape)))
        swap[1], swap[axis] = axis, 1
        turned = builder.layer(node, Transpose(tuple(swap)), [node.tensor()], part="turned")
        result = builder.layer(node, op, [turned], part="channels")
        builder.layer(node, Transpose(tuple(swap)), [result])


CONVERTERS = {"Softmax": _softmax, "LogSoftmax": _softmax}
