"""Operators that change nothing at inference: Identity, Dropout, Cast between floating-point types."""

from __future__ import annotations

from onnx import TensorProto

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.operators.identity import Dropout, Identity

__all__ = ["CONVERTERS"]

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _identity(node: OnnxNode, builder: Builder) -> None:
    builder.layer(node, Identity(), [node.tensor()])


def _dropout(node: OnnxNode, builder: Builder) -> None:
    node.require_single_output()
    if node.has(2) and bool(node.constant(2, "training mode").reshape(-1)[0]):
        raise Unsupported("it is in training mode", "export the model for inference")
    ratio = node.attribute("ratio", 0.5)
    if node.is_constant(1):
        ratio = node.constant(1, "ratio").reshape(-1)[0]
    builder.layer(node, Dropout(float(ratio)), [node.tensor()])


def _cast(node: OnnxNode, builder: Builder) -> None:
    target = node.attribute("to")
    if target not in _FLOATS:
        raise Unsupported(
            f"it casts to {TensorProto.DataType.Name(target)}, which changes values",
            "keep the tensors of the network in floating point",
        )
    builder.layer(node, Identity(), [node.tensor()])


CONVERTERS = {"Identity": _identity, "Dropout": _dropout, "Cast": _cast}
