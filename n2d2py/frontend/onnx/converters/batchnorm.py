"""BatchNormalization with stored statistics."""

from __future__ import annotations

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported
from n2d2py.operators.batchnorm import BatchNorm

__all__ = ["CONVERTERS"]

_ROLES = ("scale", "bias", "mean", "variance")


def _batchnorm(node: OnnxNode, builder: Builder) -> None:
    params = {role: node.constant(index, role) for index, role in enumerate(_ROLES, 1)}
    channels = node.require_rank(2, 3, 4)[1]
    if node.attribute("training_mode", 0):
        raise Unsupported("it is in training mode", "export the model for inference")
    if not node.attribute("spatial", 1):
        raise Unsupported("its statistics are per position (spatial=0)", "export with a newer opset")
    node.require_single_output()
    if any(array.size != channels for array in params.values()):
        raise Unsupported("its parameters are not one value per channel")
    epsilon = float(node.attribute("epsilon", 1e-5))
    if float(params["variance"].min()) + epsilon <= 0:
        raise Unsupported("a variance plus epsilon is not positive", "check the training and the export")
    builder.layer(node, BatchNorm(epsilon), [node.tensor()], {role: array.reshape(-1) for role, array in params.items()})


CONVERTERS = {"BatchNormalization": _batchnorm}
