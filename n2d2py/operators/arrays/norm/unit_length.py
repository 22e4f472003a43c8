"""Division by the length along an axis, which exporters spell out: what PyTorch's `normalize` and TensorFlow's `l2_normalize` become.

Div(x, n)     n: ReduceL2(x), or Sqrt of ReduceSumSquare(x) or of ReduceSum of x * x; of one axis, kept
              ... not less than a constant up to `_SMALL`, by Clip or Max
              ... expanded to the shape of x
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from n2d2py.frontend.onnx.contract import OnnxNode
from n2d2py.operators.arrays.norm.op import ArrayNorm
from n2d2py.operators.arrays.values import Arrays
from n2d2py.operators.normalize import SMALLEST_NORM, Normalize

_SMALL = 1e-6
"""The largest floor of a length that is taken for one against division by zero."""


@dataclass(frozen=True)
class UnitLength:
    """x divided by its length along an axis, which is `floor` at least."""

    x: str
    axis: int
    floor: float


def unit_length(a: Arrays) -> UnitLength | None:
    """What a Div of an ONNX file does, where it is such a division; else None."""
    x, divisor = a.node.inputs
    below = _maker(a, divisor, "Expand")
    if below is not None:
        divisor = below.inputs[0]
    floor, below = 0.0, _maker(a, divisor, "Clip", "Max")
    if below is not None:
        found = _floor(a, below)
        if found is None or not 0 <= found <= _SMALL:
            return None
        divisor, floor = next(name for name in below.inputs if name and name not in a.builder.constants), found
    axis = _axis_of_length(a, x, divisor)
    return None if axis is None else UnitLength(x, axis, floor)


def divided_by_length(a: Arrays) -> bool:
    """Imports a Div that is such a division; False where it is none, or its axis is neither that of the channels nor the last longer than 1."""
    found = unit_length(a)
    if found is None:
        return False
    builder, dims = a.builder, a.builder.dims_of(found.x)
    if found.axis == 1 and len(dims) in (2, 4) and dims[0] == 1:
        builder.layer(a.node, Normalize("L2"), [builder.plane(found.x)])
        return True
    if (found.axis == 0 and len(dims) > 1) or any(size != 1 for size in dims[found.axis + 1 :]):
        return False
    lines = a.reshape(builder.value(found.x), dims[: found.axis + 1])
    size = lines.dims[-1]
    made = a.add(ArrayNorm(lines.size // size, size, SMALLEST_NORM**2 / size, False), [lines], lines.dims, label="unit")
    a.bind(a.reshape(a.map("Mul", made, a.const(np.full(size, 1 / sqrt(size)), lines)), dims))
    return True


def _maker(a: Arrays, tensor: str, *kinds: str) -> OnnxNode | None:
    """The node that writes an ONNX tensor, where it is of one of these kinds."""
    node = a.builder.writers.get(tensor)
    if node is None or node.op_type not in kinds or node.domain not in ("", "ai.onnx"):
        return None
    return OnnxNode(node, a.builder)


def _floor(a: Arrays, one: OnnxNode) -> float | None:
    """What a Clip without upper end, or a Max of two, gives at least; None for others."""
    if one.type == "Max":
        given = [index for index in range(len(one.inputs)) if one.is_constant(index)]
        if len(one.inputs) != 2 or len(given) != 1:
            return None
        low = one.constant(given[0], "floor")
    else:
        if one.has(2) or one.attribute("max") is not None:
            return None
        if one.has(1) and not one.is_constant(1):
            return None
        low = np.asarray(one.constant(1, "floor") if one.has(1) else one.attribute("min", 0.0))
    return float(low.item()) if low.size == 1 else None


def _axis_of_length(a: Arrays, x: str, length: str) -> int | None:
    """The axis along which an ONNX tensor is the length of another; None where it is not."""
    node = _maker(a, length, "ReduceL2", "Sqrt")
    if node is not None and node.type == "Sqrt":
        node = _maker(a, node.inputs[0], "ReduceSum", "ReduceSumSquare")
        if node is not None and node.type == "ReduceSum":
            square = _maker(a, node.inputs[0], "Mul", "Pow")
            if square is None or not _is_square(square, x):
                return None
            x = node.inputs[0]
    if node is None or node.inputs[0] != x or not a.builder.is_tensor(x):
        return None
    rank = len(a.builder.dims_of(x))
    if not node.attribute("keepdims", 1) or (node.has(1) and not node.is_constant(1)):
        return None
    match node.axes(rank):
        case [axis]:
            return axis
    return None


def _is_square(node: OnnxNode, x: str) -> bool:
    """Whether a Mul or Pow makes the square of a tensor."""
    if node.type == "Mul":
        return node.inputs == [x, x]
    return node.inputs[0] == x and node.is_constant(1) and bool(np.all(node.constant(1, "exponent") == 2))
