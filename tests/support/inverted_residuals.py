"""Small networks of inverted residuals (MobileNetV2), quantized by ONNX Runtime to QDQ in several ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZE = 24
WAYS = {
    "uint8 int8 by channel": {"activation_type": "QUInt8", "weight_type": "QInt8", "per_channel": True},
    "uint8 int8 by tensor": {"activation_type": "QUInt8", "weight_type": "QInt8", "per_channel": False},
    "uint8 uint8": {"activation_type": "QUInt8", "weight_type": "QUInt8", "per_channel": False},
    "int8 asymmetric": {"activation_type": "QInt8", "weight_type": "QInt8", "per_channel": True},
    "int8 symmetric": {
        "activation_type": "QInt8",
        "weight_type": "QInt8",
        "per_channel": True,
        "extra_options": {"ActivationSymmetric": True},
    },
    "real biases": {
        "activation_type": "QUInt8",
        "weight_type": "QInt8",
        "per_channel": True,
        "extra_options": {"QuantizeBias": False},
    },
    "sums of real numbers": {"activation_type": "QUInt8", "weight_type": "QInt8", "per_channel": True},
}
"""Arguments of quantize_static; in the last, what Adds read is not rounded, as NVIDIA's quantizers leave it."""


class _Network:
    """Collects the nodes of a float network."""

    def __init__(self, seed: int):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], []

    def constant(self, values: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(values, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, kind: str, *inputs: str, **attributes) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [f"{kind}_{len(self.nodes)}"], **attributes))
        return self.nodes[-1].output[0]

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1, clip=True) -> str:
        """Weights of normal size, but for a few outputs whose weights are 0 or of 1e-9 beside a bias."""
        fan = inputs // groups * kernel * kernel
        weights = self.rng.normal(0, np.sqrt(2.0 / fan), (outputs, inputs // groups, kernel, kernel)) * self.rng.uniform(
            0.2, 2.0, (outputs, 1, 1, 1)
        )
        weights[0], weights[1] = 0, weights[1] * 1e-9
        bias = self.rng.normal(0, 0.4, outputs)
        pad = kernel // 2
        y = self.add(
            "Conv",
            x,
            self.constant(weights.astype(np.float32)),
            self.constant(bias.astype(np.float32)),
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=groups,
        )
        return self.add("Clip", y, self.constant(np.float32(0)), self.constant(np.float32(6))) if clip else y

    def block(self, x: str, inputs: int, outputs: int, stride: int) -> str:
        wide = 3 * inputs
        y = self.conv(x, inputs, wide)
        y = self.conv(y, wide, wide, 3, stride, wide)
        y = self.conv(y, wide, outputs, clip=False)
        return self.add("Add", x, y) if stride == 1 and inputs == outputs else y


def real_network(path: Path, seed: int = 0) -> None:
    """Writes a float network, x (N, 3, SIZE, SIZE) -> 10 outputs."""
    net = _Network(seed)
    y = net.conv("x", 3, 16, 3, 2)
    for inputs, outputs, stride in ((16, 16, 1), (16, 24, 2), (24, 24, 1), (24, 24, 1)):
        y = net.block(y, inputs, outputs, stride)
    y = net.add("Flatten", net.add("GlobalAveragePool", net.conv(y, 24, 64)))
    weights = net.constant(net.rng.normal(0, 0.15, (10, 64)).astype(np.float32))
    y = net.add("Gemm", y, weights, net.constant(net.rng.normal(0, 0.2, 10).astype(np.float32)), transB=1)
    graph = helper.make_graph(
        net.nodes,
        "inverted_residuals",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, SIZE, SIZE])],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, ["N", 10])],
        net.constants,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def stimuli(count: int, seed: int = 1) -> np.ndarray:
    """(count, 3, SIZE, SIZE) numbers around 0."""
    return np.random.default_rng(seed).normal(size=(count, 3, SIZE, SIZE)).astype(np.float32)


def quantized_network(folder: Path, way: str) -> Path:
    """Writes the network in QDQ form, quantized in one of WAYS."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.batches = iter([{"x": stimuli(1, seed)} for seed in range(8)])

        def get_next(self):
            return next(self.batches, None)

    real, path = folder / "real.onnx", folder / f"{way.replace(' ', '_')}_qdq.onnx"
    real_network(real)
    arguments = {name: getattr(QuantType, value) if name.endswith("type") else value for name, value in WAYS[way].items()}
    quantize_static(str(real), str(path), Reader(), quant_format=QuantFormat.QDQ, **arguments)
    if way == "sums of real numbers":
        _without_rounding_before_sums(path)
    return path


def _without_rounding_before_sums(path: Path) -> None:
    """Lets every Add read what a Conv or an Add gives, not the DequantizeLinear behind that."""
    model = onnx.load(str(path))
    made = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        for index, name in enumerate(node.input if node.op_type == "Add" else ()):
            source = made[made[made[name].input[0]].input[0]]
            if source.op_type in ("Conv", "Add"):
                node.input[index] = source.output[0]
    used = {name for node in model.graph.node for name in node.input} | {port.name for port in model.graph.output}
    while unused := [node for node in model.graph.node if not used.intersection(node.output)]:
        for node in unused:
            model.graph.node.remove(node)
        used = {name for node in model.graph.node for name in node.input} | {port.name for port in model.graph.output}
    onnx.save(model, str(path))
