"""How ONNX Runtime takes elements at positions that the network computes."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, operands
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter


@onnx_emitter("ArrayGather")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    """Element by element; a line that all of its elements are taken from is named once for each of them."""
    op = node.op
    if min(op.slots) < 0:
        raise NoOnnxForm("a constant whose elements are chosen has no ONNX form")
    chosen = (op.outer, op.count, op.inner)
    x, lines = operands(writer, node, ((op.outer, op.size, op.inner), chosen if op.each else (1, op.count, 1)))
    lines = writer.emit("Cast", [lines], to=writer.element(np.int64))
    if not op.each:
        lines = writer.emit("Expand", [lines, writer.constant([1, *chosen])])
    flat(writer, writer.emit("GatherElements", [x, lines], axis=2), output)
