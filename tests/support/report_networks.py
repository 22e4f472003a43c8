"""Networks with random weights, quantized from histograms of random data, for reports."""

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.strategies import plan_memory
from n2d2py.quant.calibration import quantize
from n2d2py.quant.observe.compare import LayerComparison, LevelCounts
from n2d2py.quant.observe.worst import StimulusComparison
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.types.choose import calibrated_tensors
from n2d2py.report import ReportData
from n2d2py.targets import Scorer
from n2d2py.targets.target import ScoreTarget
from support.ops import ElemWise, Pool
from support.small_graphs import RELU, Net


def small() -> Graph:
    """conv1 (8 of 3x3x3, /2) - dw (8 of 3x3) - point (8) + conv1 - pool - fc (4): 16 x 16 x 3 in."""
    net = Net((3, 16, 16), name="small")
    x = net.conv("conv1", "x", 8, (3, 3), RELU, stride=(2, 2), pads=(1, 1, 1, 1))
    y = net.conv("dw", x, 8, (3, 3), Clip(0.0, 6.0), groups=8, pads=(1, 1, 1, 1))
    total = net.add("join", ElemWise("Sum"), x, net.conv("point", y, 8, (1, 1)))
    return net.done(net.fc("fc", net.add("pool", Pool("Average", (8, 8)), total), 4))


def large(blocks: int = 16) -> Graph:
    """Residual blocks of four layers with long names, and 1,000 classes."""
    net = Net((3, 32, 32), name="large")
    x = net.conv("features/0/conv", "x", 64, (1, 1), RELU)
    for number in range(1, blocks + 1):
        y = net.conv(f"features/{number}/conv/expand", x, 128, (1, 1), Clip(0.0, 6.0))
        y = net.conv(f"features/{number}/conv/depthwise", y, 128, (3, 3), Clip(0.0, 6.0), groups=128, pads=(1, 1, 1, 1))
        y = net.conv(f"features/{number}/conv/project", y, 64, (1, 1))
        x = net.add(f"features/{number}/add", ElemWise("Sum"), x, y)
    return net.done(net.fc("classifier", net.add("pool", Pool("Average", (32, 32)), x), 1000))


def random_histograms(graph: Graph, seed: int = 2, values: int = 20000) -> dict[str, Histogram]:
    """Histograms of plausible random values: rectified where the layer's activation is."""
    random = np.random.default_rng(seed)
    result = {}
    for name in calibrated_tensors(graph):
        real = random.laplace(0.0, 0.4 + random.random(), values).astype(np.float32)
        producer = graph.producer(name)
        if producer is not None and producer.activation is not None:
            real = producer.activation(real)
        result[name] = Histogram()
        result[name].add(real)
    return result


def random_score(name: str, classes: int, count: int, right: float, top_n: int = 1, seed: int = 3):
    """A score in which about `right` of the stimuli are hits."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    outputs = random.normal(0, 1, (count, classes))
    hit = random.random(count) < right
    outputs[np.arange(count)[hit], labels[hit]] += 8
    scorer = Scorer(ScoreTarget(name, name, top_n), [f"class {k}" for k in range(classes)])
    scorer.add(outputs, labels, [f"images/{k:05d}.png" for k in range(count)])
    return scorer.result()


def random_levels(kind: NumType, random: np.random.Generator) -> LevelCounts | None:
    """Counts of a thousand values; None for a floating-point type."""
    if kind.is_float:
        return None
    levels = LevelCounts(kind)
    real = random.normal(0.0, kind.scale * kind.qmax / 2, 1000)
    levels.add(real, kind.quantize(real))
    return levels


def report_data(graph: Graph, *, bits: int = 8, classes: int = 4, stimuli: int = 200, **changes) -> ReportData:
    """Everything that a report can show, for a graph whose last layer is the scored one."""
    options = QuantOptions(bits=bits) if bits > 0 else None
    histograms = random_histograms(graph) if bits > 0 else {}
    thresholds = {}
    if bits > 0:
        qgraph, types = quantize(graph, histograms, options)
        thresholds = types.thresholds
    else:
        qgraph = float_graph(graph, bits)
    problem = memory_problem(qgraph)
    target = graph.outputs[0] + ".Target"
    scores = [
        (label, random_score(target, classes, stimuli, right, min(5, classes)))
        for label, right in (("float", 0.93), ("simulated", 0.92), ("compiled", 0.92))
    ]
    random = np.random.default_rng(5)
    comparisons = [
        LayerComparison(
            n.name,
            n.outputs[0],
            float(12 + 30 * random.random()),
            0.999,
            0.01 * k,
            0.001,
            True,
            alone_db=40.0 - k,
            alone_error=0.005 * k,
            unused=0.25,
            worst=k,
            worst_db=10.0,
            levels=random_levels(qgraph.type(n.outputs[0]), random),
        )
        for k, n in enumerate(qgraph.nodes)
    ]
    worst = [
        StimulusComparison(
            k, f"images/{k:05d}.png", 1, 0.5 - 0.1 * k, 20.0 + k, 1, 1 + k % 2, random.integers(0, 256, (16, 16, 3), np.uint8)
        )
        for k in range(3)
    ]
    fields = {
        "network": graph.name,
        "graph": graph,
        "qgraph": qgraph,
        "quant": options,
        "histograms": histograms,
        "thresholds": thresholds,
        "problem": problem,
        "plan": plan_memory(problem),
        "scores": scores,
        "comparisons": comparisons,
        "options": {"-nbbits": bits, "-calib": -1, "-act-clipping-mode": "MSE"},
        "fusion": ["BatchNorm bn1 into conv1"],
        "pipeline": ["Rescale 16x16", "ColorSpace RGB"],
        "warnings": ["W502: an example"],
        "stimuli": worst,
    }
    return ReportData(**{**fields, **changes})
