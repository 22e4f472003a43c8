"""A typed network as an ONNX model: real operators between DequantizeLinear and QuantizeLinear (QDQ).

Every tensor of integers T becomes three: the real result of its layer, `T_quantized` (QuantizeLinear) and T itself, which is
dequantized again (DequantizeLinear). Runtimes fuse DequantizeLinear, operator and QuantizeLinear to their integer kernels. The
weights are stored as integers with the scales for which the factors of the layer are those of the tool: s_w = factor s_y / s_x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnx import helper

from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.exports.onnx.writer import Choices, QdqWriter
from n2d2py.exports.real_weights import RealWeights, real_weights
from n2d2py.graph import Node, QuantGraph, QuantNode
from n2d2py.graph.forms import Weighted
from n2d2py.quant.contract import QUANTIZERS
from n2d2py.reference.contract import NoOnnxForm

_WIDE_OPSET = 21
"""The first whose QuantizeLinear has integers of 16 and 4 bits."""
_OPSET = 17
"""Nodes by the emitters of the operators."""
_IR_VERSIONS = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
"""The first IR version of a release of ONNX with each version of the operators (docs/Versioning.md of ONNX)."""


@dataclass(frozen=True)
class QdqModel:
    """A model and where its integers are.

    Attributes:
        stored: for each tensor of integers that the model quantizes, the name of these integers in it.
        weighted: layers whose constants are integers, of some the bias alone.
    """

    model: onnx.ModelProto
    stored: Mapping[str, str]
    weighted: int


def write_model(graph: QuantGraph, parameters: Mapping[str, Any], metadata: Mapping[str, str]) -> QdqModel:
    """The model of a typed network; `metadata` are its properties.

    Raises:
        ErrorList: E701 for every layer that ONNX cannot say; E705 for a version of the operators that lacks something.
    """
    choices = Choices(bool(parameters.get("IntegerIO")), bool(parameters.get("Int4Weights")))
    writer = QdqWriter(graph, choices)
    _write_layers(writer)
    opset = _opset(parameters.get("Opset", 0), writer.wide)
    made = helper.make_graph(
        writer.nodes, graph.name or "network", writer.ports(True), writer.ports(False), writer.initializers
    )
    model = _model(made, opset)
    helper.set_model_props(model, dict(metadata))
    return QdqModel(model, writer.stored, writer.weighted)


def _write_layers(writer: QdqWriter) -> None:
    """Write everything.

    Raises:
        ErrorList: E701 for every layer without ONNX form.
    """
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
    """A layer on the real numbers of its inputs, and the integers of its outputs."""
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


def _opset(asked: int, wide: bool) -> int:
    """The version of the operators.

    Raises:
        N2D2Error: E705 for one that lacks what the model needs.
    """
    if asked and not min(_IR_VERSIONS) <= asked:
        what = f"Opset={asked} does not support per-channel QuantizeLinear"
        raise N2D2Error("E705", what, remedy=f"use Opset={min(_IR_VERSIONS)} to 23, or 0")
    if asked and wide and asked < _WIDE_OPSET:
        remedy = f"use Opset={_WIDE_OPSET}, or -nbbits 8 with -input-bits 8 -output-bits 8 and without Int4Weights"
        raise N2D2Error("E705", f"Opset={asked} does not support 4-bit and 16-bit integers", remedy=remedy)
    return asked or (_WIDE_OPSET if wide else _OPSET)


def _model(made: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """The model, in the version of the operators that was asked for, checked.

    Raises:
        N2D2Error: E705 for a version that lacks an operator or a form of it.
    """
    written = min(opset, _OPSET)  # operators of fewer types before; the checker sees what an older version lacks
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", written)], ir_version=_IR_VERSIONS[opset], producer_name="n2d2py"
    )
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
    """True if the nearest positions by a float32 scale are those of the tool; between positions a last bit does not matter."""
    if op.mode != "Nearest":
        return True
    found = np.floor(np.arange(outputs, dtype=np.float32) / scale).astype(np.int64)
    return bool(np.array_equal(found, op.taps(inputs, outputs)[0]))


LOWERINGS: dict[str, Lowering] = {"Resize": _resize}
"""By operator kind: layers that are written otherwise than for the reference, which takes pains to be exact; runtimes know these nodes."""
