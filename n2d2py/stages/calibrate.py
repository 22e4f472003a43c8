"""Stage calibrate: the fused network and the statistics of its tensors, collected or reloaded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli, even_positions
from n2d2py.errors import N2D2Error
from n2d2py.graph import Graph
from n2d2py.graph.inputs import with_states
from n2d2py.graph.shapes import elements
from n2d2py.operators.quantize import is_quantized
from n2d2py.passes import FuseReport
from n2d2py.quant.calibration import Observed, observe, observed_before, prepare
from n2d2py.quant.observe.layerwise import SAMPLE_BATCH, sample_count
from n2d2py.quant.statistics import Statistics, assumed_statistics, batch_size, collect, network_key
from n2d2py.quant.types.choose import calibrated_tensors
from n2d2py.quant.types.float_fallback import with_target_forms
from n2d2py.quant.types.float_inputs import InputScales, choose_float_inputs, with_float_inputs
from n2d2py.quant.types.insert_requantize import complete_trained, unmeasured_inputs
from n2d2py.reference.engine import FloatEngine
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.options import CalibrationOptions, target_limits

_MOST_SAMPLES = {"fast": 32, "default": 96, "best": 288}
"""Number of samples for the corrections by quality; more cost time and change little."""

_INPUT_SAMPLES, _INPUT_ELEMENTS = (32, 288), 1_000_000
"""Numbers of samples from which the types of inputs are chosen, the second for small ones, and limit of values between."""

_FEWEST_CHECKED, _MOST_CHECKED = 8, 128  # stimuli that check the integers
_DOUBTED = 8  # factor of samples for the check of a network whose error is large
_WITHHELD = 4  # one sample of so many is withheld from the corrections
_CHECKED_ELEMENTS = 2_000_000  # limit of tensor values over the samples of the check, if more than the fewest are taken

_ASSUMED_VALUES = 1025  # number of values of a tensor that was not observed
_RARE = 101  # exponent of values in [0, 1] of which few are large: 8 bits leave less than 35 dB

STATISTICS_FILE = "statistics/calibration/statistics.npz"


@dataclass(frozen=True)
class AssumedRanges:
    """Ranges instead of a calibration, for results that depend on tensor types only.

    Attributes:
        reaches: largest values of tensors, in turn.
        lowest: smallest value of a tensor relative to its largest one; -1 to 0.
        inputs: the same for an input of unknown range.
        rare: large values of such an input are rare.
        text: a description of these ranges.
    """

    reaches: tuple[float, ...] = (1.0,)
    lowest: float = -1.0
    inputs: float = 0.0
    rare: bool = False
    text: str = ""


@dataclass(frozen=True, repr=False)
class Calibration:
    """A fused network and its observed ranges; none for a pre-quantized one."""

    network: LoadedNetwork
    fused: FuseReport
    options: CalibrationOptions
    observed: Observed | None

    def __repr__(self) -> str:
        return repr(self.network)


def calibration_folder_name(network: str, bits: int) -> str:
    """Return the folder of `-calibOnly`, such as calib_MobileNet_int8."""
    return f"calib_{network}_int{bits}"


def calibrate_stage(network: LoadedNetwork, options: CalibrationOptions, assumed: AssumedRanges | None = None) -> Calibration:
    """Fuse a loaded network for integers and calibrate it, or use `assumed` ranges. A pre-quantized network keeps its scales.
    Raise E507 without `-calib`, E508 without calibration samples."""
    if assumed is None:
        check_ranges(network, options)
    fused, report = fuse_stage(network, integer=True)
    if network.trained_quantized:
        return Calibration(replace(fused, graph=_complete_trained_network(fused, options, assumed)), report, options, None)
    if is_quantized(fused.graph):
        return Calibration(fused, report, options, None)
    limits = target_limits(network.options.target)
    per_output = options.per_output and limits.per_output
    supported = replace(options, per_output=per_output)
    sums = limits.integer_layers
    graph = fused.graph if sums is None else with_target_forms(fused.graph, sums)
    key = _key(graph, network, supported)
    if assumed is not None:
        inputs, observer = {}, partial(_assume_statistics, fused, assumed)
    elif options.reload is None:
        inputs = _float_inputs(fused, graph, supported)
        observer = partial(_collect_statistics, fused, supported, key, inputs)
    else:
        stored = Statistics.load(Path(options.reload), key)
        inputs, observer = stored.inputs, partial(_reload_statistics, fused, supported, stored)
    observed = observer(prepare(with_float_inputs(graph, inputs), per_output, options.equalize))
    return Calibration(fused, report, options, observed)


def check_ranges(network: LoadedNetwork, options: CalibrationOptions) -> None:
    """Raise E507 for a float network that is neither calibrated nor trained with quantizers."""
    calibrates = options.stimuli or options.reload is not None
    if not (calibrates or network.trained_quantized or is_quantized(network.graph)):
        what = "an integer export requires the ranges of its activations"
        raise N2D2Error("E507", what, where=network.place, remedy=_calibration_remedy(network))


def _calibration_remedy(network: LoadedNetwork) -> str:
    if set_to_calibrate(network) is not None or network.document is not None:
        return "add -calib N (-1 for the whole set), or export in floating point with -nbbits -32"
    data = "-calib-data PATH (a folder of images, or a .npy, .npz or .csv file)"
    return f"add {data}, or export in floating point with -nbbits -32"


def _float_inputs(network: LoadedNetwork, graph: Graph, options: CalibrationOptions) -> InputScales:
    """Return the inputs that are better left in floating point, if the target supports it."""
    stimuli = set_to_calibrate(network)
    free = target_limits(network.options.target).input_bits == 0 and network.data.value_range is None
    if not (free and options.float_inputs and stimuli):
        return {}
    stimuli = stimuli.sample_evenly(options.stimuli)
    most = np.clip(_INPUT_ELEMENTS // sum(elements(graph.shape(name)) for name in graph.inputs), *_INPUT_SAMPLES)
    chosen = stimuli.sample_evenly(min(len(stimuli), int(most)))
    scales_by_input = choose_float_inputs(graph, chosen.array(SAMPLE_BATCH), _ranges(graph, network))
    for name, scales in scales_by_input.items():
        how = f", with a scale for each of its {scales[0].size} channels" if scales.size else ""
        log.notice("the input '%s' stays in floating point%s: integers of one scale would cost more", name, how)
    return scales_by_input


def _complete_trained_network(network: LoadedNetwork, options: CalibrationOptions, assumed: AssumedRanges | None) -> Graph:
    """Return a QAT network with types for what its quantizers leave open; E507 if that needs a calibration."""
    graph, ranges = network.graph, _ranges(network.graph, network)
    wanted = unmeasured_inputs(graph, ranges)
    if assumed is not None:
        names = calibrated_tensors(graph) if options.stimuli or wanted or not is_quantized(graph) else []
        known = dict.fromkeys(names, (assumed.lowest, 1.0)) | dict.fromkeys(wanted, (assumed.inputs, 1.0))
        return complete_trained(graph, ranges, known)
    if options.stimuli == 0 and (wanted or not is_quantized(graph)):
        what = f"the range of the input '{wanted[0]}'" if wanted else "the ranges of its activations, which have no QAct"
        raise N2D2Error("E507", f"an integer export requires {what}", where=network.place, remedy=_calibration_remedy(network))
    if options.stimuli == 0:
        return complete_trained(graph, ranges, {})
    batches = _calibration_stimuli(network, options).watched_batches(batch_size(graph), "calibrating")
    statistics = collect(graph, (x for x, _, _ in batches))
    measured = {name: (histogram.minimum, histogram.maximum) for name, histogram in statistics.histograms.items()}
    return complete_trained(graph, ranges, measured)


def save_statistics(observed: Observed | None, folder: Path) -> None:
    """Write STATISTICS_FILE into a folder, for later calibrations."""
    if observed is not None:
        path = folder / STATISTICS_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        observed.statistics.save(path)


def _key(graph: Graph, network: LoadedNetwork, options: CalibrationOptions) -> str:
    """Return the key of network, layer precisions and kind of data in stored statistics."""
    precisions = repr(sorted(graph.precisions.items()))
    equalized = f"equalized by channel: {options.equalize and options.per_output}, inputs by axis: {options.float_inputs}"
    return network_key(graph, network.data.origin, precisions, equalized)


def _ranges(graph: Graph, network: LoadedNetwork) -> dict[str, tuple[float, float] | None]:
    return dict.fromkeys(graph.inputs, network.data.value_range)


def _collect_statistics(
    network: LoadedNetwork, options: CalibrationOptions, key: str, inputs: InputScales, graph: Graph
) -> Observed:
    stimuli, available = _calibration_stimuli(network, options), set_to_calibrate(network)
    samples = _samples(graph, stimuli, len(available or ()), options)
    _warn_of_samples(network, len(stimuli), samples)
    batches = (x for x, _, _ in stimuli.watched_batches(batch_size(graph), "calibrating"))
    by_channel = options.equalize and options.per_output
    observed = observe(graph, batches, samples, _ranges(graph, network), by_channel, key)
    observed.statistics.inputs = inputs
    log.notice("calibration: %d samples", observed.statistics.stimuli)
    return _add_checked_samples(observed, network, len(stimuli))


def _warn_of_samples(network: LoadedNetwork, count: int, samples: Sequence[np.ndarray]) -> None:
    """Print W414 if calibration has only one sample, or equal ones such as zeros."""
    equal = bool(samples) and all((batch == samples[0][:1]).all() for batch in samples)
    if equal or count == 1:
        samples_text = "one sample" if count == 1 else f"{count} equal samples"
        what = f"the network is calibrated on {samples_text}, so the ranges of its values are unknown"
        log.warning("W414", what, where=network.place, remedy="calibrate on some hundred samples like those in use")


def _reload_statistics(network: LoadedNetwork, options: CalibrationOptions, statistics: Statistics, graph: Graph) -> Observed:
    """Return the statistics of the last calibration; E503 if they are of other data. Without data nothing is compared."""
    path = Path(options.reload or "")
    if network.data.noise is not None:
        noise = network.data.noise(statistics.stimuli)
        network = replace(network, data=replace(network.data, sets={"Validation": noise}))
    stimuli = set_to_calibrate(network)
    samples: list[np.ndarray] = []
    if stimuli is not None:
        total, stimuli = len(stimuli), stimuli.sample_evenly(statistics.stimuli)
        statistics.check_data(path, (x for x, _, _ in stimuli.batches(SAMPLE_BATCH)))
        samples = _samples(graph, stimuli, total, options)
    log.notice("calibration: reloaded the statistics of %d samples", statistics.stimuli)
    observed = observed_before(graph, statistics, samples, _ranges(graph, network))
    return _add_checked_samples(observed, network, statistics.stimuli)


def _assume_statistics(network: LoadedNetwork, ranges: AssumedRanges, graph: Graph) -> Observed:
    statistics = assumed_statistics(graph, ranges.reaches, np.linspace(ranges.lowest, 1, _ASSUMED_VALUES))
    values = np.linspace(ranges.inputs, 1, _ASSUMED_VALUES)
    inputs = assumed_statistics(graph, ranges.reaches, values**_RARE if ranges.rare else values).histograms
    statistics.histograms.update({name: inputs[name] for name in graph.inputs if name in inputs})
    return Observed(graph, statistics, ranges=_ranges(graph, network))


def _add_checked_samples(observed: Observed, network: LoadedNetwork, calibrated: int) -> Observed:
    """Add the samples for the check: preferably those used neither for calibration nor corrections, else not for corrections,
    else any. Consecutive calls are checked from a reset on."""
    available = set_to_calibrate(network)
    if available is None:
        return observed
    graph = observed.graph
    count = min(_MOST_CHECKED, max(_FEWEST_CHECKED, _CHECKED_ELEMENTS // graph.element_count))
    pool, is_unseen = available, False
    if not graph.states:
        ranged = even_positions(len(available), calibrated)
        corrected = ranged[even_positions(len(ranged), sum(len(batch) for batch in observed.samples))]
        for used in (ranged, corrected):
            rest = np.setdiff1d(np.arange(len(available)), used)
            if len(rest) >= _FEWEST_CHECKED:
                pool, is_unseen = available.take(rest), True
                break

    size = SAMPLE_BATCH if graph.states else min(SAMPLE_BATCH, batch_size(graph))

    def batches(most: int) -> list[np.ndarray]:
        return [x for x, _, _ in pool.sample_evenly(most).batches(size)]

    doubted = partial(batches, _DOUBTED * count)
    return replace(observed, checked=batches(count), doubted=doubted, fresh=is_unseen, noise=network.data.random)


def _samples(graph: Graph, calibrated: Stimuli, total: int, options: CalibrationOptions) -> list[np.ndarray]:
    """Return batches for the corrections: evenly spaced calibration samples, as many as fit into memory. If none of the `total`
    samples would remain for the check, some are withheld, if the options say so."""
    most = _MOST_SAMPLES["best" if options.thorough else options.quality]
    count = min(len(calibrated), sample_count(graph), most)
    unseen, withheld = max(total - len(calibrated), len(calibrated) - count), min(len(calibrated) // _WITHHELD, _MOST_CHECKED)
    if options.withhold and not graph.states and unseen < _FEWEST_CHECKED <= withheld:
        count = len(calibrated) - withheld
    batches = [x for x, _, _ in calibrated.sample_evenly(count).watched_batches(SAMPLE_BATCH, "reading samples")]
    if graph.states:
        engine = FloatEngine(graph)
        batches = [with_states(graph, x, engine.run(x)) for x in batches]
    return batches


def set_to_calibrate(network: LoadedNetwork) -> Stimuli | None:
    """Return the Validation set, else Test; None without samples."""
    stimuli = network.data.get("Validation")
    return stimuli if stimuli is not None else network.data.get("Test")


def _calibration_stimuli(network: LoadedNetwork, options: CalibrationOptions) -> Stimuli:
    stimuli = set_to_calibrate(network)
    if stimuli is not None and network.data.get("Validation") is None:
        log.notice("the validation set is empty: the test set is used for calibration, so its int8 score is optimistic")
    if stimuli is None:
        remedy = "add a [database], or give -calib-data FOLDER|FILE.npy|FILE.npz"
        raise N2D2Error("E508", "the calibration set is empty", where=network.place, remedy=remedy)
    return stimuli.sample_evenly(options.stimuli)
