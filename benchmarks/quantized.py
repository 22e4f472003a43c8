"""Measures networks that come quantized against ONNX Runtime, integer by integer, as a Markdown table.

    python benchmarks/quantized.py [-n N] [-layers] [MODEL.onnx ...]

The reference is ONNX Runtime without graph optimizations: every QuantizeLinear and DequantizeLinear is computed as the
file says. Per layer: each of our integer layers is given the reference's integers and compared with the reference's
result. End to end: the outputs for the same real inputs; beside ours, those of ONNX Runtime's fused integer kernels
(all optimizations), also with session.x64quantprecision=1 (exact: its sums of bytes do not saturate). Ours are simulated
integers, which the compiled export gives bit for bit.

Without models: the quantized ones of $N2D2_MODELS, on the data of $N2D2_DATA. Other files get noise in [0, 1].
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import numpy as np
from common import DATA, header, machine, row, session

from n2d2py import log
from n2d2py.graph import QuantGraph
from n2d2py.options import read_command
from n2d2py.pipeline import load_network
from n2d2py.quant.simulator import quantize_inputs, run_node, simulate
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.quantize import quantize_stage

MODELS = Path(os.environ.get("N2D2_MODELS", DATA / "models"))
BATCH = 4


# ---- stimuli --------------------------------------------------------------------------------------
def _pictures(folder: Path, size: int, count: int) -> np.ndarray:
    """Pixels 0..255, float32 (N, 3, size, size), of files spread evenly over a folder."""
    from PIL import Image

    files = sorted(path for path in folder.rglob("*") if path.suffix in (".png", ".jpg"))
    files = [files[i] for i in np.unique(np.linspace(0, len(files) - 1, count).round().astype(int))]
    images = (Image.open(path).convert("RGB") for path in files)
    pixels = [np.asarray(i if i.size == (size, size) else i.resize((size, size), Image.BILINEAR)) for i in images]
    return np.stack(pixels).astype(np.float32).transpose(0, 3, 1, 2)


def stimuli(path: Path, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Real inputs of a network: of its own data where the file's name tells which, else noise."""
    name = path.stem
    if name.startswith("kws"):
        return np.load(DATA / "kws" / "kws_mfcc.npz")["x"][:count]
    if name.startswith("resnet8"):
        return _pictures(DATA / "cifar10" / "test", 32, count)
    if name.startswith("vww"):
        return _pictures(DATA / "vww", 96, count) / np.float32(255)
    if name.startswith("mobilenet_v2"):
        return _pictures(DATA / "imagenet" / "images", 224, count) / np.float32(127.5) - np.float32(1)
    if name.startswith("mobilenet_v1"):
        return (_pictures(DATA / "imagenet" / "images", 160, count) - np.float32(128)) / np.float32(128)
    return np.random.default_rng(1).random((count, *shape), np.float32)


# ---- the reference ----------------------------------------------------------------------------------
class Reference:
    """ONNX Runtime on a file, without optimizations (and with the integers as outputs), or with all of them.

    `exact`: without the saturating sums of bytes of processors that have no dot product.
    """

    def __init__(self, path: Path, fused: bool, exact: bool = False):
        import onnx

        model = onnx.load(str(path))
        outputs = [value.name for value in model.graph.output]
        written = {name for node in model.graph.node for name in node.output}
        self.integers = {} if fused else dict(_integers(model))
        extra = [name for name in self.integers if name in written and name not in outputs]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
        self._session = session(model.SerializeToString(), fused, exact=exact)
        self._names = [*outputs, *extra]
        self.outputs = outputs
        first = self._session.get_inputs()[0]
        self._input, self._each = first.name, isinstance(first.shape[0], int)

    def run(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Every output; integers minus their zero points."""
        step = 1 if self._each else len(x)
        parts = [self._session.run(self._names, {self._input: x[i : i + step]}) for i in range(0, len(x), step)]
        found = {name: np.concatenate(values) for name, values in zip(self._names, zip(*parts, strict=True), strict=True)}
        return {
            name: value.astype(np.int64) - self.integers[name] if name in self.integers else value
            for name, value in found.items()
        }


def _integers(model) -> Iterator[tuple[str, int]]:
    """Tensors that hold integers of a type, with their zero points."""
    from onnx import numpy_helper

    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in known:
            zero = node.input[2] if len(node.input) > 2 else ""
        elif node.op_type in ("QLinearConv", "QLinearMatMul", "QLinearAdd", "QLinearMul"):
            zero = node.input[7]
        elif node.op_type == "QGemm" and len(node.input) > 8:
            zero = node.input[8]
        elif node.op_type == "QLinearConcat":
            zero = node.input[1]
        elif node.op_type.startswith("QLinear"):
            zero = node.input[4]
        else:
            continue
        yield node.output[0], int(known[zero].reshape(-1)[0]) if zero else 0


# ---- the comparison ---------------------------------------------------------------------------------
@dataclass
class Count:
    """Elements compared: how many are the same integer, and how far apart the others are."""

    elements: int = 0
    same: int = 0
    near: int = 0
    largest: int = 0

    def add(self, found: np.ndarray, expected: np.ndarray) -> None:
        apart = np.abs(found.reshape(-1) - expected.reshape(-1))
        self.elements += apart.size
        self.same += int(np.count_nonzero(apart == 0))
        self.near += int(np.count_nonzero(apart <= 1))
        self.largest = max(self.largest, int(apart.max(initial=0)))

    def text(self) -> str:
        return f"{100 * self.same / max(1, self.elements):.4f} % (largest {self.largest})"


@dataclass
class Result:
    """One network."""

    layers: dict[str, Count] = field(default_factory=dict)
    ours: Count = field(default_factory=Count)
    fused: Count = field(default_factory=Count)
    exact: Count = field(default_factory=Count)
    stimuli: int = 0


def imported(path: Path) -> QuantGraph:
    """Our integers of a quantized file."""
    path, options = read_command([str(path), "-export", "CPP", "-nbbits", "8", "-db-export", "0"])
    network = load_network(path, options)
    return quantize_stage(calibrate_stage(network, options.calibration), options.quantization).graph


def _carriers(graph: QuantGraph, reference: Reference) -> dict[str, str]:
    """Our tensor -> the file's tensor of the same integers: the last, where the file rounds what it clamps before and after."""
    found = {}
    for name in [*reference.integers, *reference.outputs]:
        ours = name
        while ours in graph.aliases and ours not in graph.tensors:
            ours = graph.aliases[ours]
        if ours in graph.tensors and name in reference.integers:
            found[ours] = name
    return found


def measure(path: Path, count: int) -> Result:
    """Compares one network over `count` stimuli."""
    graph, reference = imported(path), Reference(path, False)
    peers = [Reference(path, True), Reference(path, True, exact=True)]
    carriers, result = _carriers(graph, reference), Result()
    x = stimuli(path, graph.shape(graph.inputs[0])[1:], count)
    result.stimuli = len(x)
    for start in range(0, len(x), BATCH):
        batch = x[start : start + BATCH]
        expected, others = reference.run(batch), [peer.run(batch) for peer in peers]
        inputs = quantize_inputs(graph, [batch])
        stored = simulate(graph, inputs)
        for index, name in enumerate(graph.outputs):
            kind = graph.type(name)
            output = reference.outputs[index]
            wanted, *found = (
                np.rint(values[output].astype(np.float64) / kind.scale).astype(np.int64) for values in (expected, *others)
            )
            result.ours.add(stored[name].astype(np.int64) - kind.zero_point, wanted)
            for count, steps in zip((result.fused, result.exact), found, strict=True):
                count.add(steps, wanted)
        _compare_layers(graph, carriers, expected, inputs, result)
    return result


def _compare_layers(
    graph: QuantGraph, carriers: dict[str, str], expected: dict[str, np.ndarray], inputs: list[np.ndarray], result: Result
) -> None:
    values = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        (found,) = run_node(graph, node, [values[name] for name in node.inputs])
        name, kind = node.output, graph.type(node.output)
        values[name] = found
        if name in carriers:
            wanted = expected[carriers[name]]
            result.layers.setdefault(node.name, Count()).add(found.astype(np.int64) - kind.zero_point, wanted)
            values[name] = (wanted + kind.zero_point).reshape(found.shape).astype(kind.dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("-n", type=int, default=100, help="stimuli")
    parser.add_argument("-layers", action="store_true", help="a line for each layer with differences")
    arguments = parser.parse_args()
    log.setup(quiet=True)
    models = arguments.models or sorted(MODELS.glob("*qdq*.onnx"))
    print(f"{machine()}\n")
    titles = "Network|Stimuli|Layers|Per layer: identical|Outputs identical|within 1|ONNX Runtime fused: identical|within 1"
    header(*titles.split("|"), "exact: identical", "within 1", texts=10)
    for path in models:
        result = measure(path, arguments.n)
        total = Count()
        for count in result.layers.values():
            total.elements, total.same = total.elements + count.elements, total.same + count.same
            total.near, total.largest = total.near + count.near, max(total.largest, count.largest)
        shares = [
            f"{100 * part / c.elements:.2f} %" for c in (result.ours, result.fused, result.exact) for part in (c.same, c.near)
        ]
        row(path.stem, str(result.stimuli), str(len(result.layers)), total.text(), *shares)
        if arguments.layers:
            for name, count in result.layers.items():
                if count.same != count.elements:
                    print(f"    {name}: {count.text()} of {count.elements:,}")


if __name__ == "__main__":
    main()
