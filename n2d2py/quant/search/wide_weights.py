"""Which layers get 16-bit weights: those whose rounding to 8 bits costs most at the outputs for the bytes that they take.

Each layer has its weights rounded alone, while everything else is floating point. Squares of independent errors add up, with those
of the activations too (quant/search/mixed.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from n2d2py import log
from n2d2py.graph import Graph
from n2d2py.quant.correct.layers import alternatives
from n2d2py.quant.options import QuantOptions
from n2d2py.quant.quantize import typed_graph
from n2d2py.quant.search.bits import width_errors
from n2d2py.quant.search.mixed import Roundings, measuring_stimuli
from n2d2py.quant.types.choose import TensorTypes
from n2d2py.quant.weights.narrow import weight_counts

REMAINING = 0.12
"""Share of the squared error of all roundings to 8 bits that may be left together: 9 dB less where the errors of layers are
independent. They are not quite; 6 dB is what is wanted."""

_WIDTHS = (16, 8)


def layers_to_widen(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, roundings: Roundings
) -> frozenset[str]:
    """The layers to give 16-bit weights, by a few of the stimuli of `samples`, batches (n, ...); `roundings` of the activations."""
    costs = weight_costs(graph, types, samples, measuring_stimuli(samples), options)
    counts = weight_counts(graph)
    wide = wide_layers(costs, counts, roundings)
    text = "mixed precision: weights of %d of %d layers in 16 bits, %.1f %% of the weights"
    log.notice(text, len(wide), len(counts), 100 * sum(counts[name] for name in wide) / max(1, sum(counts.values())))
    log.detail("weights in 16 bits: %s", ", ".join(sorted(wide)))
    return wide


def weight_costs(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], stimuli: np.ndarray, options: QuantOptions
) -> dict[str, float]:
    """Mean square of what 8 bits for the weights of a layer change at the outputs, for layers whose section says no width.

    `samples` are batches (n, ...) that round the weights, `stimuli` (N, ...) those that are measured.
    """
    able = [name for name in weight_counts(graph) if graph.precision(graph.node(name)).weight_bits is None]
    forms = alternatives(graph, types, samples, options, dict.fromkeys(able, _WIDTHS))
    errors = width_errors(graph, typed_graph(graph, types, options), forms, stimuli)
    return {name: max(0.0, by_bits[8] - by_bits[16]) for name, by_bits in errors.items()}


def wide_layers(
    costs: Mapping[str, float], counts: Mapping[str, int], roundings: Roundings, remaining: float = REMAINING
) -> frozenset[str]:
    """The layers without whose rounding at most `remaining` of the costs of all activations and weights is left.

    Those that cost most for each of their weights (`counts`) come first.
    """
    left = roundings.left + sum(costs.values())
    limit, wide = remaining * (roundings.total + sum(costs.values())), set()
    for name in sorted(costs, key=lambda name: (-costs[name] / counts[name], name)):
        if left <= limit:
            break
        wide.add(name)
        left -= costs[name]
    return frozenset(wide)
