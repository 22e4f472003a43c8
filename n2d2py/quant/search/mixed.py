"""Selection of the activations and weights with 16 bits: those whose 8-bit rounding costs most at the network outputs.

Each tensor, or the weights of each layer, is rounded alone in the float network. Squares of independent errors add up, so the
largest squares give the fewest tensors, and for weights the largest ones for their bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph
from n2d2py.quant.correct.layers import alternatives
from n2d2py.quant.quantize import typed_graph
from n2d2py.quant.search.bits import width_errors
from n2d2py.quant.search.isolation import Tail, each_on_batches, output_weights, slices
from n2d2py.quant.types.choose import TensorTypes, shared_tensors
from n2d2py.quant.weights.narrow import weight_counts

_SAMPLES = 16
"""Number of samples on which single tensors are rounded."""

REMAINING = 0.1
"""Share of the squared rounding error that the 8-bit tensors may cause together."""

ROW_REMAINING = 0.1
"""The same share for each row of an output with many values, such as a row of boxes next to scores."""

WEIGHTS_REMAINING = 0.12
"""Share with weights: 9 dB less for independent errors. They are not quite independent; the goal is 6 dB."""


@dataclass(frozen=True)
class Roundings:
    """The tensors to store in 16 bits, and mean squares at the outputs of rounding: of all tensors, and of the remaining
    ones."""

    wide: frozenset[str]
    total: float
    left: float


def tensors_to_widen(graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray]) -> Roundings:
    """Return the tensors to store in 16 bits, measured on a few of the `samples`, batches (n, C, H, W) of the only input."""
    costs = rounding_costs(graph, types, measuring_samples(samples))
    wide = wide_tensors(costs)
    log.notice("mixed precision: %d of %d activations in 16 bits", len(wide), len(costs))
    log.detail("in 16 bits: %s", ", ".join(sorted(wide)))
    totals = {name: float(cost.sum()) for name, cost in costs.items()}
    return Roundings(wide, sum(totals.values()), sum(total for name, total in totals.items() if name not in wide))


def measuring_samples(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Return a few samples (N, ...) of batches, evenly spaced, for measuring single roundings."""
    stimuli = np.concatenate(samples)
    return stimuli[np.unique(np.linspace(0, len(stimuli) - 1, _SAMPLES).round().astype(np.int64))]


def rounding_costs(graph: Graph, types: TensorTypes, stimuli: np.ndarray) -> dict[str, np.ndarray]:
    """Return, for each 8-bit tensor that could have 16 bits, the variance of its rounding error at the outputs, relative to
    that of their rows.

    One cost for each row of an output with many values, and one for each other output. `stimuli` (N, C, H, W) are samples of
    the only input. Network inputs and outputs are not included.
    """
    holders = shared_tensors(graph)
    names = [name for name in holders if _can_be_wide(graph, types, name, holders[name])]
    batches = slices(graph, stimuli)
    power = output_weights(graph, batches)
    sums = {name: {output: _Sums(power[output]) for output in graph.outputs} for name in names}
    for name, real in each_on_batches(graph, batches, names, "tensors one by one", "tensor"):
        kind = types.types[name]
        rounded = {**real, name: kind.dequantize(kind.quantize(real[name]))}
        for output, values in Tail(graph, [name]).outputs(rounded).items():
            sums[name][output].add(values - real[output].astype(np.float64))
    return {name: np.concatenate([each.costs() for each in by_output.values()]) for name, by_output in sums.items()}


class _Sums:
    """Errors of an output over batches, without the mean error of each row, which biases compensate."""

    def __init__(self, power: np.ndarray) -> None:
        self._power, self._axes = power, tuple(axis for axis, size in enumerate(power.shape) if size == 1)
        self._total = self._squares = np.zeros(power.shape)
        self._stimuli = self._values = 0

    def add(self, error: np.ndarray) -> None:
        self._total = self._total + error.sum(axis=self._axes, keepdims=True)
        self._squares = self._squares + np.square(error).sum(axis=self._axes, keepdims=True)
        self._stimuli += len(error)
        self._values += error.size // self._power.size

    def costs(self) -> np.ndarray:
        """Return the sum of squares by `power` of each row and sample; of all rows together if each has one value a sample."""
        mean = self._total / max(self._values, 1) if self._stimuli > 1 else 0.0
        squares = ((self._squares - mean * self._total) * self._power).reshape(-1) / max(self._stimuli, 1)
        return squares if self._values > self._stimuli else squares.sum(keepdims=True)


def _can_be_wide(graph: Graph, types: TensorTypes, name: str, holders: Sequence[str]) -> bool:
    kind = types.types[name]
    if kind.is_float or kind.bits != 8 or any(tensor in graph.inputs or tensor in graph.outputs for tensor in holders):
        return False
    return any(graph.consumers(tensor) for tensor in holders)


def wide_tensors(
    costs: Mapping[str, np.ndarray], remaining: float = REMAINING, row_remaining: float = ROW_REMAINING
) -> frozenset[str]:
    """Return the fewest tensors without which at most `remaining` of all costs, and `row_remaining` of each row's, remain."""
    left = sum(costs.values(), np.zeros(1))
    limit, row_limits, wide = remaining * left.sum(), row_remaining * left, set()
    while len(wide) < len(costs) and (left.sum() > limit or (left > row_limits).any()):
        counted = np.ones(len(left)) if left.sum() > limit else np.eye(len(left))[(left - row_limits).argmax()]
        shares = {name: float(cost @ counted) for name, cost in costs.items() if name not in wide}
        name = max(sorted(shares), key=lambda each, shares=shares: shares[each])
        wide.add(name)
        left = left - costs[name]
    return frozenset(wide)


# ---- weights ------------------------------------------------------------------------------------


def layers_to_widen(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, roundings: Roundings
) -> frozenset[str]:
    """Return the layers with 16-bit weights, measured on a few of the `samples` (n, ...); `roundings` of the activations."""
    costs = weight_costs(graph, types, samples, measuring_samples(samples), options)
    counts = weight_counts(graph)
    wide = wide_layers(costs, counts, roundings)
    text = "mixed precision: weights of %d of %d layers in 16 bits, %.1f %% of the weights"
    log.notice(text, len(wide), len(counts), 100 * sum(counts[name] for name in wide) / max(1, sum(counts.values())))
    log.detail("weights in 16 bits: %s", ", ".join(sorted(wide)))
    return wide


def weight_costs(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], stimuli: np.ndarray, options: QuantOptions
) -> dict[str, float]:
    """Return the mean square at the outputs of rounding a layer's weights to 8 bits, for layers without a requested width.
    `samples` are batches (n, ...) for the rounding, `stimuli` (N, ...) for the measurement."""
    able = [name for name in weight_counts(graph) if graph.precision(graph.node(name)).weight_bits is None]
    forms = alternatives(graph, types, samples, options, dict.fromkeys(able, (16, 8)))
    errors = width_errors(graph, typed_graph(graph, types, options), forms, stimuli)
    return {name: max(0.0, by_bits[8] - by_bits[16]) for name, by_bits in errors.items()}


def wide_layers(
    costs: Mapping[str, float], counts: Mapping[str, int], roundings: Roundings, remaining: float = WEIGHTS_REMAINING
) -> frozenset[str]:
    """Return the layers without which at most `remaining` of all costs remains, ordered by cost per weight (`counts`)."""
    left = roundings.left + sum(costs.values())
    limit, wide = remaining * (roundings.total + sum(costs.values())), set()
    for name in sorted(costs, key=lambda name: (-costs[name] / counts[name], name)):
        if left <= limit:
            break
        wide.add(name)
        left -= costs[name]
    return frozenset(wide)
