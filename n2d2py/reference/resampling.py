"""How transposed convolution, resampling, unpooling and the normalisations are written in ONNX."""

from __future__ import annotations

import numpy as np

from n2d2py.graph import Node
from n2d2py.operators.normalize import SMALLEST_NORM
from n2d2py.reference.contract import NoOnnxForm, OnnxWriter, onnx_emitter

__all__: list[str] = []

_COORDINATES = {"HalfPixel": "half_pixel", "AlignCorners": "align_corners", "Asymmetric": "asymmetric"}


def _deconv(writer: OnnxWriter, node: Node, output: str) -> None:
    op, weights = node.op, node.params["weights"]
    outputs, per_group, kh, kw = weights.shape
    grouped = weights.reshape(op.groups, outputs // op.groups, per_group, kh, kw).transpose(0, 2, 1, 3, 4)
    added = [max(0, -p) for p in op.pads]
    if added[0] or added[1] or any(a >= s for a, s in zip(added[2:], op.stride, strict=True)):
        raise NoOnnxForm(f"the negative pads of layer {node.name} are too large for an ONNX ConvTranspose")
    writer.emit(
        "ConvTranspose",
        [
            node.inputs[0],
            writer.constant(grouped.reshape(op.groups * per_group, outputs // op.groups, kh, kw), f"{node.name}_weights"),
            writer.constant(node.params["bias"], f"{node.name}_bias"),
        ],
        output,
        kernel_shape=[kh, kw],
        strides=list(op.stride),
        pads=[max(0, p) for p in op.pads],
        dilations=list(op.dilation),
        group=op.groups,
        output_padding=added[2:],
    )


def _resize(writer: OnnxWriter, node: Node, output: str) -> None:
    op, shape = node.op, writer.graph.shape(node.inputs[0])
    if op.mode == "Nearest":  # by positions, which no rounding of a scale can change
        rows, columns = (writer.constant(op.taps(n, m)[0]) for n, m in zip(shape[2:], op.size, strict=True))
        writer.emit("Gather", [writer.emit("Gather", [node.inputs[0], rows], axis=2), columns], output, axis=3)
        return
    rows, columns = (
        writer.constant(_matrix(op, n, m), f"{node.name}_weights") for n, m in zip(shape[2:], op.size, strict=True)
    )
    across = writer.emit("MatMul", [node.inputs[0], writer.emit("Transpose", [columns], perm=[1, 0])])
    writer.emit("MatMul", [rows, across], output)


def _matrix(op, inputs: int, outputs: int) -> np.ndarray:
    """float32 (outputs, inputs): the interpolation along an axis as a matrix, free of the runtime's own rounding."""
    first, second, fraction = op.taps(inputs, outputs)
    matrix = np.zeros((outputs, inputs))
    np.add.at(matrix, (np.arange(outputs), first), 1 - fraction)
    np.add.at(matrix, (np.arange(outputs), second), fraction)
    return matrix.astype(np.float32)


def _unpool(writer: OnnxWriter, node: Node, output: str) -> None:
    op, (x, z) = node.op, node.inputs
    size = writer.graph.shape(node.output)
    if any(op.pads) or op.overlaps or size[2:] != writer.graph.shape(z)[2:]:
        raise NoOnnxForm(f"the layer {node.name} unpools padded or overlapping windows, or crops")
    window = {"kernel_shape": list(op.kernel), "strides": list(op.stride)}
    _, places = writer.emit_all("MaxPool", [z], 2, **window)
    writer.emit("MaxUnpool", [x, places], output, **window)


def _normalize(writer: OnnxWriter, node: Node, output: str) -> None:
    x = node.inputs[0]
    norm = writer.emit(f"Reduce{node.op.norm}", [x], axes=[1], keepdims=1)
    writer.emit("Div", [x, writer.emit("Max", [norm, writer.constant(SMALLEST_NORM)])], output)


for _kind, _spelling in {"Deconv": _deconv, "Resize": _resize, "Unpool": _unpool, "Normalize": _normalize}.items():
    onnx_emitter(_kind)(_spelling)
