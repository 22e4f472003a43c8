"""Accuracy loss of each layer: one layer at a time in integers, measured at the network outputs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py.graph import Graph, QuantGraph, QuantNode
from n2d2py.operators import is_real_concat
from n2d2py.quant.search.isolation import Tail, each_on_batches, run_isolated_layer, slices


@dataclass(frozen=True)
class LayerLoss:
    """Loss of a network in which only this layer computes in integers.

    Attributes:
        error: mean |output - float output| over the network outputs, in their units.
        power: mean square of the same, which ranks the layers; independent errors add up.
        agreement: share of samples whose largest output stays the same, 0..1.
        cause: main cause of the error of the layer's own output, one of `_CAUSES`; "output" is rounding.
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
    sums = [_Sums(graph, quantized, node, weights, (shifts or {}).get(node.name)) for node in nodes]
    for one, real in each_on_batches(graph, slices(graph, stimuli), sums, "layers one by one", "layer"):
        one.add(real)
    return sorted((one.result() for one in sums), key=lambda loss: -loss.power)


_CAUSES = ("inputs", "weights", "bias correction", "output", "clipping")


@dataclass
class _Sums:
    """Sums of one layer over batches, and its error by cause; `shift`: its bias correction (C)."""

    graph: Graph
    quantized: QuantGraph
    node: QuantNode
    weights: Mapping[str, np.ndarray] | None
    shift: np.ndarray | None
    sums: Counter = field(default_factory=Counter)
    parts: Counter = field(default_factory=lambda: Counter(dict.fromkeys(_CAUSES, 0.0)))

    def add(self, real: dict[str, np.ndarray]) -> None:
        node, kind = self.node, self.quantized.type(self.node.output)
        stored = run_isolated_layer(self.quantized, node, real)
        restored = kind.dequantize(stored)
        outputs = Tail(self.graph, [node.output]).outputs({**real, node.output: restored})
        for name, values in outputs.items():
            error = values.astype(np.float64) - real[name]
            weights = 1.0 if self.weights is None else self.weights.get(name, 0.0)
            power = float((np.square(error) * weights).sum())
            self.sums.update({"error": float(np.abs(error).sum()), "power": power, "count": error.size})
        first, expected = (values[self.graph.outputs[0]].reshape(len(stored), -1) for values in (outputs, real))
        same = int(np.count_nonzero(first.argmax(axis=1) == expected.argmax(axis=1)))
        clipped = int(np.count_nonzero(np.abs(real[node.output]) > kind.scale * (kind.qmax + 0.5)))
        self.sums.update(same=same, stimuli=len(stored), clipped=clipped, stored=stored.size)
        self.parts.update(self._error_parts(real, restored))

    def _error_parts(self, real: dict[str, np.ndarray], restored: np.ndarray) -> dict[str, float]:
        """Return the error power of the layer's output from rounding its inputs, rounding its output, clipping, bias correction
        and, as the rest, rounding its weights."""
        source, exact = self.graph.node(self.node.name), real[self.node.output]
        kinds = {name: self.quantized.type(name) for name in self.node.inputs}
        inputs = [kinds[name].dequantize(kinds[name].quantize(real[name])) for name in self.node.inputs]
        values, kind = source.compute(inputs)[0], self.quantized.type(self.node.output)
        lost = np.square(kind.dequantize(kind.quantize(exact)) - exact, dtype=np.float64)
        beyond = np.abs(exact) > kind.scale * (kind.qmax + 0.5)
        parts = {
            "inputs": float(np.square(np.subtract(values, exact, dtype=np.float64)).sum()),
            "output": float(lost[~beyond].sum()),
            "clipping": float(lost[beyond].sum()),
        }
        if self.shift is not None:
            shifted = replace(source, params={**source.params, "bias": source.params["bias"] + self.shift})
            parts["bias correction"] = float(np.square(shifted.compute(inputs)[0] - values, dtype=np.float64).sum())
        total = float(np.square(restored - exact, dtype=np.float64).sum())
        weighted = "weights" in self.node.params
        return {**parts, "weights": max(0.0, total - sum(parts.values())) if weighted else 0.0}

    def result(self) -> LayerLoss:
        node, weights, weight_bits = self.node, self.node.params.get("weights"), 0
        if weights is not None:
            weight_bits = self.graph.precision(self.graph.node(node.name)).weight_bits or 8 * weights.dtype.itemsize
        sums, cause = self.sums, max(self.parts, key=lambda part: self.parts[part])
        shares = sums["error"] / sums["count"], sums["power"] / sums["count"], sums["same"] / sums["stimuli"]
        bits = min(self.quantized.type(name).bits for name in (*node.inputs, node.output))
        return LayerLoss(node.name, node.op.kind, *shares, cause, sums["clipped"] / sums["stored"], bits, weight_bits)
