"""Writes networks of well-known shape with random weights, for benchmarks whose times do not depend on the weights.

    python benchmarks/classifiers.py FOLDER [mobilenet_v1_1.0_224 resnet18 resnet50]

For each network FOLDER holds NAME.onnx (float32, opset 13, batch normalisation folded), NAME.ini, which reads it, and some
images of noise. `benchmarks/latency.py FOLDER/NAME.ini=FOLDER/NAME.onnx` times them. Shapes: MobileNetV1 (Howard et al., 2017),
ResNet-18 and ResNet-50 (He et al., 2015; stride on the 3x3 convolution of a bottleneck).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["NETWORKS", "write"]

SIZE, CLASSES, IMAGES = 224, 1000, 10

INI = """; {name} with random weights
[database]
Type=DIR_Database
DataPath={images}
Depth=0
Learn=0
Validation=0.5
Test=0.5

[sp]
Size={size} {size} 3

[sp.Transformation-1]
Type=ColorSpaceTransformation
ColorSpace=RGB

[sp.Transformation-2]
Type=RangeAffineTransformation
FirstOperator=Divides
FirstValue=255.0

[onnx]
Type=ONNX
Input=sp
File={file}

[output.Target]
"""


class Builder:
    """An ONNX graph that grows node by node; methods take and return (tensor, channels)."""

    def __init__(self, seed: int = 0):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(seed)

    def node(self, kind: str, *inputs: str, output: str = "", **attributes) -> str:
        """Adds a node; returns its output."""
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], output, **attributes))
        return output

    def constant(self, name: str, values: np.ndarray) -> str:
        """Adds a constant; returns its name."""
        self.constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def conv(
        self, x: tuple[str, int], outputs: int, kernel: int, stride: int = 1, groups: int = 1, active: bool = True
    ) -> tuple[str, int]:
        """A convolution with bias, and Relu where `active`."""
        place, each = len(self.nodes), x[1] // groups
        weights = self.random.normal(0, np.sqrt(2 / (each * kernel * kernel)), (outputs, each, kernel, kernel))
        bias = self.random.normal(0, 0.1, outputs)
        y = self.node(
            "Conv",
            x[0],
            self.constant(f"w{place}", weights),
            self.constant(f"b{place}", bias),
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
            group=groups,
        )
        return self.node("Relu", y) if active else y, outputs

    def add(self, a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
        """Relu of a sum."""
        return self.node("Relu", self.node("Add", a[0], b[0])), a[1]

    def model(self, x: tuple[str, int], name: str) -> onnx.ModelProto:
        """The network that ends with the mean of `x` and a fully connected layer."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x[0]))
        weights = self.constant("w", self.random.normal(0, np.sqrt(1 / x[1]), (CLASSES, x[1])))
        self.node("Gemm", flat, weights, self.constant("b", np.zeros(CLASSES)), transB=1, output="output")
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, CLASSES])],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def mobilenet_v1(name: str) -> onnx.ModelProto:
    """MobileNetV1 1.0, 224x224."""
    to = Builder()
    x = to.conv(("input", 3), 32, 3, 2)
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        x = to.conv(to.conv(x, x[1], 3, stride, x[1]), outputs, 1)
    return to.model(x, name)


def _resnet(name: str, counts: tuple[int, ...], bottleneck: bool) -> onnx.ModelProto:
    to = Builder()
    x = to.conv(("input", 3), 64, 7, 2)
    x = to.node("MaxPool", x[0], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        outputs = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if stage and not block else 1
            if bottleneck:
                y = to.conv(to.conv(to.conv(x, width, 1), width, 3, stride), outputs, 1, active=False)
            else:
                y = to.conv(to.conv(x, width, 3, stride), outputs, 3, active=False)
            x = to.add(y, to.conv(x, outputs, 1, stride, active=False) if stride == 2 or x[1] != outputs else x)
    return to.model(x, name)


NETWORKS = {
    "mobilenet_v1_1.0_224": mobilenet_v1,
    "resnet18": lambda name: _resnet(name, (2, 2, 2, 2), False),
    "resnet50": lambda name: _resnet(name, (3, 4, 6, 3), True),
}
"""Name -> function that returns the ONNX model."""


def write(name: str, folder: Path) -> Path:
    """Writes one of NETWORKS into `folder`; returns the INI file."""
    from PIL import Image

    images, file = folder / "noise", folder / f"{name}.onnx"
    images.mkdir(parents=True, exist_ok=True)
    for seed in range(IMAGES):
        pixels = np.random.default_rng(seed).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
        Image.fromarray(pixels).save(images / f"{seed}.png")
    onnx.save(NETWORKS[name](name), file)
    path = folder / f"{name}.ini"
    path.write_text(INI.format(name=name, images=images, size=SIZE, file=file), encoding="utf-8")
    return path


def main() -> None:
    """The command."""
    folder = Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or NETWORKS:
        print(write(name, folder))


if __name__ == "__main__":
    main()
