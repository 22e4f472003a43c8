"""Makes a .tflite file of a QDQ model, so that LiteRT can be timed on the same integers as the other runtimes.

    PYTHON benchmarks/litert_model.py MODEL_qdq.onnx [MODEL.tflite]

PYTHON has onnx, onnxruntime, numpy and ai_edge_litert, whose generated schema writes the file. The model's tensors keep
their scales and zero points (uint8 becomes int8, both less 128), inputs and outputs are int8, batch 1, layout NHWC. Taken are
the operators of image classifiers: Conv, Gemm, Add, Concat, MaxPool, AveragePool, GlobalAveragePool, Flatten and Reshape of 1x1
maps, Relu and Clip; others are refused by name. The command prints how far the outputs are from those of ONNX Runtime.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

__all__ = ["write_litert"]

KEEPS_SCALE = ("Flatten", "Reshape", "MaxPool")
"""Operators whose output may stay in the input's scale."""


@dataclass(frozen=True)
class Quantized:
    """A quantized tensor: values of a constant or None, scale (one or one per index of `axis`), zero points of int8."""

    values: np.ndarray | None
    scale: np.ndarray
    zero: np.ndarray
    axis: int = 0
    index: int = -1


@dataclass(frozen=True)
class Pending:
    """A node whose output is not quantized yet, and the activation behind it."""

    node: onnx.NodeProto
    activation: str = "NONE"


class Converter:
    """One model; `write` returns the bytes of the .tflite file."""

    def __init__(self, model: onnx.ModelProto, schema):
        self.schema = schema
        for port in model.graph.input:
            port.type.tensor_type.shape.dim[0].dim_value = 1
        model = shape_inference.infer_shapes(model)
        self.graph = model.graph
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant":
                self.constants[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        ports = [*self.graph.input, *self.graph.value_info, *self.graph.output]
        self.shapes = {port.name: [axis.dim_value for axis in port.type.tensor_type.shape.dim] for port in ports}
        self.codes: list[str] = []
        self.operators: list = []
        self.tensors: list = []
        self.buffers = [schema.BufferT()]
        self.known: dict[str, Quantized] = {}
        self.pending: dict[str, Pending] = {}

    # ---- parts of the file ---------------------------------------------------------------------
    def _tensor(self, name: str, shape: list[int], quantized: Quantized | None, values: np.ndarray | None = None) -> int:
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape = name, np.array(shape, np.int32)
        kinds = {"int8": "INT8", "int32": "INT32"}
        tensor.type = getattr(self.schema.TensorType, kinds[str(values.dtype) if values is not None else "int8"])
        if quantized is not None:
            numbers = self.schema.QuantizationParametersT()
            numbers.scale = np.atleast_1d(quantized.scale).astype(np.float32)
            numbers.zeroPoint = np.broadcast_to(np.atleast_1d(quantized.zero), numbers.scale.shape).astype(np.int64)
            numbers.quantizedDimension = quantized.axis
            tensor.quantization = numbers
        if values is not None:
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
            tensor.buffer = len(self.buffers)
            self.buffers.append(buffer)
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _operator(self, code: str, inputs: list[int], output: int, options: str, **fields) -> None:
        if code not in self.codes:
            self.codes.append(code)
        operator = self.schema.OperatorT()
        operator.opcodeIndex = self.codes.index(code)
        operator.inputs, operator.outputs = np.array(inputs, np.int32), np.array([output], np.int32)
        operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, options)
        operator.builtinOptions = getattr(self.schema, options + "T")()
        for key, value in fields.items():
            setattr(operator.builtinOptions, key, value)
        self.operators.append(operator)

    @staticmethod
    def _channels_last(shape: list[int]) -> list[int]:
        return [shape[0], *shape[2:], shape[1]] if len(shape) == 4 else list(shape)

    # ---- the graph -----------------------------------------------------------------------------
    def _quantization(self, node: onnx.NodeProto) -> Quantized:
        scale = self.constants[node.input[1]]
        zero = self.constants[node.input[2]] if len(node.input) > 2 else np.zeros_like(scale, np.int8)
        moved = zero.astype(np.int64) - (128 if zero.dtype == np.uint8 else 0)
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
        return Quantized(None, scale, moved, axis if scale.size > 1 else 0)

    def write(self) -> bytes:
        """The file. Raises NotImplementedError for what it does not take."""
        inputs = {port.name for port in self.graph.input} - set(self.constants)
        entries = []
        for node in self.graph.node:
            if node.op_type == "DequantizeLinear":
                self._dequantize(node)
            elif node.op_type == "QuantizeLinear":
                source, quantized = node.input[0], self._quantization(node)
                if source in inputs:
                    index = self._tensor(source, self._channels_last(self.shapes[source]), quantized)
                    entries.append(index)
                    self.known[node.output[0]] = replace(quantized, index=index)
                elif source in self.pending:
                    self.known[node.output[0]] = self._emit(source, quantized)
                else:
                    self.known[node.output[0]] = self.known[source]
            elif node.op_type in ("Relu", "Clip") and node.input[0] in self.pending:
                top = float(self.constants[node.input[2]]) if node.op_type == "Clip" else np.inf
                kind = {6.0: "RELU6", np.inf: "RELU"}[top]
                self.pending[node.output[0]] = replace(self.pending[node.input[0]], activation=kind)
            elif node.op_type != "Constant":
                self.pending[node.output[0]] = Pending(node)
        return self._packed(entries, [self._exit(port.name) for port in self.graph.output])

    def _dequantize(self, node: onnx.NodeProto) -> None:
        values = self.constants.get(node.input[0])
        if values is None:
            self.known[node.output[0]] = self.known[node.input[0]]
            return
        moved = (values.astype(np.int16) - 128).astype(np.int8) if values.dtype == np.uint8 else values
        self.known[node.output[0]] = replace(self._quantization(node), values=moved)

    def _exit(self, name: str) -> int:
        if name in self.pending:
            node = self.pending[name].node
            if node.op_type not in KEEPS_SCALE:
                raise NotImplementedError(f"{name}: the output of {node.op_type} is not quantized")
            return self._emit(name, replace(self.known[node.input[0]], index=-1)).index
        return self.known[name].index

    def _emit(self, name: str, quantized: Quantized) -> Quantized:
        """The operator whose output is `name`."""
        node, activation = self.pending[name].node, self.pending[name].activation
        output = self._tensor(name, self._channels_last(self.shapes[name]), quantized)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        fused = getattr(self.schema.ActivationFunctionType, activation)
        operands = [self.known[source] for source in node.input if source in self.known]
        build = getattr(self, "_" + node.op_type.lower(), None)
        if build is None:
            raise NotImplementedError(f"{node.op_type} ({node.name})")
        build(node, attributes, operands, output, fused)
        return replace(quantized, index=output)

    # ---- operators -----------------------------------------------------------------------------
    def _padded(self, node: onnx.NodeProto, attributes: dict, data: Quantized, extents: list[int]) -> tuple[int, int]:
        """The input of a window operator, behind a PAD where its padding is neither SAME nor VALID; and the padding."""
        name, out = node.input[0], self.shapes[node.output[0]][2:]
        shape, strides = self.shapes[name], attributes.get("strides", [1, 1])
        pads = attributes.get("pads", [0, 0, 0, 0])
        if not any(pads):
            return data.index, self.schema.Padding.VALID
        total = [max((o - 1) * s + e - i, 0) for o, s, e, i in zip(out, strides, extents, shape[2:], strict=True)]
        same = [t // 2 for t in total] + [t - t // 2 for t in total]
        if same == list(pads) and out == [-(-i // s) for i, s in zip(shape[2:], strides, strict=True)]:
            return data.index, self.schema.Padding.SAME
        sides = np.array([[0, 0], [pads[0], pads[2]], [pads[1], pads[3]], [0, 0]], np.int32)
        full = [shape[0], shape[2] + sides[1].sum(), shape[3] + sides[2].sum(), shape[1]]
        index = self._tensor(node.output[0] + "/padded", full, data)
        self._operator("PAD", [data.index, self._tensor(node.output[0] + "/pads", [4, 2], None, sides)], index, "PadOptions")
        return index, self.schema.Padding.VALID

    def _bias(self, name: str, operands: list[Quantized], weights: Quantized, outputs: int) -> int:
        scale = np.atleast_1d(operands[0].scale * weights.scale)
        values = operands[2].values if len(operands) > 2 else np.zeros(outputs, np.int32)
        return self._tensor(name + "/bias", [outputs], Quantized(None, scale, np.int64(0)), values.astype(np.int32))

    def _conv(self, node, attributes, operands, output, fused) -> None:
        data, weights = operands[:2]
        strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
        extents = [(k - 1) * d + 1 for k, d in zip(weights.values.shape[2:], dilations, strict=True)]
        index, padding = self._padded(node, attributes, data, extents)
        outputs, each = weights.values.shape[:2]
        depthwise = attributes.get("group", 1) == outputs and each == 1 and outputs > 1
        values = weights.values.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1))
        numbers = replace(weights, axis=3 if depthwise and weights.scale.size > 1 else 0)
        inputs = [
            index,
            self._tensor(node.output[0] + "/weights", list(values.shape), numbers, values),
            self._bias(node.output[0], operands, weights, outputs),
        ]
        fields = {
            "padding": padding,
            "strideH": strides[0],
            "strideW": strides[1],
            "dilationHFactor": dilations[0],
            "dilationWFactor": dilations[1],
            "fusedActivationFunction": fused,
        }
        if depthwise:
            self._operator("DEPTHWISE_CONV_2D", inputs, output, "DepthwiseConv2DOptions", depthMultiplier=1, **fields)
        else:
            self._operator("CONV_2D", inputs, output, "Conv2DOptions", **fields)

    def _gemm(self, node, attributes, operands, output, fused) -> None:
        data, weights = operands[:2]
        values = weights.values if attributes.get("transB") else weights.values.T
        inputs = [
            data.index,
            self._tensor(node.output[0] + "/weights", list(values.shape), replace(weights, axis=0), values),
            self._bias(node.output[0], operands, weights, len(values)),
        ]
        self._operator("FULLY_CONNECTED", inputs, output, "FullyConnectedOptions", fusedActivationFunction=fused)

    def _add(self, node, attributes, operands, output, fused) -> None:
        self._operator("ADD", [one.index for one in operands], output, "AddOptions", fusedActivationFunction=fused)

    def _concat(self, node, attributes, operands, output, fused) -> None:
        axis = {0: 0, 1: 3, 2: 1, 3: 2}[attributes["axis"] % 4]
        self._operator(
            "CONCATENATION",
            [one.index for one in operands],
            output,
            "ConcatenationOptions",
            axis=axis,
            fusedActivationFunction=fused,
        )

    def _pool(self, code, node, attributes, operands, output, fused) -> None:
        kernel, strides = attributes["kernel_shape"], attributes.get("strides", [1, 1])
        index, padding = self._padded(node, attributes, operands[0], kernel)
        self._operator(
            code,
            [index],
            output,
            "Pool2DOptions",
            padding=padding,
            strideH=strides[0],
            strideW=strides[1],
            filterHeight=kernel[0],
            filterWidth=kernel[1],
            fusedActivationFunction=fused,
        )

    def _maxpool(self, *arguments) -> None:
        self._pool("MAX_POOL_2D", *arguments)

    def _averagepool(self, *arguments) -> None:
        self._pool("AVERAGE_POOL_2D", *arguments)

    def _globalaveragepool(self, node, attributes, operands, output, fused) -> None:
        axes = self._tensor(node.output[0] + "/axes", [2], None, np.array([1, 2], np.int32))
        self._operator("MEAN", [operands[0].index, axes], output, "ReducerOptions", keepDims=True)

    def _flatten(self, node, attributes, operands, output, fused) -> None:
        shape = self.shapes[node.output[0]]
        if np.prod(self.shapes[node.input[0]][2:]) != 1:
            raise NotImplementedError(f"{node.op_type} of a map of several pixels ({node.name})")
        values = self._tensor(node.output[0] + "/shape", [len(shape)], None, np.array(shape, np.int32))
        self._operator("RESHAPE", [operands[0].index, values], output, "ReshapeOptions", newShape=np.array(shape, np.int32))

    _reshape = _flatten

    def _packed(self, entries: list[int], exits: list[int]) -> bytes:
        import flatbuffers

        model, graph = self.schema.ModelT(), self.schema.SubGraphT()
        graph.tensors, graph.operators = self.tensors, self.operators
        graph.inputs, graph.outputs = np.array(entries, np.int32), np.array(exits, np.int32)
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [graph], self.buffers, []
        for name in self.codes:
            code = self.schema.OperatorCodeT()
            code.builtinCode = code.deprecatedBuiltinCode = getattr(self.schema.BuiltinOperator, name)
            code.version = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "RESHAPE": 1}.get(name, 2)
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def write_litert(model: Path, path: Path) -> Path:
    """Writes the QDQ file `model` as the .tflite file `path` and returns that.

    Raises:
        NotImplementedError: an operator, or a place of it, that is not taken.
    """
    from ai_edge_litert import schema_py_generated as schema

    path.write_bytes(Converter(onnx.load(model), schema).write())
    return path


def main() -> None:
    """The command."""
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter

    model = Path(sys.argv[1])
    path = write_litert(model, Path(sys.argv[2]) if len(sys.argv) > 2 else model.with_suffix(".tflite"))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    (entry,), (last,) = interpreter.get_input_details(), interpreter.get_output_details()
    worst, equal, count = 0.0, 0, 0
    for seed in range(10):
        integers = np.random.default_rng(seed).integers(-128, 128, entry["shape"]).astype(np.int8)
        scale, zero = entry["quantization"]
        image = ((integers.astype(np.float32) - zero) * np.float32(scale)).transpose(0, 3, 1, 2)
        interpreter.set_tensor(entry["index"], integers)
        interpreter.invoke()
        scale, zero = last["quantization"]
        ours = (interpreter.get_tensor(last["index"]).astype(np.float32) - zero) * np.float32(scale)
        steps = np.abs(ours.reshape(-1) - session.run(None, {session.get_inputs()[0].name: image})[0].reshape(-1)) / scale
        worst, equal, count = max(worst, steps.max()), equal + int((steps < 0.5).sum()), count + steps.size
    print(
        f"{path}: {path.stat().st_size:,} bytes; on 10 random inputs {100 * equal / count:.1f} % of the outputs are those of "
        f"ONNX Runtime, the farthest is {worst:.0f} steps away"
    )


if __name__ == "__main__":
    main()
