"""How ONNX Runtime computes an element-wise combination."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ElemWise")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    if op.operation in ("Max", "Min"):
        writer.emit(op.operation, node.inputs, output)
        return
    if op.operation == "Prod":
        _chain(writer, "Mul", node.inputs, output)
        return
    terms = []
    for x, weight, shift in zip(node.inputs, *op.coefficients(len(node.inputs)), strict=True):
        if op.operation == "AbsSum":
            x, shift = writer.emit("Abs", [x]), 0.0
        x = x if weight == 1 else writer.emit("Mul", [x, writer.constant(float(weight))])
        x = x if shift == 0 else writer.emit("Add", [x, writer.constant(float(shift))])
        terms.append(writer.emit("Mul", [x, x]) if op.operation == "EuclideanSum" else x)
    if op.operation == "EuclideanSum":
        writer.emit("Sqrt", [_chain(writer, "Add", terms, writer.fresh(f"{output}_sum"))], output)
    else:
        _chain(writer, "Add", terms, output)


def _chain(writer: OnnxWriter, op_type: str, terms: list[str], output: str) -> str:
    """((t0 op t1) op t2) ..., named `output`."""
    if len(terms) == 1:
        return writer.emit("Identity", terms, output)
    result = terms[0]
    for index, term in enumerate(terms[1:], 2):
        result = writer.emit(op_type, [result, term], output if index == len(terms) else None)
    return result
