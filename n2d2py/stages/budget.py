"""Bit widths under a budget: `-ram-budget` chooses activations and memory plan, `-flash-budget` the weights of each layer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.data.stimuli import even_positions
from n2d2py.errors import N2D2Error, result_unless
from n2d2py.exports import Prepared, StoredStimuli, Target, find_target, target_names
from n2d2py.graph import Graph, QuantGraph, QuantNode
from n2d2py.ini.params import Params
from n2d2py.quant.calibration import Observed, choose_observed_types, quantize_observed
from n2d2py.quant.correct.layers import alternatives
from n2d2py.quant.observe.judged import relative_errors
from n2d2py.quant.quantize import form_integers, typed_graph
from n2d2py.quant.search.bits import Front, WidthChoice, front, improved, width_errors
from n2d2py.quant.simulator import quantize_inputs, simulate_all
from n2d2py.quant.weights.narrow import can_be_narrow, with_weight_bits
from n2d2py.reference.engine import FloatEngine
from n2d2py.report.bits import BitChoice, BitSearch
from n2d2py.stages.export import export_request
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.memory import plan_network
from n2d2py.stages.options import QuantizationOptions

_WIDTHS = (16, 8, 4, 2)
_STIMULI = 16  # number of samples for rounding single layers and measuring choices
_HELD_OUT = 4
"""One batch of so many measures, the others round: on the samples used for rounding, low bit widths of small layers seem to
cost nothing."""
_MEASURED = 3  # number of measured choices of the front, in addition to the selected one and 4 bits for all
_TRIES = 60  # number of exchanges of bits between layers that are measured, with weights rounded alone
_BEST = 8  # number of the best exchanges that are also measured as exported


Fitted = tuple[LoadedNetwork, Observed, QuantOptions, BitSearch | None]
"""Settings that fit the budgets: the network with export parameters, its layers with bit widths, options of the types, the
search."""


def fit_budgets(network: LoadedNetwork, observed: Observed, options: QuantOptions, asked: QuantizationOptions) -> Fitted:
    """Choose bit widths of activations and weights, and the memory mode, so that the export fits the budgets. Raise E520 for
    constants, E521 memory that no choice makes small enough; E508 without samples; errors of the target."""
    target = find_target(network.options.target or target_names()[0])
    network = _without_parameter(network, target, "PrepackWeights")
    if asked.ram_budget:
        network, options = _fit_memory(network, observed, options, asked, target)
    if not asked.flash_budget:
        return network, observed, options, None
    if not observed.samples:
        what = "-flash-budget requires samples to measure the cost of low-bit weights"
        raise N2D2Error("E508", what, remedy="add a [database], or give -calib-data FOLDER|FILE.npy|FILE.npz")
    network = _without_parameter(network, target, "Winograd")
    return _Search(network, observed, options, target).fitted(asked.flash_budget)


def _without_parameter(network: LoadedNetwork, target: Target, name: str) -> LoadedNetwork:
    """Return the network without an optional export parameter that trades memory for speed."""
    if target.parameters.key(name) is None or network.params.is_given(name):
        return network
    return replace(network, params=network.params.with_values({name: False}))


def _fit_memory(
    network: LoadedNetwork, observed: Observed, options: QuantOptions, asked: QuantizationOptions, target: Target
) -> tuple[LoadedNetwork, QuantOptions]:
    """Return the most accurate activations whose memory fits; if none do, the fastest memory mode in which they fit."""
    budget = asked.ram_budget
    if not target.needs_plan:
        what = f"-ram-budget is not supported by {target.name}, which places its memory itself"
        raise N2D2Error("E521", what, remedy="remove -ram-budget")
    small = replace(options, mixed=False, input_bits=8, output_bits=8, wide_concats=False)
    wide = replace(options, mixed=True)
    able = options.bits == 8 and asked.mixed is None and target.quantization.mixed and bool(observed.samples)
    ways = [*([wide] if able else []), options, *([small] if options.bits == 8 and small != options else [])]
    typed = {way: form_integers(observed.graph, choose_observed_types(observed, way), way, {}) for way in ways}
    limited, sizes = network.params.with_values({"MemoryBudget": budget}), []
    for params, way in [*((network.params, way) for way in ways), *((limited, way) for way in ways[-2:])]:
        planned = result_unless("E607", plan_network, typed[way], params, target)
        if planned is None:
            free = network.params.with_values({"MemoryBudget": 0})
            sizes.append(plan_network(typed[way], free, target).plan.arena_bytes)
            continue
        size = planned.plan.arena_bytes
        sizes.append(size)
        if size <= budget:
            bits = [tensor.type.bits for tensor in typed[way].tensors.values()]
            text = "-ram-budget: %s of %s bytes used, %d of %d tensors in 16 bits"
            log.notice(text, f"{size:,}", f"{budget:,}", sum(one == 16 for one in bits), len(bits))
            return replace(network, params=params), way
    what = f"-ram-budget {budget} is too small: the smallest arena found has {min(sizes):,} bytes"
    remedy = f"give at least {min(sizes)} bytes, see -memory-report, or use a smaller input"
    raise N2D2Error("E521", what, remedy=remedy)


def _with_widths(observed: Observed, widths: Mapping[str, int]) -> Observed:
    return replace(observed, graph=with_weight_bits(observed.graph, dict(widths)))


class _Search:
    """The front of one network, and the value of its choices."""

    def __init__(self, network: LoadedNetwork, observed: Observed, options: QuantOptions, target: Target):
        self._network, self._options, self._target, self._whole = network, options, target, observed
        holdout, rest = observed.samples[_HELD_OUT - 1 :: _HELD_OUT], list(observed.samples)
        if holdout:
            rest = [batch for place, batch in enumerate(observed.samples) if place % _HELD_OUT != _HELD_OUT - 1]
        self._observed = replace(observed, samples=rest)
        graph = observed.graph
        self._types = choose_observed_types(observed, options)
        widths = [bits for bits in _WIDTHS if bits <= options.bits]
        able = [node for node in graph.nodes if "weights" in node.params and graph.precision(node).weight_bits is None]
        able = [node for node in able if can_be_narrow(graph, node)]
        self._forms = alternatives(graph, self._types, rest, options, {node.name: widths for node in able})
        stimuli = np.concatenate(holdout or rest)
        self._stimuli = stimuli[even_positions(len(stimuli), _STIMULI)]
        self._real = FloatEngine(graph).run(self._stimuli)
        sizes = {bits: self._sizes({name: forms[bits] for name, forms in self._forms.items()}) for bits in widths}
        errors = width_errors(graph, typed_graph(graph, self._types, options), self._forms, self._stimuli)
        self._choices = {}
        for name, forms in self._forms.items():
            self._choices[name] = [WidthChoice(bits, sizes[bits].get(name, 0), errors[name][bits]) for bits in forms]
        first = sizes[widths[0]]
        self._fixed = sum(size for name, size in first.items() if name not in self._choices)
        self._front: Front = front(self._choices, self._fixed)
        self._known: dict[tuple[int, ...], BitChoice] = {}

    def fitted(self, budget: int) -> Fitted:
        """Return the best choice found with at most `budget` bytes of constants."""
        place = self._front.within(budget)
        while place is not None and self._measured(self._front.widths(place)).bytes > budget:
            place = place - 1 if place else None
        if place is None:
            least = int(self._front.bytes[0])
            what = f"-flash-budget {budget} is too small: with the fewest bits, the constants have {least:,} bytes"
            raise N2D2Error("E520", what, remedy=f"give at least {least} bytes, or use a smaller model")
        start, uniform = self._front.widths(place), dict.fromkeys(self._forms, 4)
        exchanged = improved(self._choices, start, budget - self._fixed, self._noise_as_rounded_alone, _TRIES)[:_BEST]
        fitting = [one for one in map(self._measured, (start, *exchanged, uniform)) if one.bytes <= budget]
        winner = replace(min(fitting, key=self._noise_of_both), name="taken")
        log.notice("-flash-budget: %s of %s bytes of constants used", f"{winner.bytes:,}", f"{budget:,}")
        measured = [winner, replace(self._measured(uniform), name="all 4 bits"), *self._others(place)]
        front = [(int(size), float(error)) for size, error in zip(self._front.bytes, self._front.errors, strict=True)]
        weights = {name: self._observed.graph.node(name).params["weights"].size for name in start}
        search = BitSearch(budget, winner, measured, front, weights)
        return self._network, _with_widths(self._whole, winner.widths), self._options, search

    def _others(self, index: int) -> list[BitChoice]:
        wanted = np.geomspace(self._front.bytes[0], self._front.bytes[-1], _MEASURED)
        places = {int(np.searchsorted(self._front.bytes, size, side="right")) - 1 for size in wanted} - {index}
        return [self._measured(self._front.widths(place)) for place in sorted(places)]

    def _measured(self, widths: Mapping[str, int]) -> BitChoice:
        """Return the accuracy of a choice with all its roundings on held-out samples."""
        key = tuple(widths.values())
        if key not in self._known:
            graph = quantize_observed(_with_widths(self._observed, widths), self._options)[0]
            predicted = sum(one.error for name, each in self._choices.items() for one in each if one.bits == widths[name])
            outputs = self._outputs(graph)
            decibels = -10 * float(np.log10(max(self._noise(outputs), 1e-30)))
            pairs = [(values, self._real[name]) for name, values in outputs.items()]
            same = [np.equal(*(each.reshape(len(each), -1).argmax(axis=1) for each in pair)) for pair in pairs]
            size, agreement = sum(self._bytes(graph).values()), float(np.mean(same)) if same else 1.0
            self._known[key] = BitChoice("", dict(widths), size, predicted, decibels, agreement)
        return self._known[key]

    def _noise_as_rounded_alone(self, widths: Mapping[str, int]) -> float:
        """Return the error of a choice with each layer rounded in the network of the largest widths."""
        forms = {name: self._forms[name][bits] for name, bits in widths.items()}
        return self._noise(self._outputs(form_integers(self._observed.graph, self._types, self._options, forms)))

    def _noise_of_both(self, choice: BitChoice) -> float:
        """Return the errors of a choice under two roundings, alone and sequential: with few samples one of them would be too
        random."""
        return self._noise_as_rounded_alone(choice.widths) + 10 ** (-choice.sqnr_db / 10)

    def _outputs(self, graph: QuantGraph) -> dict[str, np.ndarray]:
        stored = simulate_all(graph, quantize_inputs(graph, [self._stimuli]), 4)
        kinds = {name: graph.type(name) for name in graph.outputs}
        return {name: kind.dequantize(stored[name]) for name, kind in kinds.items() if not kind.plain}

    def _noise(self, outputs: Mapping[str, np.ndarray]) -> float:
        """Return the squared error relative to the variance of each row, averaged over all outputs."""
        errors = [by_row for _, by_row in relative_errors(self._real, outputs).values()]
        return float(np.mean(errors)) if errors else 0.0

    def _sizes(self, forms: Mapping[str, QuantNode]) -> dict[str, int]:
        graph: Graph = self._observed.graph
        return self._bytes(form_integers(graph, self._types, self._options, forms))

    def _bytes(self, graph: QuantGraph) -> dict[str, int]:
        """Return the bytes of constants by layer in the export of a typed network."""
        prepared = prepared_for(self._network, graph, self._target)
        prepared.check()
        return self._target.constant_bytes(prepared)


def prepared_for(network: LoadedNetwork, graph: QuantGraph, target: Target[Any]) -> Prepared[Any]:
    """Prepare a typed network for a target, without samples."""
    params: Params = network.params
    memory = plan_network(graph, params, target) if target.needs_plan else None
    return target.prepare(export_request(network, memory.graph if memory else graph, memory, StoredStimuli(), {}))
