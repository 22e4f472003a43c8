"""Quantized network as a QDQ ONNX model: float operators between DequantizeLinear and QuantizeLinear.

Every quantized tensor T becomes three: the float result of its layer, `T_quantized` (QuantizeLinear) and T itself
(DequantizeLinear). Runtimes fuse DequantizeLinear, operator and QuantizeLinear to integer kernels. Weights are stored as
integers with the scales that reproduce the tool's factors: s_w = factor s_y / s_x.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx.version_converter
from onnx import TensorProto, helper

from n2d2py.arithmetic import NumType
from n2d2py.contracts.quant.quantizer import QUANTIZERS
from n2d2py.contracts.reference import NoOnnxForm, OnnxWriter
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.exports.model_file import RealWeights, real_weights
from n2d2py.exports.onnx.parameters import OnnxParameters
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode, Tensor, Weighted

_INT4 = (-8, 7)


class QdqWriter(OnnxWriter):
    """Writer of float layers with QuantizeLinear and DequantizeLinear between them.

    Attributes:
        read: by tensor of the network, the name of the float tensor that its consumers read.
        stored: by quantized tensor, the name of its integers in the model.
        wide: True if some integers have 4 or 16 bits.
        weighted: layers with integer constants, in some only the bias.
        model: what `write_model` makes of it.
        constants: integer weights and bias of the layer that `write` writes, if any.
    """

    model: onnx.ModelProto
    constants: RealWeights | None = None

    def __init__(self, graph: QuantGraph, parameters: OnnxParameters):
        self.quant, self.parameters = graph, parameters
        super().__init__(_real_graph(graph))
        self.read: dict[str, str] = {}
        self.stored: dict[str, str] = {}
        self.wide = False
        self.weighted = 0

    def ports(self, inputs: bool) -> list[onnx.ValueInfoProto]:
        """Return the inputs or the outputs of the model, with a free batch."""
        ports = []
        for name in self.quant.inputs if inputs else self.quant.outputs:
            kind = self.quant.type(name)
            if kind.plain:
                dtype = np.dtype(self.graph.tensors[name].kind or kind.dtype)
            else:
                dtype = kind.dtype if kind.is_float or self.parameters.integer_io else np.dtype(np.float32)
            element = self.element(dtype)
            ports.append(helper.make_tensor_value_info(name, element, ["N", *self.quant.shape(name)[1:]]))
        return ports

    def input(self, name: str) -> None:
        """Write the conversion of a model input to the tensor that layers read."""
        kind = self.quant.type(name)
        if self.is_real(name) or self.stays_real(name):
            self.read[name] = name
        elif self.parameters.integer_io:
            self._note(name, kind, name)
            self.read[name] = self.emit("DequantizeLinear", [name, *self._grid(kind)], self._dequantized(name))
        else:
            self.read[name] = self._dequantized(name)
            self._quantize(self._limit(name, kind, kind.qmin, kind.qmax), name, kind, self.read[name], kind.qmin)

    def is_real(self, name: str) -> bool:
        """True if a tensor is not quantized: real numbers, positions, Booleans."""
        kind = self.quant.type(name)
        return kind.is_float or kind.plain

    def stays_real(self, name: str) -> bool:
        """True if a 16-bit tensor is not quantized in the model: it is unused, or in an 8-bit network, where it only avoids
        rounding. Integer model outputs are always quantized."""
        outside = name in self.quant.inputs or name in self.quant.outputs
        if self.is_real(name) or self.quant.type(name).bits == 8 or (outside and self.parameters.integer_io):
            return False
        return self.quant.bits == 8 or (name in self.quant.outputs and not self.quant.consumers(name))

    def result(self, node: QuantNode, name: str, real: str) -> None:
        """Write the limits and the quantization of a result."""
        kind = self.quant.type(name)
        low, high = node.clamp or (kind.qmin, kind.qmax)
        limited = self._limit(real, kind, low, high)
        if self.stays_real(name):
            self.read[name] = self.emit("Identity", [limited], name)
            return
        integer = name in self.quant.outputs and self.parameters.integer_io
        self.read[name] = self._dequantized(name) if integer else name
        self._quantize(limited, name, kind, self.read[name], low, integer)

    def _limit(self, real: str, kind: NumType, low: int, high: int) -> str:
        """Return the values limited to the integers `low` to `high`, unless QuantizeLinear already saturates there."""
        least, most = _full_range(kind)
        below = low > least and not _is_narrow(kind, low)  # else `_quantize` limits them
        if not below and high == most:
            return real
        if below and low == kind.zero_point and high == most:
            return self.emit("Relu", [real])
        limits = (np.float32(limit - kind.zero_point) * np.float32(kind.scale) for limit in (low, high))
        return self.emit("Clip", [real, *(self.constant(limit) for limit in limits)])

    def _quantize(self, real: str, name: str, kind: NumType, output: str, low: int, integer: bool = False) -> None:
        scale, zero = self._grid(kind)
        stored = name if integer else self.fresh(f"{name}_quantized")
        if _is_narrow(kind, low):
            free = self.emit("QuantizeLinear", [real, scale, zero])
            limits = [self.exact(np.array(limit, kind.dtype)) for limit in (low, -low)]
            self.emit("Clip", [free, *limits], stored)
        else:
            self.emit("QuantizeLinear", [real, scale, zero], stored)
        self._note(name, kind, stored)
        self.emit("DequantizeLinear", [stored, scale, zero], output)

    def _dequantized(self, name: str) -> str:
        return self.alias(name, self.fresh(f"{name}_dequantized"))

    def _note(self, name: str, kind: NumType, stored: str) -> None:
        self.stored[name] = stored
        self.wide |= kind.bits > 8

    def _grid(self, kind: NumType) -> tuple[str, str]:
        scale = self.exact(np.array(kind.scale, np.float32), "scale")
        return scale, self.exact(np.array(kind.zero_point, kind.dtype), "zero_point")

    def alias(self, name: str, other: str) -> str:
        """Declare `other` with the shape of the tensor `name`."""
        if other not in self.graph.tensors:
            self.graph.tensors[other] = replace(self.graph.tensors[name], name=other)
        return other

    def weights(self, node: Node, ordered: Callable[[np.ndarray], np.ndarray] | None = None, axis: int | None = 0) -> str:
        """Write integer weights and their scale, per tensor or along `axis`; floats if they have no axis."""
        real = self.constants
        if real is None or (axis is None and len(real.scales) > 1):
            return super().weights(node, ordered, axis)
        name, integers = node.name, real.weights if ordered is None else ordered(real.weights)
        fits = integers.min(initial=0) >= _INT4[0] and integers.max(initial=0) <= _INT4[1]
        if self.parameters.int4_weights and integers.dtype == np.int8 and fits:
            stored, element = self.fresh(f"{name}_weights_quantized"), TensorProto.INT4
            values = integers.reshape(-1).astype(int).tolist()
            self.initializers.append(helper.make_tensor(stored, element, integers.shape, values))
            self.wide = True
        else:
            stored = self.exact(np.ascontiguousarray(integers), f"{name}_weights_quantized")
            element = self.element(integers.dtype)
            self.wide |= integers.dtype == np.int16
        return self._dequantized_constant(stored, element, real.scales, axis or 0, f"{name}_weights")

    def bias(self, node: Node) -> str:
        """Write the bias as 32-bit integers and their scale; as floats if they do not fit."""
        real = self.constants
        if real is None:
            return super().bias(node)
        self.weighted += 1
        if real.fractions is not None or np.abs(real.bias).max(initial=0) >= 2**31:
            return super().bias(node)
        stored = self.exact(real.bias.astype(np.int32), f"{node.name}_bias_quantized")
        return self._dequantized_constant(stored, TensorProto.INT32, real.steps, 0, f"{node.name}_bias")

    def _dequantized_constant(self, stored: str, element: int, scales: np.ndarray, axis: int, stem: str) -> str:
        """Return dequantized integers of the ONNX type `element`; zero points are explicit, as some runtimes require."""
        scales = scales.astype(np.float32)
        single = len(scales) == 1
        zeros = self.fresh("zero_point")
        self.initializers.append(helper.make_tensor(zeros, element, () if single else scales.shape, [0] * len(scales)))
        scale = self.exact(scales[0] if single else scales, "scale")
        return self.emit("DequantizeLinear", [stored, scale, zeros], self.fresh(stem), **({} if single else {"axis": axis}))


def _real_graph(graph: QuantGraph) -> Graph:
    """Return the tensors of a quantized network without its layers, for emitters that look up shapes and kinds."""
    real = Graph(graph.name)
    kinds = {name: graph.type(name).name if graph.type(name).plain else "" for name in graph.tensors}
    for node in graph.nodes:  # truth values and bytes have one type there
        outputs = node.op.output_kinds([kinds[name] for name in node.inputs], node)
        kinds.update({name: kind for name, kind in zip(node.outputs, outputs, strict=True) if kind})
    for name in graph.tensors:
        real.tensors[name] = Tensor(name, graph.shape(name), kinds[name])
    real.inputs, real.outputs = list(graph.inputs), list(graph.outputs)
    return real


def _is_narrow(kind: NumType, low: int) -> bool:
    """True if integers from `low` on are signed bytes without -128."""
    return kind.bits == 8 and low == -_full_range(kind)[1]


def _full_range(kind: NumType) -> tuple[int, int]:
    limits = np.iinfo(kind.dtype)
    return int(limits.min), int(limits.max)


_WIDE_OPSET = 21
"""The first opset whose QuantizeLinear has 16- and 4-bit integers."""
_OPSET = 17
"""Opset of the emitters' nodes."""
_FIRST_OPSET = 13
"""The first opset whose QuantizeLinear has a scale for each channel."""


def write_model(graph: QuantGraph, parameters: Mapping[str, Any], metadata: Mapping[str, str]) -> QdqWriter:
    """Return the ONNX model of a quantized network; `metadata` are its properties. Raise E701 for every layer without ONNX
    form; E705 for an opset that lacks a feature."""
    own = OnnxParameters.of(parameters)
    writer = QdqWriter(graph, own)
    _write_layers(writer)
    opset = _choose_opset(own.opset, writer.wide)
    inputs, outputs = writer.ports(True), writer.ports(False)
    network = helper.make_graph(writer.nodes, graph.name or "network", inputs, outputs, writer.initializers)
    writer.model = _build_model(network, opset)
    helper.set_model_props(writer.model, dict(metadata))
    return writer


def _write_layers(writer: QdqWriter) -> None:
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
        for number, written in enumerate(writer.nodes[first:]):
            written.name = f"{node.name}/{written.op_type}" + (f"_{number}" if number else "")
    ErrorList.raise_if(problems)


def _write_layer(writer: QdqWriter, node: QuantNode) -> None:
    inputs = [writer.read[name] for name in node.inputs]
    results = [writer.alias(name, name if writer.is_real(name) else writer.fresh(f"{name}_real")) for name in node.outputs]
    lowering = LOWERINGS.get(node.op.kind)
    if lowering is not None and node.activation is None:
        lowering(writer, node, inputs, results[0])
    else:
        weighted = real_weights(writer.quant, node) if isinstance(node.form, Weighted) else None
        params = real_params(writer.quant, node, weighted)
        writer.constants = weighted
        writer.write(Node(node.name, node.op, inputs, results, params, node.activation))
    for name, result in zip(node.outputs, results, strict=True):
        writer.read[name] = result
        if not writer.is_real(name):
            writer.result(node, name, result)


def _choose_opset(requested: int, wide: bool) -> int:
    if 0 < requested < _FIRST_OPSET:
        what = f"Opset={requested} does not support per-channel QuantizeLinear"
        raise N2D2Error("E705", what, remedy=f"use Opset={_FIRST_OPSET} to 23, or 0")
    if requested and wide and requested < _WIDE_OPSET:
        remedy = f"use Opset={_WIDE_OPSET}, or -nbbits 8 with -input-bits 8 -output-bits 8 and without Int4Weights"
        raise N2D2Error("E705", f"Opset={requested} does not support 4-bit and 16-bit integers", remedy=remedy)
    return requested or (_WIDE_OPSET if wide else _OPSET)


def _build_model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    written = min(opset, _OPSET)  # operators of fewer types before; the checker sees what an older version lacks
    opsets = [helper.make_opsetid("", written)]
    try:
        ir_version = helper.find_min_ir_version_for([helper.make_opsetid("", opset)])
        model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version, producer_name="n2d2py")
        if opset > written:
            model = onnx.version_converter.convert_version(model, opset)
            model.ir_version = ir_version
        onnx.checker.check_model(model, full_check=True)
    except (RuntimeError, ValueError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
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
