"""A separate constant for every element, added or multiplied: a per-point operand of the SDP.

ONNX gives such layers vectors. A map that is made a vector and a map again stays where it lies, as the elements keep their
order: channels, lines, columns.
"""

from __future__ import annotations

import numpy as np

from n2d2py.graph import QuantNode
from n2d2py_nvdla.export.arithmetic import Post
from n2d2py_nvdla.export.lowering import Lowering, chw, lowering, refuse

_IN_PLACE = ("Convert", "Activation", "Identity", "Dropout")


def reads_in_place(state: Lowering, node: QuantNode, shape: tuple[int, int, int]) -> bool:
    """True if a layer reads a vector that lies in memory as a map of (C, H, W), and so do those after it."""
    if node.op.kind == "Fc":
        return True
    if node.op.kind == "Reshape":
        return chw(state.graph.shape(node.output)) == shape
    if node.op.kind not in _IN_PLACE and (node.op.kind != "ArrayMap" or _constant(node, shape) is None):
        return False
    readers = state.readers.get(node.output, [])
    ends = node.output in state.graph.outputs
    return bool(readers) and not ends and all(reads_in_place(state, reader, shape) for reader in readers)


def _constant(node: QuantNode, shape: tuple[int, int, int]) -> np.ndarray | None:
    """Return the constant operand of a sum, difference or product with one tensor, by element; None for another layer."""
    op = node.op
    if op.function not in ("Add", "Sub", "Mul") or sorted(op.slots) != [-1, 0] or int(np.prod(op.dims)) != int(np.prod(shape)):
        return None
    constant = node.params[f"operand{op.slots.index(-1)}"].astype(np.float64)
    return np.broadcast_to(constant.reshape(op.shapes[op.slots.index(-1)]), op.dims).reshape(shape)


@lowering("ArrayMap", in_bytes=True)
def _map(state: Lowering, node: QuantNode) -> None:
    value, op = state.values[node.inputs[0]], node.op
    constant = _constant(node, value.region.shape)
    if constant is None:
        raise refuse(
            node, f"{op.function} of vectors", "use a sum, difference or product with a constant, or give it feature maps"
        )
    unit = value.scale if state.integer else 1.0
    sign = -1.0 if op.function == "Sub" and op.slots[0] == -1 else 1.0
    after = None
    if op.function == "Mul":
        gain = unit * constant
        peak = float(np.max(np.abs(constant))) * value.scale
    else:
        gain, after = np.array([unit * sign]), constant if op.function == "Add" or sign < 0 else -constant
        peak = value.scale + float(np.max(np.abs(constant))) / 127
    scale = state.scale_or(node.output, peak)
    post = Post(gain, None, scale, after=after)
    post = state.activated(node, post, None if state.integer else node.activation, node.clamp)
    state.from_memory(node, node.output, value.region, post)
