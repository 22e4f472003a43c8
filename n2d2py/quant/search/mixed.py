"""Which activations to store in 16 bits: those whose rounding to 8 bits costs most at the outputs of the network.

Each tensor is rounded alone while everything else is floating point. Squares of independent errors add up, so the
fewest tensors are those with the largest squares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.graph import Graph
from n2d2py.quant.search.isolation import Tail, output_weights, slices
from n2d2py.quant.types.choose import TensorTypes, shared_tensors
from n2d2py.reference.engine import FloatEngine

_SAMPLES = 16
"""Stimuli on which single tensors are rounded."""

REMAINING = 0.1
"""Share of the squared error of all roundings that the tensors left in 8 bits may cause together."""

ROW_REMAINING = 0.1
"""The same share of each row of an output that has many values, such as a row of boxes: the scores next to it weigh more together."""


@dataclass(frozen=True)
class Roundings:
    """The tensors to store in 16 bits, and mean squares at the outputs: of the roundings of all to 8 bits, and of those left."""

    wide: frozenset[str]
    total: float
    left: float


def tensors_to_widen(graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray]) -> Roundings:
    """The tensors to store in 16 bits, by a few of the stimuli of `samples`, batches (n, C, H, W) of the only input."""
    costs = rounding_costs(graph, types, measuring_stimuli(samples))
    wide = wide_tensors(costs)
    log.notice("mixed precision: %d of %d activations in 16 bits", len(wide), len(costs))
    log.detail("in 16 bits: %s", ", ".join(sorted(wide)))
    totals = {name: float(cost.sum()) for name, cost in costs.items()}
    return Roundings(wide, sum(totals.values()), sum(total for name, total in totals.items() if name not in wide))


def measuring_stimuli(samples: Sequence[np.ndarray]) -> np.ndarray:
    """A few (N, ...) of the stimuli of batches, at even distances, on which single roundings are measured."""
    stimuli = np.concatenate(samples)
    return stimuli[np.unique(np.linspace(0, len(stimuli) - 1, _SAMPLES).round().astype(np.int64))]


def rounding_costs(graph: Graph, types: TensorTypes, stimuli: np.ndarray) -> dict[str, np.ndarray]:
    """Variance of what each 8-bit tensor's rounding changes at the outputs, by that of their rows, for those that could have 16 bits.

    One cost for each row of an output that has many values, and one for each other output.

    `stimuli` (N, C, H, W) are those of the only input. Inputs and outputs of the network are left out.
    """
    holders = shared_tensors(graph)
    names = [name for name in holders if _can_be_wide(graph, types, name, holders[name])]
    engine = FloatEngine(graph, taps=list(graph.tensors))
    batches = slices(graph, stimuli)
    power = output_weights(graph, batches)
    sums = {name: {output: _Sums(power[output]) for output in graph.outputs} for name in names}
    for index, batch in enumerate(batches):
        real = engine.run(batch)
        for name in log.progress(names, f"tensors one by one {index + 1}/{len(batches)}", total=len(names), unit="tensor"):
            kind = types.types[name]
            rounded = {**real, name: kind.dequantize(kind.quantize(real[name]))}
            for output, values in Tail(graph, [name]).outputs(rounded).items():
                sums[name][output].add(values - real[output].astype(np.float64))
    return {name: np.concatenate([each.costs() for each in by_output.values()]) for name, by_output in sums.items()}


class _Sums:
    """Errors of an output over batches. The mean error of a row is left out: biases take it up."""

    def __init__(self, power: np.ndarray) -> None:
        self._power, self._axes = power, tuple(axis for axis, size in enumerate(power.shape) if size == 1)
        self._total = self._squares = np.zeros(power.shape)
        self._stimuli = self._values = 0

    def add(self, error: np.ndarray) -> None:
        """The errors (n, ...) of a batch."""
        self._total = self._total + error.sum(axis=self._axes, keepdims=True)
        self._squares = self._squares + np.square(error).sum(axis=self._axes, keepdims=True)
        self._stimuli += len(error)
        self._values += error.size // self._power.size

    def costs(self) -> np.ndarray:
        """The sum of squares by `power` of each row, for each stimulus; that of all rows where each has one value of a stimulus."""
        mean = self._total / max(self._values, 1) if self._stimuli > 1 else 0.0
        found = ((self._squares - mean * self._total) * self._power).reshape(-1) / max(self._stimuli, 1)
        return found if self._values > self._stimuli else found.sum(keepdims=True)


def _can_be_wide(graph: Graph, types: TensorTypes, name: str, holders: Sequence[str]) -> bool:
    kind = types.types[name]
    if kind.is_float or kind.bits != 8 or any(held in graph.inputs or held in graph.outputs for held in holders):
        return False
    return any(graph.consumers(held) for held in holders)


def wide_tensors(
    costs: Mapping[str, np.ndarray], remaining: float = REMAINING, row_remaining: float = ROW_REMAINING
) -> frozenset[str]:
    """The fewest tensors without which at most `remaining` of all costs, and `row_remaining` of those of each row, is left."""
    left = sum(costs.values(), np.zeros(1))
    limit, row_limits, wide = remaining * left.sum(), row_remaining * left, set()
    while len(wide) < len(costs) and (left.sum() > limit or (left > row_limits).any()):
        counted = np.ones(len(left)) if left.sum() > limit else np.eye(len(left))[(left - row_limits).argmax()]
        shares = {name: float(cost @ counted) for name, cost in costs.items() if name not in wide}
        name = max(sorted(shares), key=lambda each, shares=shares: shares[each])
        wide.add(name)
        left = left - costs[name]
    return frozenset(wide)
