"""Gemm and MatMul with constant weights."""

from __future__ import annotations

import numpy as np

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.operators.fc import Fc


def _weights(node: OnnxNode) -> np.ndarray:
    """Input 1 as constant matrix."""
    if node.is_constant(0):
        raise Unsupported("its first operand is a constant", "put the weights second")
    weights = node.constant(1, "second operand")
    if weights.ndim != 2:
        raise Unsupported(f"its weights have rank {weights.ndim}, only rank 2 is supported")
    return weights


@onnx("Gemm", images=True)
def _gemm(node: OnnxNode, builder: Builder) -> None:
    weights = _weights(node)
    if node.attribute("transA", 0):
        raise Unsupported("it transposes its input, which mixes samples", "export with transA=0")
    weights = weights if node.attribute("transB", 0) else weights.T
    outputs = weights.shape[0]
    bias = None
    if node.has(2):
        given = node.constant(2, "bias").astype(np.float64)
        if given.size not in (1, outputs) or given.ndim > 2:
            raise Unsupported(f"its bias of shape {list(given.shape)} is not one value per output")
        bias = np.broadcast_to(given.reshape(-1) * node.attribute("beta", 1.0), (outputs,))
    if node.attribute("alpha", 1.0) != 1.0:
        weights = weights.astype(np.float64) * node.attribute("alpha")
    _add(node, builder, weights, bias)


@onnx("MatMul", images=True)
def _matmul(node: OnnxNode, builder: Builder) -> None:
    _add(node, builder, _weights(node).T, None)


def _add(node: OnnxNode, builder: Builder, weights: np.ndarray, bias: np.ndarray | None) -> None:
    node.require_rank(2)
    builder.layer(node, Fc(), [node.tensor()], {"weights": weights, "bias": bias}, weights_at=1)
