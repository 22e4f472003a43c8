"""Stage fuse: fewer, larger layers with the same function."""

from dataclasses import replace

from n2d2py import log
from n2d2py.graph import Graph
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes import FuseReport, fuse
from n2d2py.quant.prequantized import without_rounding
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.options import target_limits
from n2d2py.targets.target import ScoreTarget


def fuse_stage(network: LoadedNetwork, *, integer: bool, rounding: bool = True) -> tuple[LoadedNetwork, FuseReport]:
    """Return the network with a fused graph; targets follow the tensors that now carry their results. Without `rounding`, a
    pre-quantized network becomes a float one, clipped to the ranges of its integers."""
    graph = network.graph
    if not rounding and is_quantized(graph):
        log.notice("the model is quantized: its float values keep their ranges without rounding")
        graph = without_rounding(graph)
    limits, logits = target_limits(network.options.target), network.options.drop_softmax
    rows = limits.softmax_rows
    # without rows, a pre-quantized network has no integers for it
    logits = logits or (integer and not (limits.last_softmax and (rows or not is_quantized(graph))))
    graph, report = fuse(graph, integer=integer, rows=rows, logits=logits)
    graph.verify()
    return with_graph(network, graph), report


def with_graph(network: LoadedNetwork, graph: Graph) -> LoadedNetwork:
    """Return the network with a rewritten graph; targets follow the tensors that now carry their results."""

    def moved(target: ScoreTarget) -> ScoreTarget:
        tensor = graph.resolve(target.tensor)
        return target if tensor is None else replace(target, tensor=tensor)

    return replace(network, graph=graph, targets=[moved(target) for target in network.targets])
