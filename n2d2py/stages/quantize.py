"""Stage quantize: number types on every edge, integers or floating point."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from n2d2py import log
from n2d2py.contracts.quant.options import QuantOptions
from n2d2py.errors import N2D2Error
from n2d2py.exports import find_target, target_names
from n2d2py.graph import Graph, QuantGraph
from n2d2py.passes import FuseReport
from n2d2py.quant.calibration import Observed, quantize_observed
from n2d2py.quant.prequantized import quantize_prequantized
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.types.choose import TensorTypes
from n2d2py.quant.weights.narrow import weight_counts, with_low_bit_weights
from n2d2py.report import float_layers_in, float_layers_text, float_shares
from n2d2py.report.bits import BitSearch
from n2d2py.stages.accuracy import CheckedOutputs, Variant, check_accuracy, worse_outputs
from n2d2py.stages.budget import fit_budgets, prepared_for
from n2d2py.stages.calibrate import Calibration, calibrate_stage
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.options import QuantizationOptions, quant_options, suit_calibration, target_limits


@dataclass(frozen=True, repr=False)
class QuantizedNetwork:
    """A network with a number type on every edge, and the data that they were chosen from.

    Attributes:
        network: the fused float network with its data and targets.
        fused: what fused, and what did not.
        graph: the typed network.
        float_graph: the float network of the same layers.
        options: the options of the integers, None in floating point.
        observed, types: what the types were chosen from; None in floating point and for pre-quantized networks.
        quality: the quality that was asked for.
        search: how bits were chosen under `-flash-budget`; None without.
    """

    network: LoadedNetwork
    fused: FuseReport
    graph: QuantGraph
    float_graph: Graph
    options: QuantOptions | None = None
    observed: Observed | None = None
    types: TensorTypes | None = None
    quality: str = "default"
    search: BitSearch | None = None

    def __repr__(self) -> str:
        return repr(self.graph)


def quantize_stage(
    calibrated: Calibration | LoadedNetwork, options: QuantizationOptions, choices: Collection[str] = ()
) -> QuantizedNetwork:
    """Return the typed network for the target that it was loaded for: integers from a calibration, or floating point from a
    loaded network. `choices` are the names of options that were asked for and choose integers: W503 warns of those without
    effect on a pre-quantized network. Raise E51x for all layers without integer arithmetic together; E520, E521 budgets that
    cannot be met; E506 for another width than that of the file."""
    if isinstance(calibrated, LoadedNetwork):
        network, report = fuse_stage(calibrated, integer=False, rounding=False)
        return QuantizedNetwork(network, report, float_graph(network.graph, options.bits), network.graph)
    quantized = _quantize(calibrated, options, choices)
    if quantized.observed is None or quantized.types is None:
        return quantized
    quantized, checked = _keep_better(calibrated, options, quantized, CheckedOutputs(quantized.observed))
    biases = quantized.types.biases if quantized.types else None
    shifts, way = biases.shifts if biases else {}, Variant(calibrated.options, options)
    check_accuracy(quantized.graph, checked, shifts, way, lambda other: _quantize_variant(calibrated, other, checked.observed))
    return quantized


def _keep_better(
    calibrated: Calibration, options: QuantizationOptions, quantized: QuantizedNetwork, checked: CheckedOutputs
) -> tuple[QuantizedNetwork, CheckedOutputs]:
    """Return the network, or that of the default if an output with more bits or more corrections is worse than with the
    default. Each output is judged alone, and its rows by their own variance: the power of all outputs together hides small
    numbers. If there are enough samples, those that judge correct neither of the two networks."""
    quality = calibrated.options.quality
    if not checked.observed.checked or (quality != "best" and not options.mixed) or options.bits != 8:
        return quantized, checked
    calibration = replace(calibrated.options, quality="default") if quality == "best" else calibrated.options
    way = Variant(calibration, replace(options, mixed=options.mixed and None))
    with log.muted():
        plain = _quantize(_calibrate_variant(calibrated, way), way.quantization, ())
    worse = worse_outputs(quantized.graph, plain.graph, checked)
    if not worse:
        return quantized, checked
    asked = "-quality best" if quality == "best" else "-mixed-precision"
    lost = ", ".join(f"output '{name}' by {decibels:.1f} dB" for name, decibels in worse.items())
    log.notice("%s gives a worse result than the default: %s; the default is used", asked, lost)
    if calibration.withhold:  # the default corrects on all stimuli
        way = replace(way, calibration=replace(calibration, withhold=False))
        with log.muted():
            plain = _quantize(_calibrate_variant(calibrated, way), way.quantization, ())
    return plain, checked if plain.observed is None else CheckedOutputs(plain.observed)


def _quantize_variant(calibrated: Calibration, way: Variant, checking: Observed) -> tuple[QuantGraph, bool]:
    """Return the network in another way, if it can be exported, and whether it was computed without the stimuli of
    `checking`."""
    calibrated = _calibrate_variant(calibrated, way)
    quantized = _quantize(calibrated, way.quantization, ())
    if quantized.observed is not None:
        quantized, _ = _keep_better(calibrated, way.quantization, quantized, CheckedOutputs(quantized.observed))
    prepared_for(quantized.network, quantized.graph, find_target(quantized.network.options.target or target_names()[0])).check()
    observed = quantized.observed
    if observed is None or len(observed.checked) != len(checking.checked):
        return quantized.graph, False
    return quantized.graph, observed.fresh and all(map(np.array_equal, observed.checked, checking.checked))


def _calibrate_variant(calibrated: Calibration, way: Variant) -> Calibration:
    if way.precisions or way.calibration != calibrated.options or way.quantization.bits == 16:
        graph, observed = calibrated.network.graph.copy(), calibrated.observed
        graph.precisions.update({name: one.over(graph.precisions.get(name)) for name, one in way.precisions.items()})
        stimuli = observed.statistics.stimuli if observed else way.calibration.stimuli
        options = suit_calibration(replace(way.calibration, reload=None, stimuli=stimuli), way.quantization)
        calibrated = calibrate_stage(replace(calibrated.network, graph=graph), options)
    return calibrated


def _quantize(calibrated: Calibration, options: QuantizationOptions, choices: Collection[str]) -> QuantizedNetwork:
    network, report, observed = calibrated.network, calibrated.fused, calibrated.observed
    chosen = quant_options(calibrated.options, options, network.options.target, network.params.as_dict())
    quality = calibrated.options.quality
    if observed is None:
        check_prequantized(options.bits, [name for name in choices if name != "calib" or not network.trained_quantized])
        graph, real = quantize_prequantized(network.graph, chosen)
        graph = _as_computed(graph, network)
        log_float_layers(graph, real)
        return QuantizedNetwork(network, report, graph, real, chosen, quality=quality)
    if not observed.samples and (chosen.needs_samples or chosen.mixed):
        log.notice("without calibration samples, weights are rounded to nearest, without bias correction")
    search = None
    if options.flash_budget or options.ram_budget:
        network, observed, chosen, search = fit_budgets(network, observed, chosen, options)
    if options.weight_bits:
        observed = replace(observed, graph=with_low_bit_weights(observed.graph, options.weight_bits))
        _tell_narrow(observed.graph, options.weight_bits)
    graph, types = quantize_observed(observed, chosen)
    graph = _as_computed(graph, network)
    if target_limits(network.options.target).integer_layers is None:
        log_float_layers(graph, observed.graph)
    return QuantizedNetwork(network, report, graph, observed.graph, chosen, observed, types, quality, search)


def _tell_narrow(graph: Graph, bits: int) -> None:
    weights, width = weight_counts(graph), {node.name: graph.precision(node).weight_bits for node in graph.nodes}
    reached = [count for name, count in weights.items() if width[name] == bits]
    text = "-wt-bits: %d of %d layers with weights, %.1f %% of the weights"
    log.notice(text, len(reached), len(weights), 100 * sum(reached) / max(1, sum(weights.values())))


def _as_computed(graph: QuantGraph, network: LoadedNetwork) -> QuantGraph:
    """Return the network with the arithmetic of its target, if it has one."""
    target = network.options.target
    return graph if target is None else find_target(target).as_computed(graph, network.params.as_dict())


_NAMED = 3  # layers in floating point that the warning names
_SHOWN = 12  # layers in floating point that the table on the terminal has


def log_float_layers(graph: QuantGraph, real: Graph) -> None:
    """Print the table of layers in floating point. W507 if the user did not ask for them, E522 under -strict."""
    layers = float_layers_in(graph, real)
    if not layers:
        return
    log.notice("%s", float_layers_text(layers, _SHOWN).rstrip("\n"))
    silent = [one for one in layers if not one.asked]
    if silent:
        macs, size = float_shares(silent)
        shares = f"{100 * macs:.1f} % of the multiply-accumulates, {100 * size:.1f} % of the bytes"
        names = ", ".join(one.layer for one in silent[:_NAMED]) + (", ..." if len(silent) > _NAMED else "")
        what = f"{len(silent)} of {len(graph.nodes)} layers compute in floating point without Quantize=0 ({shares}): {names}"
        remedy = "read the reasons in statistics/float_layers.txt; set Quantize=0 for layers where this is intended"
        log.warning("W507", what, remedy=remedy, strict="E522")


def check_prequantized(bits: int, choices: Collection[str]) -> None:
    """Warn of `choices`, the options that choose integers, which a pre-quantized network brings: all but the arithmetic of
    rescaling. Raise E506 for another width than that of the file."""
    if bits != 8:
        what = f"-nbbits {bits} is not possible for a model that is already quantized to 8 bits"
        raise N2D2Error("E506", what, remedy="use -nbbits 8, or -nbbits -32 for floating point without rounding")
    lost = [f"-{name}" for name in sorted(choices) if name != "act-rescaling-mode"]
    if lost:
        what = f"{', '.join(lost)} has no effect: the model is already quantized and keeps its scales"
        log.warning("W503", what, remedy="remove it, or give the float model")
