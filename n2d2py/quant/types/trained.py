"""Types that quantization-aware training leaves open: inputs, tensors without QAct, weights without QWeight.

They get 8 bits here, from known ranges or calibration, which makes the network a pre-quantized one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.graph import Graph, Node
from n2d2py.operators.concat import Concat
from n2d2py.operators.pointwise import Affine
from n2d2py.operators.pool import Pool
from n2d2py.operators.quantize import Quantize, grid_type, values_source
from n2d2py.quant.types.widths import feeds_output_softmax

Range = tuple[float, float]


def unmeasured_inputs(graph: Graph, ranges: Mapping[str, Range | None]) -> list[str]:
    """Return the unquantized inputs of unknown range."""
    return [name for name in graph.inputs if _is_unquantized(graph, name) and ranges.get(name) is None]


def complete_trained(graph: Graph, ranges: Mapping[str, Range | None], measured: Mapping[str, Range]) -> Graph:
    """Return a copy with quantized inputs, over `ranges` or else `measured`, and quantized weights.

    Other unquantized tensors are quantized if their range was `measured`. The rest keeps 16 or 32 bits over the largest
    possible range (`insert_requantize`): averages of pools, outputs, and the input of an output Softmax always do.
    """
    graph = graph.copy()
    for node in graph.nodes:
        if "weights" in node.params and "weight_scales" not in node.params and not isinstance(node.op, Affine):
            node.params = {**node.params, **_quantize_weights(node.params["weights"])}
    known = {name: limits if (limits := ranges.get(name)) is not None else measured.get(name) for name in graph.inputs}
    for name in graph.inputs:
        limits = known[name]
        if _is_unquantized(graph, name) and limits is not None:
            _insert_quantize(graph, name, limits, 0)
    for node in list(graph.nodes):
        inside = node.output not in graph.outputs and not feeds_output_softmax(graph, node.output)
        if node.output in measured and _is_computed(node) and inside and _is_unquantized(graph, node.output):
            _insert_quantize(graph, node.output, measured[node.output], graph.nodes.index(node) + 1)
    graph.verify()
    return graph


def _is_computed(node: Node) -> bool:
    return not (isinstance(node.op, (Quantize, Concat, Pool)) or node.op.moves_values)


def _is_unquantized(graph: Graph, tensor: str) -> bool:
    """True if a layer consumes a tensor that nothing quantizes."""
    if graph.kind(tensor) or grid_type(graph, tensor) is not None or values_source(graph, tensor) != tensor:
        return False
    return any(not isinstance(node.op, Quantize) for node in graph.consumers(tensor))


def _quantize_weights(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return float weights (O, ...) rounded to 8 bits, with a scale for each output."""
    rows = np.abs(weights.astype(np.float64)).reshape(len(weights), -1).max(axis=1)
    scales = (np.where(rows > 0, rows, 1.0) / 127).astype(np.float32)
    each = scales.astype(np.float64).reshape(-1, *(1,) * (weights.ndim - 1))
    return {"weights": (np.rint(weights / each) * each).astype(np.float32), "weight_scales": scales}


def _insert_quantize(graph: Graph, tensor: str, limits: Range, at: int) -> None:
    """Insert a Quantize of a tensor over a range before all its other consumers."""
    low, high = limits
    largest = max(-low, high)
    kind = NumType(8, low < 0)
    kind = kind.with_scale(float(np.float32((largest if largest > 0 else 1.0) / kind.qmax)))
    name = graph.fresh_name(f"{tensor}_quantized")
    readers = [node for node in graph.consumers(tensor) if not isinstance(node.op, Quantize)]
    graph.add(Node(name, Quantize(kind), [tensor], [name]), at=at)
    for node in readers:
        node.inputs = [name if source == tensor else source for source in node.inputs]
