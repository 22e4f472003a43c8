"""Layers with infinite results for a zero, or a number rounded to it: divisions, logarithms, negative powers."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.operators.activation import Activation
from n2d2py.operators.arrays.map import ArrayMap


def function_name(node: Node) -> str:
    """Return the element-wise function that a layer computes, as ArrayMap names it; "" for any other layer."""
    if isinstance(node.op, Activation):
        return node.op.function.kind
    return node.op.function if isinstance(node.op, ArrayMap) else ""


def divisor_tensor(node: Node) -> str | None:
    """Return the tensor that a layer divides by or takes the logarithm of; None for any other layer."""
    function, op = function_name(node), node.op
    if function in ("Log", "Reciprocal"):
        return node.inputs[0]
    if function == "Div" and op.slots[1] >= 0:
        return node.inputs[op.slots[1]]
    if function == "Pow" and op.slots == (0, -1) and (node.params["operand1"] < 0).any():
        return node.inputs[0]
    return None
