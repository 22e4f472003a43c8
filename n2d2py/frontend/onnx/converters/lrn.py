"""LRN."""

from __future__ import annotations

from n2d2py.frontend.onnx.builder import Builder
from n2d2py.frontend.onnx.node import OnnxNode
from n2d2py.frontend.onnx.registry import Unsupported
from n2d2py.graph.shapes import channels
from n2d2py.operators.lrn import LRN, SMALLEST_K, window_within

__all__ = ["CONVERTERS", "settings"]


def _lrn(node: OnnxNode, builder: Builder) -> None:
    size, alpha, beta, bias = settings(node)
    builder.layer(node, LRN(window_within(size, channels(node.shape())), alpha / size, beta, bias), [node.tensor()])


def settings(node: OnnxNode) -> tuple[int, float, float, float]:
    """(size, alpha, beta, bias) of an LRN.

    Raises:
        Unsupported: for an empty window, and where it could divide by 0 or less.
    """
    size, alpha, bias = int(node.attribute("size", 0)), node.attribute("alpha", 1e-4), node.attribute("bias", 1.0)
    if size < 1:
        raise Unsupported("its size is not positive")
    if alpha < 0 or bias < SMALLEST_K:
        raise Unsupported(f"with its alpha of {alpha:g} and its bias of {bias:g} it may divide by 0 or less")
    return size, alpha, node.attribute("beta", 0.75), bias


CONVERTERS = {"LRN": _lrn}
