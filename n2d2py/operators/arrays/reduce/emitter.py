"""How ONNX Runtime reduces arrays."""

from __future__ import annotations

from n2d2py.graph import Node
from n2d2py.operators.arrays.emitting import flat, shaped
from n2d2py.reference.contract import OnnxWriter, onnx_emitter


@onnx_emitter("ArrayReduce")
def _emit(writer: OnnxWriter, node: Node, output: str) -> None:
    op = node.op
    x, axes = shaped(writer, node.inputs[0], op.dims), [axis + 1 for axis in op.axes]
    if op.function.startswith("Arg"):
        made = writer.emit(op.function[:6], [x], axis=axes[0], keepdims=1, select_last_index=int(op.function.endswith("Last")))
    elif op.function == "Sum":
        made = writer.emit("ReduceSum", [x, writer.constant(axes)], keepdims=1)
    else:
        made = writer.emit(f"Reduce{op.function}", [x], axes=axes, keepdims=1)
    flat(writer, made, output)
