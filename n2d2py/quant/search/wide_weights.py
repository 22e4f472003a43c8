"""Selection of the layers with 16-bit weights: those whose 8-bit rounding costs most at the outputs for their bytes.

The weights of each layer are rounded alone in the float network. Squares of independent errors add up, also with those of
activations (quant/search/mixed.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from n2d2py import log
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph
from n2d2py.quant.correct.layers import alternatives
from n2d2py.quant.quantize import typed_graph
from n2d2py.quant.search.bits import width_errors
from n2d2py.quant.search.mixed import Roundings, measuring_samples
from n2d2py.quant.types.choose import TensorTypes
from n2d2py.quant.weights.narrow import weight_counts

REMAINING = 0.12
"""Share of the squared rounding error that may remain: 9 dB less for independent errors. They are not quite independent; the
goal is 6 dB."""

_WIDTHS = (16, 8)


def layers_to_widen(
    graph: Graph, types: TensorTypes, samples: Sequence[np.ndarray], options: QuantOptions, roundings: Roundings
) -> frozenset[str]:
    """Return the layers with 16-bit weights, measured on a few of the `samples`, batches (n, ...); `roundings` of the
    activations."""
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

    `samples` are batches (n, ...) for the rounding, `stimuli` (N, ...) for the measurement.
    """
    able = [name for name in weight_counts(graph) if graph.precision(graph.node(name)).weight_bits is None]
    forms = alternatives(graph, types, samples, options, dict.fromkeys(able, _WIDTHS))
    errors = width_errors(graph, typed_graph(graph, types, options), forms, stimuli)
    return {name: max(0.0, by_bits[8] - by_bits[16]) for name, by_bits in errors.items()}


def wide_layers(
    costs: Mapping[str, float], counts: Mapping[str, int], roundings: Roundings, remaining: float = REMAINING
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
