"""From a fused float network to integers, in five steps; this module alone knows their order.

1. prepare: layers without integer form stay in floating point, weights of neighbouring layers are equalized.
2. observe: statistics of the float network over stimuli, collected now or by an earlier calibration.
3. choose types: a number type for every tensor, with `mixed` some with 16 bits, with `wide_weights` weights of some layers too.
4. correct: weights rounded and biases set for the outputs of each layer, with `sequential` ranges chosen again.
5. form integers: constants, rescales and clamps of every layer.

Each step is a function of values that returns a value. Reloaded statistics are another way to observe; mixed precision and
sequential ranges are decided inside of one step each.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.histogram import Histogram
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.graph import Graph, QuantGraph
from n2d2py.quant.correct.channels import channel_factors, equalize, scale_channels
from n2d2py.quant.correct.layers import correct
from n2d2py.quant.quantize import form_integers
from n2d2py.quant.search.mixed import layers_to_widen, tensors_to_widen
from n2d2py.quant.statistics import Statistics, collect
from n2d2py.quant.types.choose import InputRanges, TensorTypes, choose_types
from n2d2py.quant.types.float_fallback import insert_conversions
from n2d2py.quant.weights.narrow import with_weight_bits


@dataclass(frozen=True)
class Observed:
    """Observations of a prepared network before its integer types are chosen.

    Attributes:
        graph: the float network, its channels scaled by the factors of the statistics.
        statistics: histograms of its tensors.
        samples: batches (n, C, H, W) for the corrections; without any, there are none.
        ranges: value range of inputs, None if it is calibrated.
        checked: batches on which the integers are checked; `fresh` if neither ranges nor corrections used them, `noise` if they
            are synthetic.
        doubted: returns more samples, for a network whose error is large on `checked`.
    """

    graph: Graph
    statistics: Statistics
    samples: Sequence[np.ndarray] = ()
    ranges: InputRanges = field(default_factory=dict)
    checked: Sequence[np.ndarray] = ()
    doubted: Callable[[], Sequence[np.ndarray]] = tuple
    fresh: bool = False
    noise: bool = False


def quantize(
    graph: Graph,
    histograms: dict[str, Histogram],
    options: QuantOptions,
    ranges: InputRanges | None = None,
    samples: Sequence[np.ndarray] = (),
) -> tuple[QuantGraph, TensorTypes]:
    """Return the integer network for a prepared float graph and the histograms of its calibrated tensors.

    `samples` are batches (n, C, H, W) of the only input for the corrections in `options`; without any, there are none. Raises
    N2D2Error (E51x, all layers without integer arithmetic together).
    """
    return quantize_observed(Observed(graph, Statistics(histograms), samples, ranges or {}), options)


def quantize_observed(observed: Observed, options: QuantOptions) -> tuple[QuantGraph, TensorTypes]:
    """Run steps 3 to 5; return the integer network and its types. Raises N2D2Error (E51x, all layers without integer form)."""
    observed, options = settle_wide_tensors(observed, options)
    types = choose_observed_types(observed, options)
    types, layers = correct(observed.graph, types, observed.samples, options)
    return form_integers(observed.graph, types, options, layers), types


def prepare(graph: Graph, per_output: bool, equalized: bool) -> Graph:
    """Step 1: return an equivalent graph with conversions around float layers.

    Weights are `equalized` if they have one scale for each layer, not `per_output`; else activations are, in step 2. Raises
    N2D2Error (E510 a layer without integer form and float kernel).
    """
    graph = insert_conversions(graph)
    return equalize(graph) if equalized and not per_output else graph


def observe(
    graph: Graph, batches: Iterable[np.ndarray], samples: Sequence[np.ndarray], ranges: InputRanges, by_channel: bool, key: str
) -> Observed:
    """Step 2: collect statistics of a prepared graph over batches (n, C, H, W); with `by_channel`, equalize its channels on
    `samples`. Raises N2D2Error (E504 a tensor that is not finite, E508 no samples)."""
    factors = channel_factors(graph, samples) if by_channel else {}
    scaled = scale_channels(graph, factors)
    return Observed(scaled, replace(collect(scaled, batches, key), factors=factors), samples, ranges)


def observed_before(graph: Graph, statistics: Statistics, samples: Sequence[np.ndarray], ranges: InputRanges) -> Observed:
    """Step 2 with the statistics of an earlier calibration of the same prepared graph."""
    return Observed(scale_channels(graph, statistics.factors), statistics, samples, ranges)


def settle_wide_tensors(observed: Observed, options: QuantOptions) -> tuple[Observed, QuantOptions]:
    """Choose the tensors and weights with 16 bits by the cost of rounding: `wide` of the options, bit widths of the graph.
    Without samples none are chosen. Repeated calls change nothing."""
    if not (options.mixed and observed.samples):
        return observed, replace(options, mixed=False, wide_weights=False)
    graph, samples = observed.graph, observed.samples
    roundings = tensors_to_widen(graph, _types(observed, options), samples)
    settled = replace(options, mixed=False, wide_weights=False, wide=roundings.wide)
    if options.wide_weights:
        wide = layers_to_widen(graph, _types(observed, settled), samples, settled, roundings)
        observed = replace(observed, graph=with_weight_bits(graph, dict.fromkeys(wide, 16)))
    return observed, settled


def choose_observed_types(observed: Observed, options: QuantOptions) -> TensorTypes:
    """Step 3: choose a number type for every tensor."""
    types = _types(*settle_wide_tensors(observed, replace(options, wide_weights=False)))
    for one in types.coarse:
        log.warning(one.code, one.what, where=one.where, remedy=one.remedy)
    return types


def _types(observed: Observed, options: QuantOptions) -> TensorTypes:
    return choose_types(observed.graph, observed.statistics.histograms, observed.ranges, options)
