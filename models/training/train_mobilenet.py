"""Trains a small MobileNetV1 on the digits and writes `models/MobileNet.onnx`.

The ONNX graph is built node by node, so that its tensors carry the names of the layers (conv1,
dw2, pw2, ..., logits) and do not depend on an exporter: Conv without bias, BatchNormalization
left unfused, ReLU6 as Clip, GlobalAveragePool, Flatten, Gemm; no Softmax.

Usage: python train_mobilenet.py      (needs PyTorch; one minute on one core)
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import digits
import numpy as np
import onnx
import onnxruntime
import torch
import trainer
from onnx import TensorProto, helper, numpy_helper
from torch import nn

OUTPUT = Path(__file__).resolve().parent.parent / "MobileNet.onnx"
OPSET = 17
FIRST = 16
# Output channels and stride of each depthwise-pointwise pair, from 16x16 to 4x4.
PAIRS = ((32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1))


def block(name: str, conv: nn.Conv2d) -> list[tuple[str, nn.Module]]:
    """A convolution with its BatchNorm and ReLU6, named after it."""
    return [(name, conv), (f"{name}_bn", nn.BatchNorm2d(conv.out_channels)), (f"{name}_relu6", nn.ReLU6())]


class MobileNet(nn.Sequential):
    """1x32x32 in [0, 1] to 10 logits; 54,922 parameters, 1.4 M multiply-accumulates."""

    def __init__(self) -> None:
        layers = block("conv1", nn.Conv2d(1, FIRST, 3, stride=2, padding=1, bias=False))
        channels = FIRST
        for index, (wider, stride) in enumerate(PAIRS, start=2):
            layers += block(
                f"dw{index}", nn.Conv2d(channels, channels, 3, stride=stride, padding=1, groups=channels, bias=False)
            )
            layers += block(f"pw{index}", nn.Conv2d(channels, wider, 1, bias=False))
            channels = wider
        layers += [("pool", nn.AdaptiveAvgPool2d(1)), ("flatten", nn.Flatten()), ("logits", nn.Linear(channels, 10))]
        super().__init__(OrderedDict(layers))


def to_onnx(network: MobileNet) -> onnx.ModelProto:
    """The network as ONNX: input "image" (N, 1, 32, 32) in [0, 1], output "logits" (N, 10)."""
    nodes: list[onnx.NodeProto] = []
    initializers = [numpy_helper.from_array(np.float32(0), "relu6_min"), numpy_helper.from_array(np.float32(6), "relu6_max")]

    def constant(name: str, tensor: torch.Tensor) -> str:
        initializers.append(numpy_helper.from_array(tensor.detach().numpy(), name))
        return name

    last = "image"
    for name, layer in network.named_children():
        if isinstance(layer, nn.Conv2d):
            inputs, op = [last, constant(f"{name}_weights", layer.weight)], "Conv"
            attributes = {
                "kernel_shape": list(layer.kernel_size),
                "strides": list(layer.stride),
                "pads": list(layer.padding) * 2,
                "group": layer.groups,
            }
        elif isinstance(layer, nn.BatchNorm2d):
            inputs, op = (
                [
                    last,
                    constant(f"{name}_scales", layer.weight),
                    constant(f"{name}_biases", layer.bias),
                    constant(f"{name}_means", layer.running_mean),
                    constant(f"{name}_variances", layer.running_var),
                ],
                "BatchNormalization",
            )
            attributes = {"epsilon": layer.eps}
        elif isinstance(layer, nn.ReLU6):
            inputs, op, attributes = [last, "relu6_min", "relu6_max"], "Clip", {}
        elif isinstance(layer, nn.AdaptiveAvgPool2d):
            inputs, op, attributes = [last], "GlobalAveragePool", {}
        elif isinstance(layer, nn.Flatten):
            inputs, op, attributes = [last], "Flatten", {}
        else:
            inputs, op = [last, constant(f"{name}_weights", layer.weight), constant(f"{name}_biases", layer.bias)], "Gemm"
            attributes = {"transB": 1}
        nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        last = name

    size = digits.SIZE
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, size, size])
    logits = helper.make_tensor_value_info(last, TensorProto.FLOAT, ["N", 10])
    graph = helper.make_graph(nodes, "MobileNet", [image], [logits], initializers)
    model = helper.make_model(graph, producer_name="n2d2py", ir_version=8, opset_imports=[helper.make_opsetid("", OPSET)])
    onnx.checker.check_model(model, full_check=True)
    return model


def verify(model: onnx.ModelProto, network: MobileNet) -> float:
    """Test accuracy in percent of the ONNX file; raises when its logits differ from PyTorch's."""
    images, labels = digits.load("t10k")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    logits = session.run(None, {"image": images})[0]
    with torch.no_grad():
        expected = network(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    return 100 * float(np.mean(logits.argmax(1) == labels))


def main() -> None:
    """Trains, writes the ONNX file and prints the accuracies."""
    network = trainer.train(MobileNet, seed=1, epochs=60, peak=1e-2)
    network.eval()
    model = to_onnx(network)
    test = verify(model, network)
    onnx.save(model, OUTPUT)
    print(f"MobileNet: train {trainer.accuracy(network, 'train'):.2f}%, test {test:.2f}%")


if __name__ == "__main__":
    main()
