"""Stage calibrate: float statistics over stimuli, then integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import N2D2Error
from n2d2py.export import target_names
from n2d2py.graph import Graph, QuantGraph
from n2d2py.operators.quantize import is_quantized
from n2d2py.quant.calibration import Observed, calibrate, observe, observed_before
from n2d2py.quant.imported import quantize_imported
from n2d2py.quant.layerwise import SAMPLE_BATCH, sample_count
from n2d2py.quant.quantize import float_graph
from n2d2py.quant.statistics import Statistics, batch_size, network_key
from n2d2py.quant.types import TensorTypes
from n2d2py.stages.load import Network
from n2d2py.stages.settings import Settings, export_folder_name

__all__ = ["STATISTICS_FILE", "Calibration", "calibrate_stage", "calibration_folder_name"]

_MOST_SAMPLES = {"fast": 32, "default": 64, "best": 256}
"""Stimuli for the corrections by `-quality`; more of them cost time and change little."""

STATISTICS_FILE = "statistics/calibration/statistics.npz"


@dataclass(frozen=True)
class Calibration:
    """The typed network and, for integers, what its types were chosen from."""

    graph: QuantGraph
    float_graph: Graph
    statistics: Statistics | None = None
    types: TensorTypes | None = None


def calibration_folder_name(network: str, bits: int) -> str:
    """Such as calib_MobileNet_int8, the folder of `-calibOnly`."""
    return f"calib_{network}_int{bits}"


def calibrate_stage(network: Network, settings: Settings) -> Calibration:
    """Types on every edge: floating point, or integers from statistics that are collected or reloaded.

    A network that comes quantized keeps its scales.

    Raises:
        N2D2Error: E50x; E507 without `-calib`, E508 when there are no stimuli to calibrate on.
    """
    graph = network.graph
    if not settings.integer:
        return Calibration(float_graph(graph, settings.arguments.nbbits), graph)
    options = settings.quant
    if is_quantized(graph):
        check_imported(settings)
        return Calibration(*quantize_imported(graph, options))
    require_calibration(settings)
    found = calibrate(graph, options, partial(_reloaded if settings.arguments.calib_reload else _collected, network, settings))
    return Calibration(found.graph, found.float_graph, found.statistics, found.types)


_WITHOUT_EFFECT = (
    "calib",
    "calib_reload",
    "act_clipping_mode",
    "act_quantile_value",
    "wt_clipping_mode",
    "act_rescale_per_output",
    "quality",
    "wt_rounding",
    "no_bias_correction",
    "input_bits",
    "output_bits",
    "no_unsigned",
    "no_cle",
    "mixed_precision",
    "no_mixed_precision",
    "sequential_calibration",
    "wt_reduce_range",
)
"""Options that choose integers, which a quantized network brings."""


def check_imported(settings: Settings) -> None:
    """Warns of options that have no effect on a network that comes quantized.

    Raises:
        N2D2Error: E506 for another width than that of the file, E007 for `-calibOnly`.
    """
    arguments = settings.arguments
    if arguments.nbbits != 8:
        raise N2D2Error(
            "E506",
            f"-nbbits {arguments.nbbits}, but the network is quantized to 8 bits",
            remedy="use -nbbits 8, or -nbbits -32 for floating point without rounding",
        )
    if arguments.calibOnly:
        raise N2D2Error(
            "E007", "-calibOnly, but the network is quantized already", remedy=f"export it with -export {target_names()[0]}"
        )
    given = [f"-{key.replace('_', '-')}" for key in _WITHOUT_EFFECT if key in arguments.given]
    if given:
        log.warning(
            "W503",
            f"{', '.join(given)} without effect: the network is quantized already, and keeps its scales",
            remedy="leave it out, or give the floating-point network",
        )


def require_calibration(settings: Settings) -> None:
    """Raises E507 where an integer export is asked for without calibration."""
    if settings.arguments.calib == 0 and not settings.arguments.calib_reload:
        raise N2D2Error(
            "E507",
            "an integer export needs the ranges of its activations",
            remedy="add -calib N (-1 for the whole set), or export in floating point with -nbbits -32",
        )


def _key(graph: Graph, network: Network, settings: Settings) -> str:
    """Names the network and the kind of its data in stored statistics."""
    return network_key(graph, network.data.origin, f"equalized by channel: {settings.quant.equalizes_channels}")


def _ranges(graph: Graph, network: Network) -> dict[str, tuple[float, float] | None]:
    return dict.fromkeys(graph.inputs, network.data.value_range)


def _collected(network: Network, settings: Settings, graph: Graph) -> Observed:
    """Statistics of a prepared graph over the calibration stimuli."""
    options = settings.quant
    stimuli = calibration_stimuli(network, settings)
    needed = options.equalizes_channels or options.needs_samples or options.mixed
    samples = correction_samples(graph, network, settings, len(stimuli)) if needed else []
    size = batch_size(graph)
    batches = log.progress(
        (x for x, _, _ in stimuli.batches(size)), "calibrating", total=-(-len(stimuli) // size), unit="batch"
    )
    found = observe(graph, batches, samples, _ranges(graph, network), options, _key(graph, network, settings))
    log.notice("calibration: %d stimuli", found.statistics.stimuli)
    return found


def _reloaded(network: Network, settings: Settings, graph: Graph) -> Observed:
    """Statistics of the last calibration: E503 where they are of other data. Without data there is nothing to compare."""
    path = previous_statistics(network, settings)
    statistics = Statistics.load(path, _key(graph, network, settings))
    if network.data.noise is not None:
        noise = network.data.noise(statistics.stimuli)
        network = replace(network, data=replace(network.data, sets={"Validation": noise}))
    stimuli = set_to_calibrate(network)
    if stimuli is not None:
        statistics.check_data(path, (x for x, _, _ in spread(stimuli, statistics.stimuli).batches(SAMPLE_BATCH)))
    log.notice("calibration: statistics of %d stimuli reloaded", statistics.stimuli)
    needed = settings.quant.needs_samples or settings.quant.mixed
    samples = correction_samples(graph, network, settings, statistics.stimuli) if needed else []
    return observed_before(graph, statistics, samples, _ranges(graph, network))


def correction_samples(graph: Graph, network: Network, settings: Settings, calibrated: int) -> list[np.ndarray]:
    """Batches for the corrections: as many of the `calibrated` stimuli as fit into memory together, spread evenly.

    With reloaded statistics they are read again; none, with a notice, where the data are no longer there.
    """
    found = set_to_calibrate(network)
    if found is None:
        log.notice("without calibration stimuli, weights are rounded to the nearest and biases are not corrected")
        return []
    count = min(calibrated, sample_count(graph), _MOST_SAMPLES[settings.arguments.quality])
    chosen = spread(spread(found, calibrated), count)
    batches = log.progress(
        (x for x, _, _ in chosen.batches(SAMPLE_BATCH)), "reading samples", total=-(-len(chosen) // SAMPLE_BATCH), unit="batch"
    )
    return list(batches)


def set_to_calibrate(network: Network) -> Stimuli | None:
    """Validation, else Test; None without stimuli."""
    stimuli = network.data.get("Validation")
    return stimuli if stimuli is not None else network.data.get("Test")


def calibration_stimuli(network: Network, settings: Settings) -> Stimuli:
    """The first `-calib` stimuli, spread evenly over Validation, else over Test."""
    stimuli = set_to_calibrate(network)
    if stimuli is not None and network.data.get("Validation") is None:
        log.notice("there is no validation set: the test set calibrates, so its int8 score is optimistic")
    if stimuli is None:
        raise N2D2Error(
            "E508",
            "there are no stimuli to calibrate on",
            where=str(network.files[0]),
            remedy="add a [database], or give -calib-data FOLDER|FILE.npy|FILE.npz",
        )
    count = settings.arguments.calib
    return stimuli if count < 0 else spread(stimuli, count)


def spread(stimuli: Stimuli, count: int) -> Stimuli:
    """`count` stimuli at even distances, so that sorted sets are sampled over all their classes."""
    if count >= len(stimuli):
        return stimuli
    return stimuli.take(np.unique(np.linspace(0, len(stimuli) - 1, count).round().astype(np.int64)))


def previous_statistics(network: Network, settings: Settings) -> Path:
    """Where the last calibration of this network left its statistics."""
    bits = settings.arguments.nbbits
    places = [settings.out / calibration_folder_name(network.graph.name, bits) / STATISTICS_FILE]
    if settings.arguments.export:
        places.insert(0, settings.out / export_folder_name(settings.arguments.export, bits) / STATISTICS_FILE)
    found = [place for place in places if place.is_file()]
    return max(found, key=lambda place: place.stat().st_mtime) if found else places[0]
