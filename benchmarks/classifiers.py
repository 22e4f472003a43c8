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
from onnx_net import Net

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


Maps = tuple[str, int]
"""A tensor and its channels."""


class Builder(Net):
    """A classifier of images x that grows layer by layer."""

    def conv(self, x: Maps, outputs: int, kernel: int, stride: int = 1, groups: int = 1, active: bool = True) -> Maps:
        """A convolution with bias, and Relu where `active`."""
        each = x[1] // groups
        weights = self.drawn(np.sqrt(2 / (each * kernel * kernel)), outputs, each, kernel, kernel)
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        y = self.add("Conv", x[0], weights, self.drawn(0.1, outputs), **window, group=groups)
        return self.add("Relu", y) if active else y, outputs

    def sum(self, a: Maps, b: Maps) -> Maps:
        """Relu of a sum."""
        return self.add("Relu", self.add("Add", a[0], b[0])), a[1]

    def finish(self, x: Maps, path: Path) -> None:
        """Writes the network that ends with the mean of `x` and a fully connected layer."""
        flat = self.add("Flatten", self.add("GlobalAveragePool", x[0]))
        weights = self.drawn(np.sqrt(1 / x[1]), CLASSES, x[1])
        output = self.add("Gemm", flat, weights, self.constant(np.zeros(CLASSES)), outputs=["output"], transB=1)
        self.save(path, [1, 3, SIZE, SIZE], output, 13)


def mobilenet_v1(path: Path) -> None:
    """MobileNetV1 1.0, 224x224."""
    to = Builder(0)
    x = to.conv(("x", 3), 32, 3, 2)
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)):
        x = to.conv(to.conv(x, x[1], 3, stride, x[1]), outputs, 1)
    to.finish(x, path)


def _resnet(path: Path, counts: tuple[int, ...], bottleneck: bool) -> None:
    to = Builder(0)
    x = to.conv(("x", 3), 64, 7, 2)
    x = to.add("MaxPool", x[0], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        outputs = 4 * width if bottleneck else width
        for block in range(count):
            stride = 2 if stage and not block else 1
            if bottleneck:
                y = to.conv(to.conv(to.conv(x, width, 1), width, 3, stride), outputs, 1, active=False)
            else:
                y = to.conv(to.conv(x, width, 3, stride), outputs, 3, active=False)
            x = to.sum(y, to.conv(x, outputs, 1, stride, active=False) if stride == 2 or x[1] != outputs else x)
    to.finish(x, path)


NETWORKS = {
    "mobilenet_v1_1.0_224": mobilenet_v1,
    "resnet18": lambda path: _resnet(path, (2, 2, 2, 2), False),
    "resnet50": lambda path: _resnet(path, (3, 4, 6, 3), True),
}
"""Name -> what writes its file."""


def write(name: str, folder: Path) -> Path:
    """Writes one of NETWORKS into `folder`; returns the INI file."""
    from PIL import Image

    images, file = folder / "noise", folder / f"{name}.onnx"
    images.mkdir(parents=True, exist_ok=True)
    for seed in range(IMAGES):
        pixels = np.random.default_rng(seed).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
        Image.fromarray(pixels).save(images / f"{seed}.png")
    NETWORKS[name](file)
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
