"""Exports networks of different kinds and prints the processor time and the peak memory of the tool, as a Markdown table with limits.

    python benchmarks/export_cost.py [-limits] [NET.onnx ...]

Every network is exported twice by the command `n2d2py`: in floating point, and in int8 calibrated on 10 samples of noise. Without
names: networks with random weights whose exports were large once, a U-Net of images of 512x512, window attention by moved axes, and a
chain of recurrent layers. `-limits`: status 1 when an export takes more than 25 times the bytes of its weights and activations and
more than 1 GB, or a file of at most 10 MB takes more than 1 GB.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
from common import ROOT, TOOL, header, machine, row
from exports import measured
from onnx_net import Net

_LIMIT_MB, _SMALL_FILE, _TIMES = 1024, 10_000_000, 25


class _Net(Net):
    def __init__(self, *shape: int):
        super().__init__(1)
        self.shape = ["N", *shape]

    def weights(self, *shape: int) -> str:
        return self.drawn(np.prod(shape[1:]) ** -0.5, *shape)

    def conv(self, x: str, inputs: int, outputs: int) -> str:
        made = self.add("Conv", x, self.weights(outputs, inputs, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        return self.add("Relu", made)


def write_unet(path: Path) -> None:
    """Convolutions of images of 512x512, pooled twice, with skip connections."""
    net = _Net(1, 512, 512)
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    first = net.conv("x", 1, 16)
    second = net.conv(net.add("MaxPool", first, **pool), 16, 32)
    x = net.conv(net.add("MaxPool", second, **pool), 32, 64)
    for skip, inputs, outputs in ((second, 96, 32), (first, 48, 16)):
        up = net.add("Resize", x, "", net.constant(1.0, 1.0, 2.0, 2.0), mode="linear")
        x = net.conv(net.add("Concat", up, skip, axis=1), inputs, outputs)
    net.save(path, net.shape, net.add("Softmax", net.add("Transpose", x, perm=[0, 2, 3, 1]), axis=-1))


def write_windows(path: Path) -> None:
    """Attention inside windows of 7x7 of 56x56 tokens, as Swin: axes are split and moved before and after."""
    net, width, heads = _Net(56, 56, 48), 48, 3
    x = "x"
    for _ in range(4):
        tokens = net.add("Reshape", x, net.constant(-1, 8, 7, 8, 7, width))
        tokens = net.add("Reshape", net.add("Transpose", tokens, perm=[0, 1, 3, 2, 4, 5]), net.constant(-1, 64, 49, width))
        parts = []
        for perm in ([0, 1, 3, 2, 4], [0, 1, 3, 4, 2], [0, 1, 3, 2, 4]):
            made = net.add("MatMul", tokens, net.weights(width, width))
            parts.append(net.add("Transpose", net.add("Reshape", made, net.constant(-1, 64, 49, heads, 16)), perm=perm))
        scores = net.add("Softmax", net.add("MatMul", parts[0], parts[1]), axis=-1)
        mixed = net.add("Transpose", net.add("MatMul", scores, parts[2]), perm=[0, 1, 3, 2, 4])
        mixed = net.add("Reshape", mixed, net.constant(-1, 8, 8, 7, 7, width))
        mixed = net.add("Reshape", net.add("Transpose", mixed, perm=[0, 1, 3, 2, 4, 5]), net.constant(-1, 56, 56, width))
        x = net.add("Add", x, net.add("MatMul", mixed, net.weights(width, width)))
    net.save(path, net.shape, net.add("ReduceMean", x, axes=[1, 2], keepdims=0))


def write_recurrent(path: Path) -> None:
    """45 LSTMs of 20 steps, each with a residual sum."""
    net, x = _Net(20, 32), "x"
    for _ in range(45):
        steps = net.add("Transpose", x, perm=[1, 0, 2])
        parameters = net.weights(1, 128, 32), net.weights(1, 128, 32), net.weights(1, 256)
        states = net.add("LSTM", steps, *parameters, hidden_size=32)
        states = net.add("Squeeze", states, net.constant(1))
        x = net.add("Add", x, net.add("Transpose", states, perm=[1, 0, 2]))
    net.save(path, net.shape, x)


NETWORKS = {"unet": write_unet, "windows": write_windows, "recurrent": write_recurrent}
"""Name -> what writes its file."""


def tensor_bytes(path: Path) -> int:
    """Bytes of the weights and of all activations of one sample."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True)
    values = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    sizes = [np.prod([size.dim_value or 1 for size in value.type.tensor_type.shape.dim]) * 4 for value in values]
    return int(sum(sizes)) + path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", type=Path)
    parser.add_argument("-limits", action="store_true")
    arguments = parser.parse_args()
    beyond = []
    print(f"Machine: {machine()}.\n")
    header("network", "bits", "tensors MB", "processor s", "s", "peak MB", "times")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        networks = arguments.networks or [folder / f"{name}.onnx" for name in NETWORKS]
        for path in networks:
            if not arguments.networks:
                NETWORKS[path.stem](path)
            shape = [size.dim_value for size in onnx.load(path).graph.input[0].type.tensor_type.shape.dim][1:]
            np.save(folder / "samples.npy", np.random.default_rng(2).normal(size=(10, *shape)).astype(np.float32))
            megabytes = tensor_bytes(path) / 1e6
            for bits in (-32, 8):
                words = f"-export CPP -nbbits {bits} -seed 1 -quiet -o {folder / path.stem}".split()
                words += ["-calib-data", str(folder / "samples.npy")] if bits == 8 else []
                cost = measured([*TOOL, str(path.resolve()), *words], ROOT)
                times = cost.megabytes / megabytes
                figures = (
                    (megabytes, ".1f"),
                    (cost.processor, ".1f"),
                    (cost.seconds, ".1f"),
                    (cost.megabytes, ".0f"),
                    (times, ".0f"),
                )
                row(path.stem, str(bits), *(format(*figure) for figure in figures))
                if cost.megabytes > _LIMIT_MB and (times > _TIMES or path.stat().st_size <= _SMALL_FILE):
                    beyond.append(f"{path.stem} in {bits} bits")
    if arguments.limits and beyond:
        raise SystemExit(f"above the limits: {', '.join(beyond)}")


if __name__ == "__main__":
    main()
