"""Concat; along another axis than channels between transpositions."""

from __future__ import annotations

from n2d2py.frontend.onnx.contract import Builder, OnnxNode, Unsupported, onnx
from n2d2py.operators.concat import Concat
from n2d2py.operators.identity import Identity
from n2d2py.operators.transpose import Transpose, channels_first


@onnx("Concat")
def _concat(node: OnnxNode, builder: Builder) -> None:
    tensors = [node.tensor(index) for index in range(len(node.inputs))]
    axis = node.axis_of(node.attribute("axis"), len(node.shape()))
    if len(tensors) == 1:
        builder.layer(node, Identity(), tensors)
    elif axis == 1:
        builder.layer(node, Concat(), tensors)
    else:
        seen = [channels_first(tensor, builder.graph) for tensor in tensors]
        permutation = seen[0][1]
        if axis == 0:
            raise Unsupported("it concatenates along the batch axis", "concatenate along another axis")
        if any(p != permutation for _, p in seen) or permutation[axis] != 1:
            _turned(node, builder, tensors, axis)
            return
        joined = builder.layer(node, Concat(), [source for source, _ in seen], part="channels")
        builder.layer(node, Transpose(permutation), [joined])


def _turned(node: OnnxNode, builder: Builder, tensors: list[str], axis: int) -> None:
    """Joins any axis: it changes places with the channels before and after."""
    swap = list(range(len(node.shape())))
    swap[1], swap[axis] = axis, 1
    turned = [
        builder.layer(node, Transpose(tuple(swap)), [tensor], part=f"turned{index}") for index, tensor in enumerate(tensors)
    ]
    joined = builder.layer(node, Concat(), turned, part="channels")
    builder.layer(node, Transpose(tuple(swap)), [joined])
