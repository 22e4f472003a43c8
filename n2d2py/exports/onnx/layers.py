"""What the layers of the model are written from: their real constants, and those whose form is not that of the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from n2d2py.exports.onnx.writer import QdqWriter
from n2d2py.exports.real_weights import RealWeights
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.quant.contract import QUANTIZERS
from n2d2py.reference.contract import NoOnnxForm

Lowering = Callable[[QdqWriter, QuantNode, list[str], str], None]
"""Writes the nodes of a layer on the real numbers of its inputs, so that the result has the given name."""


def real_params(graph: QuantGraph, node: QuantNode, weighted: RealWeights | None) -> dict[str, np.ndarray]:
    """The constants of a layer as its operator on real numbers knows them.

    Raises:
        NoOnnxForm: where its integers do not say them.
    """
    if graph.is_float(node):
        return dict(node.params)
    if weighted is not None:
        return {"weights": weighted.real_weights, "bias": weighted.real_bias}
    quantizer = QUANTIZERS.get(node.op.kind)
    found = None if quantizer is None else quantizer.real_params(node, graph)
    if found is None:
        raise NoOnnxForm(f"the layer {node.name} ({node.op.kind}) uses integer arithmetic that ONNX does not have")
    return found


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


LOWERINGS: dict[str, Lowering] = {"Resize": _resize}
"""By operator kind: layers that are written otherwise than for the reference, which takes pains to be exact; runtimes know these nodes."""
