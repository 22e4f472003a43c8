"""Conversion of dynamically quantized networks (ONNX Runtime's `quantize_dynamic`) to float networks.

    q, s, z = DynamicQuantizeLinear(x);  MatMulInteger(q, w, z, zw)   =>  s = 1;  MatMul(x, w - zw)
    the same with ConvInteger                                         =>  Conv
    DynamicQuantizeLSTM                                               =>  LSTM, its weights restored

The product of the accumulator and both scales then only applies the weight scale, which the passes fold into the weights.
"""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from n2d2py.frontend.onnx.model import OnnxModel

_REAL = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}


def restore_dynamic(model: OnnxModel, scales: bool) -> bool:
    """Replace dynamically quantized LSTMs in `model` and, with `scales`, all other run-time scales; return whether there were
    any."""
    graph = model.proto.graph
    nodes = [_float_lstm(node, model) if node.op_type == "DynamicQuantizeLSTM" else node for node in graph.node]
    changed = any(node is not old for node, old in zip(nodes, graph.node, strict=True))
    quantizers = _find_dynamic(graph, nodes, model) if scales else {}
    renamed = {node.output[0]: node.input[0] for node in quantizers.values()}
    results: list[onnx.NodeProto] = []
    for node in nodes:
        if node.op_type == "DynamicQuantizeLinear" and node.output[0] in renamed:
            _add_constant(model, node.output[1], np.ones((), np.float32))
            continue
        if node.op_type in _REAL and renamed.keys() & {*node.input[:2]}:
            real = _float_product(node, model, renamed)
            renamed[node.output[0]], node = real.output[0], real
        else:
            node.input[:] = [renamed.get(name, name) for name in node.input]
        results.append(node)
    del graph.node[:]
    graph.node.extend(results)
    return changed or bool(quantizers)


def _find_dynamic(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], model: OnnxModel) -> dict[str, onnx.NodeProto]:
    """Return, by result, the dynamic quantizers whose only consumers are products with constants or with each other."""
    quantizers = {node.output[0]: node for node in nodes if node.op_type == "DynamicQuantizeLinear"}
    outputs, constants = {value.name for value in graph.output}, model.constants
    while True:
        sums = [
            node
            for node in nodes
            if node.op_type in _REAL
            and all(
                zero == quantizers[name].output[2]
                if name in quantizers
                else name in constants and (not zero or zero in constants)
                for name, zero in zip(node.input[:2], _zero_points(node), strict=True)
            )
        ]
        remaining = {name: node for name, node in quantizers.items() if not outputs & {*node.output}}
        for reader in (node for node in nodes if not any(node is one for one in sums)):
            for name in reader.input:
                remaining = {q: node for q, node in remaining.items() if name not in (q, node.output[2])}
        if len(remaining) == len(quantizers):
            return quantizers
        quantizers = remaining


def _zero_points(node: onnx.NodeProto) -> list[str]:
    """Return the zero points of both factors, "" for none."""
    return [*node.input[2:], "", ""][:2]


def _float_product(node: onnx.NodeProto, model: OnnxModel, renamed: dict[str, str]) -> onnx.NodeProto:
    zeros, inputs = _zero_points(node), []
    for index, name in enumerate(node.input[:2]):
        if name in renamed:
            inputs.append(renamed[name])
            continue
        values = model.constants[name].astype(np.float32)
        zero = model.constants[zeros[index]].astype(np.float32) if zeros[index] else np.float32(0)
        if zero.size > 1 and (node.op_type == "ConvInteger" or index == 0):
            zero = zero.reshape(-1, *(1,) * (values.ndim - 1 if node.op_type == "ConvInteger" else 1))
        inputs.append(_add_constant(model, f"{node.output[0]}_weights", values - zero))
    real = helper.make_node(_REAL[node.op_type], inputs, [f"{node.output[0]}_real"], name=node.name)
    real.attribute.extend(node.attribute)
    return real


def _float_lstm(node: onnx.NodeProto, model: OnnxModel) -> onnx.NodeProto:
    """Return an LSTM with the dequantized weights of a DynamicQuantizeLSTM; the node itself if they are not constant."""
    inputs = [*node.input, *[""] * 12][:12]
    if not all(name in model.constants for name in (inputs[1], inputs[2], *inputs[8:])):
        return node
    for index, (scale, zero) in ((1, inputs[8:10]), (2, inputs[10:12])):
        stored, step, offset = (model.constants[name].astype(np.float32) for name in (inputs[index], scale, zero))
        each = (step.reshape(len(stored), 1, -1), offset.reshape(len(stored), 1, -1))
        inputs[index] = _add_constant(model, f"{inputs[index]}_real", ((stored - each[1]) * each[0]).transpose(0, 2, 1))
    real = helper.make_node("LSTM", inputs[:8], list(node.output), name=node.name)
    real.attribute.extend(node.attribute)
    return real


def _add_constant(model: OnnxModel, name: str, values: np.ndarray) -> str:
    if name not in model.constants:
        tensor = numpy_helper.from_array(np.ascontiguousarray(values), name)
        model.proto.graph.initializer.append(tensor)
        model.constants[name] = numpy_helper.to_array(tensor)
    return name
