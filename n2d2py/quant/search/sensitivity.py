"""Accuracy loss of each layer: one layer at a time in integers, measured at the network outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from n2d2py import log
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode
from n2d2py.operators.concat import is_real_concat
from n2d2py.quant.search.isolation import Tail, run_isolated_layer, slices
from n2d2py.reference.engine import FloatEngine


@dataclass(frozen=True)
class LayerLoss:
    """Loss of a network in which only this layer computes in integers.

    Attributes:
        error: mean |output - float output| over the network outputs, in their units.
        power: mean square of the same, which ranks the layers; independent errors add up.
        agreement: share of samples whose largest output stays the same, 0..1.
        cause: main cause of the error of the layer's own output: "inputs", "weights", "bias correction", "output" (rounding) or
            "clipping".
        saturated: share of its output that is clipped, 0..1.
        bits, weight_bits: width of its narrowest tensor, and of its weights (0 without any).
    """

    layer: str
    operator: str
    error: float
    power: float
    agreement: float
    cause: str
    saturated: float
    bits: int
    weight_bits: int

    @property
    def remedy(self) -> str:
        """Text for the layer's section; "" if only a wider range or a global option helps."""
        if self.cause in ("clipping", "bias correction"):
            return ""
        if self.cause == "weights" and 0 < self.weight_bits <= 8:
            return f"QuantWeightBits={16 if self.weight_bits == 8 else 8}"
        return "QuantBits=16" if self.bits == 8 else "Quantize=0"


def layer_losses(
    graph: Graph,
    quantized: QuantGraph,
    stimuli: np.ndarray,
    shifts: Mapping[str, np.ndarray] | None = None,
    weights: Mapping[str, np.ndarray] | None = None,
) -> list[LayerLoss]:
    """Return the losses of all computing integer layers, the worst first; `graph` is the float network of `quantized`.

    `stimuli` (N, C, H, W) are samples of the input, or vectors of all inputs (graph/inputs.py). `shifts`: by layer, the bias
    correction (C); it compensates the layers before, and is an error next to float layers. `weights`: by output, factors of
    squared errors for the ranking; by default 1, 0 for missing outputs.
    """
    nodes = [
        node for node in quantized.nodes if quantized.is_integer(node) and not node.op.moves_values and not is_real_concat(node)
    ]
    engine = FloatEngine(graph, taps=list(graph.tensors))
    sums = {node.name: _Sums(weights) for node in nodes}
    batches = slices(graph, stimuli)
    for index, batch in enumerate(batches):
        real = engine.run(batch)
        for node in log.progress(nodes, f"layers one by one {index + 1}/{len(batches)}", total=len(nodes), unit="layer"):
            tail = Tail(graph, [node.output])
            sums[node.name].add(graph, quantized, node, real, tail, (shifts or {}).get(node.name))
    return sorted((sums[node.name].result(graph, quantized, node) for node in nodes), key=lambda loss: -loss.power)


_CAUSES = ("inputs", "weights", "bias correction", "output", "clipping")


class _Sums:
    """Sums of one layer over batches."""

    def __init__(self, weights: Mapping[str, np.ndarray] | None) -> None:
        self.weights = weights
        self.error = self.power = 0.0
        self.count = self.same = self.stimuli = self.clipped = self.stored = 0
        self.parts: dict[str, float] = dict.fromkeys(_CAUSES, 0.0)

    def add(
        self,
        graph: Graph,
        quantized: QuantGraph,
        node: QuantNode,
        real: dict[str, np.ndarray],
        tail: Tail,
        shift: np.ndarray | None,
    ) -> None:
        kind = quantized.type(node.output)
        stored = run_isolated_layer(quantized, node, real)
        restored = kind.dequantize(stored)
        outputs = tail.outputs({**real, node.output: restored})
        for name, values in outputs.items():
            error = values.astype(np.float64) - real[name]
            self.error += float(np.abs(error).sum())
            self.power += float((np.square(error) * (1.0 if self.weights is None else self.weights.get(name, 0.0))).sum())
            self.count += error.size
        first, expected = (values[graph.outputs[0]].reshape(len(stored), -1) for values in (outputs, real))
        self.same += int(np.count_nonzero(first.argmax(axis=1) == expected.argmax(axis=1)))
        self.stimuli += len(stored)
        self.clipped += int(np.count_nonzero(np.abs(real[node.output]) > kind.scale * (kind.qmax + 0.5)))
        self.stored += stored.size
        for part, power in _error_parts(graph, quantized, node, real, restored, shift).items():
            self.parts[part] += power

    def result(self, graph: Graph, quantized: QuantGraph, node: QuantNode) -> LayerLoss:
        weights = node.params.get("weights")
        return LayerLoss(
            node.name,
            node.op.kind,
            self.error / self.count,
            self.power / self.count,
            self.same / self.stimuli,
            max(self.parts, key=lambda part: self.parts[part]),
            self.clipped / self.stored,
            min(quantized.type(name).bits for name in (*node.inputs, node.output)),
            0 if weights is None else graph.precision(graph.node(node.name)).weight_bits or 8 * weights.dtype.itemsize,
        )


def _error_parts(
    graph: Graph,
    quantized: QuantGraph,
    node: QuantNode,
    real: dict[str, np.ndarray],
    restored: np.ndarray,
    shift: np.ndarray | None,
) -> dict[str, float]:
    """Return the error power of the layer's output from rounding its inputs, rounding its output, clipping, bias correction
    and, as the rest, rounding its weights."""
    source, exact = graph.node(node.name), real[node.output]
    inputs = [kind.dequantize(kind.quantize(real[name])) for name in node.inputs for kind in [quantized.type(name)]]
    values = source.op.run(inputs, source)[0]
    values = source.activation(values) if source.activation is not None else values
    kind = quantized.type(node.output)
    lost = np.square(kind.dequantize(kind.quantize(exact)) - exact, dtype=np.float64)
    beyond = np.abs(exact) > kind.scale * (kind.qmax + 0.5)
    parts = {
        "inputs": float(np.square(values - exact, dtype=np.float64).sum()),
        "output": float(lost[~beyond].sum()),
        "clipping": float(lost[beyond].sum()),
    }
    if shift is not None:
        parts["bias correction"] = _power_of_shift(source, inputs, values, shift)
    total = float(np.square(restored - exact, dtype=np.float64).sum())
    weighted = "weights" in node.params
    return {**parts, "weights": max(0.0, total - sum(parts.values())) if weighted else 0.0}


def _power_of_shift(source: Node, inputs: list[np.ndarray], values: np.ndarray, shift: np.ndarray) -> float:
    """Return the power of the change of a layer's output `values`, after its activation, by a change of its bias."""
    found = source.op.run(inputs, replace(source, params={**source.params, "bias": source.params["bias"] + shift}))[0]
    found = source.activation(found) if source.activation is not None else found
    return float(np.square(found - values, dtype=np.float64).sum())
