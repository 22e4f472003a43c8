"""The layers whose ONNX form is another one than that of the reference: integer weights, resampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from n2d2py.exports.onnx.writer import QdqWriter
from n2d2py.exports.real_weights import real_weights
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Weighted
from n2d2py.reference.contract import NoOnnxForm

Lowering = Callable[[QdqWriter, QuantNode, list[str], str], None]
"""Writes the nodes of a layer on the real numbers of its inputs, so that the result has the given name."""


def real_params(graph: QuantGraph, node: QuantNode) -> dict[str, np.ndarray]:
    """The constants of a layer as its operator on real numbers knows them."""
    if graph.is_float(node):
        return dict(node.params)
    if not isinstance(node.form, Weighted):
        return {}
    real = real_weights(graph, node, True)
    along = real.scales.reshape(-1, *(1,) * (real.weights.ndim - 1))
    bias = (real.bias + (0 if real.fractions is None else real.fractions)) * real.steps
    return {"weights": (real.weights * along).astype(np.float32), "bias": bias.astype(np.float32)}


def _conv(writer: QdqWriter, node: QuantNode, inputs: list[str], output: str) -> None:
    op, real = node.op, real_weights(writer.quant, node, True)
    x, pads = writer.padded(inputs[0], op.pads, None)
    weights = writer.weights(node.name, real.weights, real.scales, 0)
    writer.emit(
        "Conv",
        [x, weights, writer.bias(node.name, real.bias, real.fractions, real.steps)],
        output,
        kernel_shape=list(real.weights.shape[2:]),
        strides=list(op.stride),
        pads=pads,
        dilations=list(op.dilation),
        group=op.groups,
    )


def _fc(writer: QdqWriter, node: QuantNode, inputs: list[str], output: str) -> None:
    real, x = real_weights(writer.quant, node, True), inputs[0]
    if len(writer.graph.shape(x)) > 2:
        x = writer.emit("Flatten", [x], axis=1)
    rows = real.weights.reshape(len(real.bias), -1)
    weights = writer.weights(node.name, rows, real.scales, 0)
    writer.emit("Gemm", [x, weights, writer.bias(node.name, real.bias, real.fractions, real.steps)], output, transB=1)


def _deconv(writer: QdqWriter, node: QuantNode, inputs: list[str], output: str) -> None:
    """ONNX has the weights as (inputs, outputs of a group, H, W): scales by output have an axis there without groups, or with one
    output in each; else the weights are real."""
    op, real = node.op, real_weights(writer.quant, node, False)
    outputs, per_group, kh, kw = real.weights.shape
    by_group = outputs // op.groups
    added = [max(0, -pad) for pad in op.pads]
    if added[0] or added[1] or any(a >= s for a, s in zip(added[2:], op.stride, strict=True)):
        raise NoOnnxForm(f"the negative pads of layer {node.name} are too large for an ONNX ConvTranspose")

    def ordered(values: np.ndarray) -> np.ndarray:
        grouped = values.reshape(op.groups, by_group, per_group, kh, kw).transpose(0, 2, 1, 3, 4)
        return grouped.reshape(op.groups * per_group, by_group, kh, kw)

    if len(real.scales) == 1 or op.groups == 1 or (by_group, per_group) == (1, 1):
        weights = writer.weights(node.name, ordered(real.weights), real.scales, 1 if op.groups == 1 else 0)
    else:
        weights = writer.constant(
            ordered(real.weights * real.scales.reshape(-1, 1, 1, 1)).astype(np.float32), f"{node.name}_weights"
        )
    writer.emit(
        "ConvTranspose",
        [inputs[0], weights, writer.bias(node.name, real.bias, real.fractions, real.steps)],
        output,
        kernel_shape=[kh, kw],
        strides=list(op.stride),
        pads=[max(0, pad) for pad in op.pads],
        dilations=list(op.dilation),
        group=op.groups,
        output_padding=added[2:],
    )


def _resize(writer: QdqWriter, node: QuantNode, inputs: list[str], output: str) -> None:
    """Resize, where its float32 coordinates are those of the tool; else positions or matrices."""
    op, shape = node.op, writer.graph.shape(inputs[0])
    scales = [np.float32(m / n) for n, m in zip(shape[2:], op.size, strict=True)]
    if not all(
        int(np.float32(n) * scale) == m and _same_positions(op, n, m, scale)
        for n, m, scale in zip(shape[2:], op.size, scales, strict=True)
    ):
        writer.write(Node(node.name, op, inputs, [output]))
        return
    writer.emit(
        "Resize",
        [inputs[0], "", writer.constant(np.array([1, 1, *scales], np.float32), "scales")],
        output,
        mode="nearest" if op.mode == "Nearest" else "linear",
        coordinate_transformation_mode=_COORDINATES["Asymmetric" if op.mode == "Nearest" else op.coordinates],
        nearest_mode="floor",
    )


_COORDINATES = {"HalfPixel": "half_pixel", "AlignCorners": "align_corners", "Asymmetric": "asymmetric"}


def _same_positions(op, inputs: int, outputs: int, scale: np.float32) -> bool:
    """Whether the nearest positions by a float32 scale are those of the tool; between positions a last bit is no matter."""
    if op.mode != "Nearest":
        return True
    found = np.floor(np.arange(outputs, dtype=np.float32) / scale).astype(np.int64)
    return bool(np.array_equal(found, op.taps(inputs, outputs)[0]))


WEIGHTED: dict[str, Lowering] = {"Conv": _conv, "Deconv": _deconv, "Fc": _fc}
"""The layers whose weights stay integers; others have real weights that stand on the grid of the integers."""

OTHERS: dict[str, Lowering] = {"Resize": _resize}
"""The layers that are written otherwise than for the reference, which takes pains to be exact: runtimes know these nodes."""
