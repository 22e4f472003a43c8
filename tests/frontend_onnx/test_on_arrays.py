"""Operators on tensors that are no images, against ONNX Runtime: other ranks, other axes, constants among the operands."""

from __future__ import annotations

from support.onnx_array_forms import BODIES, OTHER_SETS, model
from support.tables import every


@every(
    ("opset", "body"),
    [(17, body) for body in BODIES.values()] + [(opset, body) for (opset, _), body in OTHER_SETS.items()],
    ids=[*BODIES, *(f"{case}, set {opset}" for opset, case in OTHER_SETS)],
)
def test_of_five_axes(check, opset, body):
    check(model(opset, body))
