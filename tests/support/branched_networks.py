"""A small network with a branch, its quantized form, and its error."""

import numpy as np

from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node, Precision
from n2d2py.quant.calibration import quantize
from n2d2py.quant.simulator import quantize_inputs, simulate
from n2d2py.quant.statistics import collect
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.reference.engine import FloatEngine
from support.ops import Conv, ElemWise, Pool


def network(precisions: dict[str, Precision] | None = None, channels: int = 6) -> Graph:
    """x - a - (b, c) - add, c - pool; a, b and c are convolutions; outputs add and pool."""
    rng, graph = np.random.default_rng(3), Graph("net")
    graph.add_input("x", (1, 2, 8, 8))

    def conv(name: str, source: str, inputs: int) -> None:
        params = {
            "weights": rng.normal(size=(channels, inputs, 3, 3)).astype(np.float32) / 3,
            "bias": rng.normal(size=channels).astype(np.float32) / 10,
        }
        graph.add(Node(name, Conv(pads=(1, 1, 1, 1)), [source], [name], params, Clip(0.0)))

    conv("a", "x", 2)
    conv("b", "a", channels)
    conv("c", "a", channels)
    graph.add(Node("add", ElemWise("Sum"), ["b", "c"], ["add"]))
    graph.add(Node("pool", Pool("Max", (2, 2), (2, 2)), ["c"], ["pool"]))
    graph.outputs = ["add", "pool"]
    graph.precisions = dict(precisions or {})
    graph.verify()
    return graph


def data(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (count, 2, 8, 8)).astype(np.float32)


def quantized(graph: Graph, **options):
    graph = insert_conversions(graph)
    histograms = collect(graph, [data(16)]).histograms
    samples = [data(4, seed) for seed in range(4)]
    return graph, *quantize(graph, histograms, QuantOptions(**options), {"x": (-1.0, 1.0)}, samples)


def error(graph: Graph, typed, name: str) -> float:
    x = data(16, 9)
    real, stored = FloatEngine(graph).run(x), simulate(typed, quantize_inputs(typed, [x]))
    return float(np.sqrt(np.mean((typed.type(name).dequantize(stored[name]) - real[name]) ** 2)))
