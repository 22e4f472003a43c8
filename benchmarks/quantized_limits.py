"""How far the reference of quantized networks determines its own integers, as a Markdown table.

    python benchmarks/quantized_limits.py [-n N] [MODEL.onnx ...]

Outputs for the same real inputs, integer by integer, of four ways to compute one QDQ file:
    ours       the integers of the export
    exact      convolutions and matrix products with exact sums, rescaled in float64: no rounding but that of the file
    ORT        ONNX Runtime without graph optimizations, the reference
    turned     the same, with the input channels of every convolution in the opposite order, which changes nothing but
               the order of its float32 sums
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from quantized import MODELS, Count, Reference, imported, machine, stimuli

from n2d2py import log
from n2d2py.arithmetic import FloatRescale, FractionRescale
from n2d2py.arithmetic.rescale import Rescale
from n2d2py.graph import QuantGraph
from n2d2py.quant import imported_layers
from n2d2py.quant.simulator import quantize_inputs, simulate

__all__ = ["ExactRescale", "exact_graph", "turned"]

PAIRS = (("ours", "ORT"), ("exact", "ORT"), ("ours", "exact"), ("turned", "ORT"))
BATCH = 4


class ExactRescale(Rescale):
    """rint((acc + fraction) * factor) in float64."""

    def __init__(self, factors: np.ndarray, fractions: np.ndarray):
        self.factors, self.fractions = np.atleast_1d(factors), np.atleast_1d(fractions)
        self.count = self.factors.size

    def apply(self, acc: np.ndarray, low: int, high: int, axis: int = 1) -> np.ndarray:
        shape = [-1 if index == axis else 1 for index in range(acc.ndim)]
        real = (acc.astype(np.float64) + self.fractions.reshape(shape)) * self.factors.reshape(shape)
        return np.clip(np.rint(real), low, high).astype(np.int64)

    def effective(self) -> np.ndarray:
        return self.factors


def exact_graph(path: Path) -> QuantGraph:
    """The integers of a file whose convolutions and matrix products are exact; sums and means of tensors stay as the file has them."""
    original = imported_layers._weighted

    def weighted(node, types):
        made = original(node, types)
        _, scales = imported_layers._weights(node)
        steps = np.float64(types.inputs[0].scale) * scales.astype(np.float64)
        real = node.params["bias"].astype(np.float64) / steps
        assert isinstance(made.rescale, (FloatRescale, FractionRescale))
        made.rescale = ExactRescale(steps / np.float64(types.output.scale), real - np.rint(real))
        return made

    with mock.patch.dict(imported_layers._IMPORTERS, dict.fromkeys(("Conv", "Deconv", "Fc", "Affine"), weighted)):
        return imported(path)


def turned(path: Path, folder: Path) -> Path:
    """A copy of the file whose ungrouped convolutions read their input channels from the last to the first."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(path))
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    made = {name: node for node in graph.node for name in node.output}
    nodes, done = [], set()
    for node in graph.node:
        source = made.get(node.input[1]) if node.op_type == "Conv" else None
        if source is not None and source.op_type == "DequantizeLinear" and source.input[0] in weights:
            stored = numpy_helper.to_array(weights[source.input[0]])
            readers = [other for other in graph.node if source.output[0] in other.input]
            if stored.shape[1] > 1 and len(readers) == 1 and source.input[0] not in done:
                done.add(source.input[0])
                weights[source.input[0]].CopyFrom(
                    numpy_helper.from_array(np.ascontiguousarray(stored[:, ::-1]), source.input[0])
                )
                order = numpy_helper.from_array(np.arange(stored.shape[1])[::-1].copy(), f"{node.output[0]}_order")
                graph.initializer.append(order)
                nodes.append(helper.make_node("Gather", [node.input[0], order.name], [f"{node.output[0]}_turned"], axis=1))
                node.input[0] = nodes[-1].output[0]
        nodes.append(node)
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, str(folder / path.name))
    return folder / path.name


def measure(path: Path, count: int) -> dict[tuple[str, str], Count]:
    """Each pair of ways over `count` stimuli."""
    with tempfile.TemporaryDirectory() as folder:
        graphs = {"ours": imported(path), "exact": exact_graph(path)}
        sessions = {"ORT": Reference(path, False), "turned": Reference(turned(path, Path(folder)), False)}
    results = {pair: Count() for pair in PAIRS}
    x = stimuli(path, graphs["ours"].shape(graphs["ours"].inputs[0])[1:], count)
    for start in range(0, len(x), BATCH):
        batch = x[start : start + BATCH]
        found: dict[str, list[np.ndarray]] = {}
        for name, graph in graphs.items():
            stored = simulate(graph, quantize_inputs(graph, [batch]))
            found[name] = [stored[output].astype(np.int64) - graph.type(output).zero_point for output in graph.outputs]
        kinds = [graphs["ours"].type(output) for output in graphs["ours"].outputs]
        for name, session in sessions.items():
            values = session.run(batch)
            found[name] = [
                np.rint(values[output].astype(np.float64) / kind.scale).astype(np.int64)
                for output, kind in zip(session.outputs, kinds, strict=True)
            ]
        for pair, result in results.items():
            for a, b in zip(*(found[name] for name in pair), strict=True):
                result.add(a, b)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("-n", type=int, default=100, help="stimuli")
    arguments = parser.parse_args()
    log.setup(quiet=True)
    print(f"{machine()}\n")
    print("| Network | " + " | ".join(f"{a} = {b} | within 1" for a, b in PAIRS) + " |\n|---|" + "---|" * 2 * len(PAIRS))
    for path in arguments.models or sorted(MODELS.glob("*qdq*.onnx")):
        cells = [f"{100 * part / c.elements:.2f} %" for c in measure(path, arguments.n).values() for part in (c.same, c.near)]
        print(f"| {path.stem} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
