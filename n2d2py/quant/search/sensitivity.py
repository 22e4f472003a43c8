"""Which layers cost the accuracy: each in integers alone, its loss measured at the outputs of the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from n2d2py import log
from n2d2py.graph import Graph, Node, QuantGraph, QuantNode
from n2d2py.operators.concat import is_real_concat
from n2d2py.quant.search.isolation import Tail, isolated, slices
from n2d2py.reference.engine import FloatEngine


@dataclass(frozen=True)
class LayerLoss:
    """Loss of a network when this layer alone computes in integers.

    Attributes:
        error: mean |output - float output| over the outputs of the network, in their units.
        power: mean of the square of the same, by which layers are ranked; of independent errors it adds up.
        agreement: share of stimuli whose largest output stays the same, 0..1.
        cause: "inputs", "weights", "bias correction", "output" or "clipping": what gives most of the error of the layer's own output,
            "output" being its rounding alone.
        saturated: share of its output that is clipped, 0..1.
        bits, weight_bits: width of the narrowest tensor that it reads or writes, and of its weights (0 without any).
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
        """Text for the layer's section; "" where only a wider range helps, or an option for all layers."""
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
    """The losses of all integer layers that compute, the worst first; `graph` is the float network of `quantized`.

    `stimuli` (N, C, H, W) are those of the input, or vectors of all inputs (graph/inputs.py). `shifts`: by layer, what a correction
    added to its bias (C): it corrects the layers before, and is an error where they are floating point. `weights`: by output, the
    factors of squared errors by which layers are ranked; 1 without, 0 for the outputs that it leaves out.
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
    """The sums of one layer over batches."""

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
        stored = isolated(quantized, node, real)
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
        for part, power in _parts(graph, quantized, node, real, restored, shift).items():
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


def _parts(
    graph: Graph,
    quantized: QuantGraph,
    node: QuantNode,
    real: dict[str, np.ndarray],
    restored: np.ndarray,
    shift: np.ndarray | None,
) -> dict[str, float]:
    """Power of the error of the layer's output from rounding its inputs, rounding and clipping its output, the
    correction of its bias, and (the rest) rounding its weights."""
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
        parts["bias correction"] = _shifted(source, inputs, values, shift)
    total = float(np.square(restored - exact, dtype=np.float64).sum())
    weighted = "weights" in node.params
    return {**parts, "weights": max(0.0, total - sum(parts.values())) if weighted else 0.0}


def _shifted(source: Node, inputs: list[np.ndarray], values: np.ndarray, shift: np.ndarray) -> float:
    """Power of what a change of a layer's bias changes of its output `values`, after its activation."""
    found = source.op.run(inputs, replace(source, params={**source.params, "bias": source.params["bias"] + shift}))[0]
    found = source.activation(found) if source.activation is not None else found
    return float(np.square(found - values, dtype=np.float64).sum())
