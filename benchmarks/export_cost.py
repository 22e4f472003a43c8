"""Exports networks of different kinds and prints the processor time and the peak memory of the tool, as a Markdown table with limits.

    python benchmarks/export_cost.py [-limits] [-samples N] [NET.onnx[=SHAPE] ...]

Every network is exported twice by the command `n2d2py`: in floating point, and in int8 calibrated on N samples of noise (10 without
`-samples`). SHAPE is the value of `-input-shape`. Without names: networks with random weights whose exports were large once, a U-Net
of images of 512x512, window attention by moved axes, and a chain of recurrent layers. `-limits`: status 1 when an export takes more
than 25 times the bytes of its weights and activations and more than 1 GB, a file of at most 10 MB takes more than 1 GB, or one of
the networks above takes more than 200 processor seconds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from common import ROOT, TOOL, header, machine, row
from exports import Cost, measured
from onnx_net import Net

import n2d2py

_LIMIT_MB, _SMALL_FILE, _TIMES, _LIMIT_SECONDS = 1024, 10_000_000, 25, 200


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


def write_samples(path: Path, shape: str, count: int, folder: Path) -> tuple[Path, int]:
    """Write samples of noise for all inputs; return their file, and the bytes of the weights and of all activations of one sample."""
    model = n2d2py.load(path, options=n2d2py.LoadOptions(input_shape=shape or None))
    graph, random = model.graph, np.random.default_rng(2)
    sizes = [
        4 * int(np.prod(graph.shape(name))) for name in (*graph.inputs, *(y for node in graph.nodes for y in node.outputs))
    ]
    ports = [each for each in model.info.inputs if each.name not in graph.state_inputs]
    samples = {each.name: random.normal(size=(count, *each.port.dims[1:])).astype(np.float32) for each in ports}
    file = folder / "samples.npz"
    if len(samples) == 1:
        file = folder / "samples.npy"
        np.save(file, next(iter(samples.values())))
    else:
        np.savez(file, **samples)
    return file, sum(sizes) + path.stat().st_size


def beyond(path: Path, cost: Cost, times: float, own: bool) -> bool:
    """True if an export takes more than the limits allow; `own`: of a network of NETWORKS."""
    large = cost.megabytes > _LIMIT_MB and (times > _TIMES or path.stat().st_size <= _SMALL_FILE)
    return large or (own and cost.processor > _LIMIT_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*")
    parser.add_argument("-limits", action="store_true")
    parser.add_argument("-samples", type=int, default=10)
    arguments = parser.parse_args()
    above = []
    print(f"Machine: {machine()}.\n")
    header("network", "bits", "tensors MB", "processor s", "s", "peak MB", "times")
    with tempfile.TemporaryDirectory() as name:
        folder, own = Path(name), not arguments.networks
        for network in arguments.networks or [str(folder / f"{name}.onnx") for name in NETWORKS]:
            file, _, shape = network.partition("=")
            path = Path(file)
            if own:
                NETWORKS[path.stem](path)
            samples, tensors = write_samples(path, shape, arguments.samples, folder)
            for bits in (-32, 8):
                words = f"-export CPP -nbbits {bits} -seed 1 -quiet -o {folder / path.stem}".split()
                words += [*(["-input-shape", shape] if shape else []), *(["-calib-data", str(samples)] if bits == 8 else [])]
                cost = measured([*TOOL, str(path.resolve()), *words], ROOT)
                times = 1e6 * cost.megabytes / tensors
                figures = (
                    f"{tensors / 1e6:.1f}",
                    f"{cost.processor:.1f}",
                    f"{cost.seconds:.1f}",
                    f"{cost.megabytes:.0f}",
                    f"{times:.0f}",
                )
                row(path.stem, str(bits), *figures)
                if beyond(path, cost, times, own):
                    above.append(f"{path.stem} in {bits} bits")
    if arguments.limits and above:
        raise SystemExit(f"above the limits: {', '.join(above)}")


if __name__ == "__main__":
    main()
