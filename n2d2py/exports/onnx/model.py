"""Quantized network as a QDQ ONNX model: float operators between DequantizeLinear and QuantizeLinear.

Every quantized tensor T becomes three: the float result of its layer, `T_quantized` (QuantizeLinear) and T itself
(DequantizeLinear). Runtimes fuse DequantizeLinear, operator and QuantizeLinear to integer kernels. Weights are stored as
integers with the scales that reproduce the tool's factors: s_w = factor s_y / s_x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnx import helper

from n2d2py.contracts.quant.quantizer import QUANTIZERS
from n2d2py.contracts.reference import NoOnnxForm
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.exports.onnx.parameters import OnnxParameters
from n2d2py.exports.onnx.writer import QdqWriter
from n2d2py.exports.real_weights import RealWeights, real_weights
from n2d2py.graph import Node, QuantGraph, QuantNode, Weighted

_WIDE_OPSET = 21
"""The first opset whose QuantizeLinear has 16- and 4-bit integers."""
_OPSET = 17
"""Opset of the emitters' nodes."""
_IR_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""The first IR version of an ONNX release with each opset (docs/Versioning.md of ONNX)."""


@dataclass(frozen=True)
class QdqModel:
    """A model and the names of its integers.

    Attributes:
        stored: for each quantized tensor, the name of its integers in the model.
        weighted: layers with integer constants, in some only the bias.
    """

    model: onnx.ModelProto
    stored: Mapping[str, str]
    weighted: int


def write_model(graph: QuantGraph, parameters: Mapping[str, Any], metadata: Mapping[str, str]) -> QdqModel:
    """Return the ONNX model of a quantized network; `metadata` are its properties.

    Raises:
        ErrorList: E701 for every layer without ONNX form; E705 for an opset that lacks a feature.
    """
    own = OnnxParameters.of(parameters)
    writer = QdqWriter(graph, own)
    _write_layers(writer)
    opset = _choose_opset(own.opset, writer.wide)
    inputs, outputs = writer.ports(True), writer.ports(False)
    network = helper.make_graph(writer.nodes, graph.name or "network", inputs, outputs, writer.initializers)
    model = _build_model(network, opset)
    helper.set_model_props(model, dict(metadata))
    return QdqModel(model, writer.stored, writer.weighted)


def _write_layers(writer: QdqWriter) -> None:
    """Write all layers. Raise E701 for every layer without ONNX form."""
    problems: list[N2D2Error] = []
    for name in writer.quant.inputs:
        writer.input(name)
    for node in writer.quant.nodes:
        first = len(writer.nodes)
        try:
            _write_layer(writer, node)
        except NoOnnxForm as reason:
            where = node.location or writer.quant.name
            problems.append(N2D2Error("E701", f"{reason}", where=where, remedy="use -export CPP, or replace the layer"))
            writer.read.update({name: name for name in node.outputs})
        writer.name_nodes(node.name, first)
    ErrorList.raise_if(problems)


def _write_layer(writer: QdqWriter, node: QuantNode) -> None:
    """Write a layer on the dequantized inputs, and the quantization of its outputs."""
    inputs = [writer.read[name] for name in node.inputs]
    results = [writer.alias(name, name if writer.is_real(name) else writer.fresh(f"{name}_real")) for name in node.outputs]
    lowering = LOWERINGS.get(node.op.kind)
    if lowering is not None and node.activation is None:
        lowering(writer, node, inputs, results[0])
    else:
        weighted = real_weights(writer.quant, node) if isinstance(node.form, Weighted) else None
        params = real_params(writer.quant, node, weighted)
        writer.layer(Node(node.name, node.op, inputs, results, params, node.activation), weighted)
    for name, result in zip(node.outputs, results, strict=True):
        writer.read[name] = result
        if not writer.is_real(name):
            writer.result(node, name, result)


def _choose_opset(requested: int, wide: bool) -> int:
    """Return the opset. Raise E705 for an opset that lacks a feature of the model."""
    if requested and not min(_IR_VERSIONS) <= requested:
        what = f"Opset={requested} does not support per-channel QuantizeLinear"
        raise N2D2Error("E705", what, remedy=f"use Opset={min(_IR_VERSIONS)} to 23, or 0")
    if requested and wide and requested < _WIDE_OPSET:
        remedy = f"use Opset={_WIDE_OPSET}, or -nbbits 8 with -input-bits 8 -output-bits 8 and without Int4Weights"
        raise N2D2Error("E705", f"Opset={requested} does not support 4-bit and 16-bit integers", remedy=remedy)
    return requested or (_WIDE_OPSET if wide else _OPSET)


def _build_model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """Return the checked model in the requested opset. Raise E705 for an opset that lacks an operator or a form of it."""
    written = min(opset, _OPSET)  # operators of fewer types before; the checker sees what an older version lacks
    opsets = [helper.make_opsetid("", written)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSIONS[opset], producer_name="n2d2py")
    try:
        if opset > written:
            model = onnx.version_converter.convert_version(model, opset)
            model.ir_version = _IR_VERSIONS[opset]
        onnx.checker.check_model(model, full_check=True)
    except (RuntimeError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        what = f"the model cannot be written in opset {opset} ({' '.join(str(error).split())[:120]})"
        raise N2D2Error("E705", what, remedy=f"use Opset={_WIDE_OPSET}, or 0") from None
    return model


Lowering = Callable[[QdqWriter, QuantNode, list[str], str], None]
"""Function that writes the nodes of a layer on float inputs; the result has the given name."""


def real_params(graph: QuantGraph, node: QuantNode, weighted: RealWeights | None) -> dict[str, np.ndarray]:
    """Return the constants of a layer for its float operator. Raise NoOnnxForm if the integers do not determine them."""
    if graph.is_float(node):
        return dict(node.params)
    if weighted is not None:
        return {"weights": weighted.real_weights, "bias": weighted.real_bias}
    quantizer = QUANTIZERS.get(node.op.kind)
    params = None if quantizer is None else quantizer.real_params(node, graph)
    if params is None:
        raise NoOnnxForm(f"the layer {node.name} ({node.op.kind}) uses integer arithmetic that ONNX does not have")
    return params


def _resize(writer: QdqWriter, node: QuantNode, inputs: list[str], output: str) -> None:
    """Write a Resize if its float32 coordinates equal the tool's; else positions or matrices."""
    op, shape = node.op, writer.graph.shape(inputs[0])
    scales = [np.float32(m / n) for n, m in zip(shape[2:], op.size, strict=True)]
    axes = zip(shape[2:], op.size, scales, strict=True)
    if not all(int(np.float32(n) * scale) == m and _same_positions(op, n, m, scale) for n, m, scale in axes):
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
    """True if the nearest positions by a float32 scale equal the tool's; in interpolation the last bit does not matter."""
    if op.mode != "Nearest":
        return True
    nearest = np.floor(np.arange(outputs, dtype=np.float32) / scale).astype(np.int64)
    return bool(np.array_equal(nearest, op.taps(inputs, outputs)[0]))


LOWERINGS: dict[str, Lowering] = {"Resize": _resize}
"""Layers by operator kind for which runtimes have a simpler node than the exact form of the reference."""
