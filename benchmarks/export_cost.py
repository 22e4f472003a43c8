"""Exports networks of different kinds and prints the processor time and the peak memory of the tool, as a Markdown table with limits.

    python benchmarks/export_cost.py [-limits] [NET.onnx ...]

Every network is exported twice by the command `n2d2py`: in floating point, and in int8 calibrated on 10 samples of noise. Without
names: networks with random weights whose exports were large once, a U-Net of images of 512x512, window attention by moved axes, and a
chain of recurrent layers. `-limits`: status 1 when an export takes more than 25 times the bytes of its weights and activations and
more than 1 GB, or a file of at most 10 MB takes more than 1 GB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from exports import machine, measured  # noqa: E402

_LIMIT_MB, _SMALL_FILE, _TIMES = 1024, 10_000_000, 25


class _Net:
    """An ONNX file, layer by layer: every method returns the name of its result."""

    def __init__(self, shape: list[int]):
        self.shape, self.nodes, self.constants = shape, [], []
        self.rng = np.random.default_rng(1)

    def constant(self, values: np.ndarray) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.normal(0, np.prod(shape[1:]) ** -0.5, shape).astype(np.float32))

    def dims(self, *dims: int) -> str:
        return self.constant(np.array(dims))

    def add(self, kind: str, *inputs: str, count: int = 1, **attributes: object) -> str:
        outputs = [f"y{len(self.nodes)}" + "_" * index for index in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0]

    def conv(self, x: str, inputs: int, outputs: int) -> str:
        made = self.add("Conv", x, self.weights(outputs, inputs, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        return self.add("Relu", made)

    def save(self, path: Path, output: str) -> None:
        ends = [
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *self.shape])],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        ]
        graph = helper.make_graph(self.nodes, path.stem, *ends, self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_unet(path: Path) -> None:
    """Convolutions of images of 512x512, pooled twice, with skip connections."""
    net = _Net([1, 512, 512])
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    first = net.conv("x", 1, 16)
    second = net.conv(net.add("MaxPool", first, **pool), 16, 32)
    x = net.conv(net.add("MaxPool", second, **pool), 32, 64)
    for skip, inputs, outputs in ((second, 96, 32), (first, 48, 16)):
        up = net.add("Resize", x, "", net.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear")
        x = net.conv(net.add("Concat", up, skip, axis=1), inputs, outputs)
    net.save(path, net.add("Softmax", net.add("Transpose", x, perm=[0, 2, 3, 1]), axis=-1))


def write_windows(path: Path) -> None:
    """Attention inside windows of 7x7 of 56x56 tokens, as Swin: axes are split and moved before and after."""
    net, width, heads = _Net([56, 56, 48]), 48, 3
    x = "x"
    for _ in range(4):
        tokens = net.add("Reshape", x, net.dims(-1, 8, 7, 8, 7, width))
        tokens = net.add("Reshape", net.add("Transpose", tokens, perm=[0, 1, 3, 2, 4, 5]), net.dims(-1, 64, 49, width))
        parts = []
        for perm in ([0, 1, 3, 2, 4], [0, 1, 3, 4, 2], [0, 1, 3, 2, 4]):
            made = net.add("MatMul", tokens, net.weights(width, width))
            parts.append(net.add("Transpose", net.add("Reshape", made, net.dims(-1, 64, 49, heads, 16)), perm=perm))
        scores = net.add("Softmax", net.add("MatMul", parts[0], parts[1]), axis=-1)
        mixed = net.add("Transpose", net.add("MatMul", scores, parts[2]), perm=[0, 1, 3, 2, 4])
        mixed = net.add("Reshape", mixed, net.dims(-1, 8, 8, 7, 7, width))
        mixed = net.add("Reshape", net.add("Transpose", mixed, perm=[0, 1, 3, 2, 4, 5]), net.dims(-1, 56, 56, width))
        x = net.add("Add", x, net.add("MatMul", mixed, net.weights(width, width)))
    net.save(path, net.add("ReduceMean", x, axes=[1, 2], keepdims=0))


def write_recurrent(path: Path) -> None:
    """45 LSTMs of 20 steps, each with a residual sum."""
    net, x = _Net([20, 32]), "x"
    for _ in range(45):
        steps = net.add("Transpose", x, perm=[1, 0, 2])
        parameters = net.weights(1, 128, 32), net.weights(1, 128, 32), net.weights(1, 256)
        states = net.add("LSTM", steps, *parameters, hidden_size=32)
        states = net.add("Squeeze", states, net.dims(1))
        x = net.add("Add", x, net.add("Transpose", states, perm=[1, 0, 2]))
    net.save(path, x)


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
    print(
        "| network | bits | tensors MB | processor s | s | peak MB | times |\n|---|---:|---:|---:|---:|---:|---:|", flush=True
    )
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
                data = ["-calib-data", str(folder / "samples.npy")] if bits == 8 else []
                cost = measured([sys.executable, "-m", "n2d2py", str(path.resolve()), *words, *data], ROOT)
                times = cost.megabytes / megabytes
                figures = f"{megabytes:.1f} | {cost.processor:.1f} | {cost.seconds:.1f} | {cost.megabytes:.0f} | {times:.0f}"
                print(f"| {path.stem} | {bits} | {figures} |", flush=True)
                if cost.megabytes > _LIMIT_MB and (times > _TIMES or path.stat().st_size <= _SMALL_FILE):
                    beyond.append(f"{path.stem} in {bits} bits")
    if arguments.limits and beyond:
        raise SystemExit(f"above the limits: {', '.join(beyond)}")


if __name__ == "__main__":
    main()
