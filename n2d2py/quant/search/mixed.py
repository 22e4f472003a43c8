"""Which activations to store in 16 bits: those whose rounding to 8 bits costs most at the outputs of the network.

Each tensor is rounded alone while everything else is floating point. Squares of independent errors add up, so the
fewest tensors are those with the largest squares.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    return Roundings(wide, sum(costs.values()), sum(cost for name, cost in costs.items() if name not in wide))


def measuring_stimuli(samples: Sequence[np.ndarray]) -> np.ndarray:
    """A few (N, ...) of the stimuli of batches, at even distances, on which single roundings are measured."""
    stimuli = np.concatenate(samples)
    return stimuli[np.unique(np.linspace(0, len(stimuli) - 1, _SAMPLES).round().astype(np.int64))]


def rounding_costs(graph: Graph, types: TensorTypes, stimuli: np.ndarray) -> dict[str, float]:
    """Mean square of what each 8-bit tensor's rounding changes at the outputs, by the variance of their rows, for those that could have 16 bits.

    `stimuli` (N, C, H, W) are those of the only input. Inputs and outputs of the network are left out.
    """
    holders = shared_tensors(graph)
    names = [name for name in holders if _can_be_wide(graph, types, name, holders[name])]
    engine = FloatEngine(graph, taps=list(graph.tensors))
    costs = dict.fromkeys(names, 0.0)
    count = 0
    batches = slices(graph, stimuli)
    power = output_weights(graph, batches)
    for index, batch in enumerate(batches):
        real = engine.run(batch)
        count += len(batch)
        for name in log.progress(names, f"tensors one by one {index + 1}/{len(batches)}", total=len(names), unit="tensor"):
            kind = types.types[name]
            rounded = {**real, name: kind.dequantize(kind.quantize(real[name]))}
            outputs = Tail(graph, [name]).outputs(rounded)
            costs[name] += sum(
                float((np.square(values - real[output], dtype=np.float64) * power[output]).sum())
                for output, values in outputs.items()
            )
    return {name: cost / max(count, 1) for name, cost in costs.items()}


def _can_be_wide(graph: Graph, types: TensorTypes, name: str, holders: Sequence[str]) -> bool:
    kind = types.types[name]
    if kind.is_float or kind.bits != 8 or any(held in graph.inputs or held in graph.outputs for held in holders):
        return False
    return any(graph.consumers(held) for held in holders)


def wide_tensors(costs: dict[str, float], remaining: float = REMAINING) -> frozenset[str]:
    """The fewest tensors without which at most `remaining` of all costs is left."""
    left, wide = sum(costs.values()), set()
    limit = remaining * left
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        if left <= limit:
            break
        wide.add(name)
        left -= costs[name]
    return frozenset(wide)
