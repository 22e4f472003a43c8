"""How ONNX Runtime computes functions of arrays, element by element."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.arrays.base import kind_dtype
from n2d2py.operators.arrays.emitting import flat, operands
from n2d2py.operators.arrays.map.op import COMPARISONS, SAME_AS_ONNX
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter

_SAME = (*SAME_AS_ONNX, *COMPARISONS, "Div", "Pow", "Max", "Min", "Where", "IsNaN")
"""Functions that ONNX has under the same name."""
_ON_TRUTH = ("And", "Or", "Xor", "Not")


@onnx_emitter("ArrayMap")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    kinds = [writer.graph.kind(name) for name in node.inputs]
    if op.function in _ON_TRUTH and any(kind != "bool" for kind in kinds):
        raise NoOnnxForm(f"{op.function} of numbers has no ONNX form")
    if op.function == "Cast":
        flat(writer, writer.emit("Cast", operands(writer, node, op.shapes), to=writer.element(kind_dtype(op.result))), output)
        return
    if op.function in ("Div", "Mod") and op.result and not np.all(node.params.get("operand1", 0)):
        raise NoOnnxForm("ONNX Runtime stops at a whole number divided by 0")
    if op.function == "Mod" and op.result not in ("", "bool"):
        flat(writer, writer.emit("Mod", operands(writer, node, op.shapes)), output)
        return
    if op.function not in _SAME:
        raise NoOnnxForm(f"the function {op.function} of arrays has no ONNX form")
    flat(writer, writer.emit(op.function, operands(writer, node, op.shapes)), output)
