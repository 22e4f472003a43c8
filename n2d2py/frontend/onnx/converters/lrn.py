"""LRN."""

from __future__ import annotations

from n2d2py.frontend.onnx.builder import Builder
from n2d2py.frontend.onnx.node import OnnxNode
from n2d2py.frontend.onnx.registry import Unsupported
from n2d2py.graph.shapes import channels
from n2d2py.operators.lrn import LRN, window_within

__all__ = ["CONVERTERS"]


def _lrn(node: OnnxNode, builder: Builder) -> None:
    size = int(node.attribute("size", 0))
    if size < 1:
        raise Unsupported("its size is not positive")
    op = LRN(
        window_within(size, channels(node.shape())),
        float(node.attribute("alpha", 1e-4)) / size,
        float(node.attribute("beta", 0.75)),
        float(node.attribute("bias", 1.0)),
    )
    builder.layer(node, op, [node.tensor()])


CONVERTERS = {"LRN": _lrn}
