"""Operators on images, sequences and vectors of a free batch, in all their forms, against ONNX Runtime."""

from __future__ import annotations

from support.onnx_image_forms import BODIES, OTHER_SETS, model
from support.tables import every


@every(
    ("opset", "body"),
    [(17, body) for body in BODIES.values()] + [(opset, body) for (opset, _), body in OTHER_SETS.items()],
    ids=[*BODIES, *(f"{case}, set {opset}" for opset, case in OTHER_SETS)],
)
def test_of_four_axes(check, opset, body):
    check(model(opset, body), batch=1 if "size_" in body else 3)  # sizes are those of the whole tensor
