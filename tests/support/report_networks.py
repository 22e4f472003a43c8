"""Networks with random weights, quantized from histograms of random data, for reports."""

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.functions import Clip
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, Node
from n2d2py.memory.from_graph import memory_problem
from n2d2py.memory.strategies import plan_memory
from n2d2py.operators.conv import Conv
from n2d2py.operators.elemwise import ElemWise
from n2d2py.operators.fc import Fc
from n2d2py.operators.pool import Pool
from n2d2py.quant.calibration import quantize
from n2d2py.quant.observe.compare import LayerComparison
from n2d2py.quant.observe.level_counts import LevelCounts
from n2d2py.quant.observe.worst import StimulusComparison
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.types.choose import calibrated_tensors
from n2d2py.report import ReportData
from n2d2py.targets import Scorer
from n2d2py.targets.target import ScoreTarget


class Builder:
    """A float graph, layer by layer; every call returns the name of the tensor it makes."""

    def __init__(self, name: str, height: int, width: int, channels: int, seed: int = 1):
        self.graph = Graph(name)
        self.random = np.random.default_rng(seed)
        self.input = self.graph.add_input("data", (1, channels, height, width))

    def _add(self, name: str, op, inputs, params=None, activation=None) -> str:
        self.graph.add(Node(name, op, list(inputs), [name], params or {}, activation))
        return name

    def conv(self, name, x, outputs, kernel=1, stride=1, groups=1, activation=None) -> str:
        inputs = self.graph.shape(x)[1]
        shape = (outputs, inputs // groups, kernel, kernel)
        weights = self.random.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape).astype(np.float32)
        bias = self.random.normal(0, 0.1, outputs).astype(np.float32)
        op = Conv(stride=(stride, stride), pads=(kernel // 2,) * 4, groups=groups)
        return self._add(name, op, [x], {"weights": weights, "bias": bias}, activation)

    def fc(self, name, x, outputs) -> str:
        inputs = int(np.prod(self.graph.shape(x)[1:]))
        weights = self.random.normal(0, np.sqrt(1 / inputs), (outputs, inputs)).astype(np.float32)
        return self._add(name, Fc(), [x], {"weights": weights, "bias": np.zeros(outputs, np.float32)})

    def add(self, name, *inputs) -> str:
        return self._add(name, ElemWise("Sum"), inputs)

    def pool(self, name, x) -> str:
        return self._add(name, Pool("Average", self.graph.shape(x)[2:]), [x])

    def done(self, *outputs: str) -> Graph:
        self.graph.outputs = list(outputs)
        return self.graph


def small() -> Graph:
    """conv1 (8 of 3x3x3, /2) - dw (8 of 3x3) - point (8) + conv1 - pool - fc (4): 16 x 16 x 3 in."""
    b = Builder("small", 16, 16, 3)
    x = b.conv("conv1", b.input, 8, 3, 2, activation=Clip(0.0))
    y = b.conv("point", b.conv("dw", x, 8, 3, groups=8, activation=Clip(0.0, 6.0)), 8)
    return b.done(b.fc("fc", b.pool("pool", b.add("join", x, y)), 4))


def mobilenet_v2() -> Graph:
    """The layers of MobileNetV2 1.0 224."""
    b = Builder("mobilenet_v2", 224, 224, 3)
    relu6 = Clip(0.0, 6.0)
    x, channels, block = b.conv("features/0/conv", b.input, 32, 3, 2, activation=relu6), 32, 0
    for expand, outputs, repeats, first in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for k in range(repeats):
            block, stride = block + 1, first if k == 0 else 1
            name, y, wide = f"features/{block}/conv", x, channels * expand
            if expand > 1:
                y = b.conv(f"{name}/expand", y, wide, activation=relu6)
            y = b.conv(f"{name}/depthwise", y, wide, 3, stride, wide, relu6)
            y = b.conv(f"{name}/project", y, outputs)
            x = b.add(f"features/{block}/add", x, y) if stride == 1 and channels == outputs else y
            channels = outputs
    x = b.conv("features/18/conv", x, 1280, activation=relu6)
    return b.done(b.fc("classifier", b.pool("pool", x), 1000))


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
