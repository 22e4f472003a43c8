"""The order of the stages: the only module that knows it."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py import log
from n2d2py.data.stimuli import Stimuli
from n2d2py.errors import ErrorList, N2D2Error
from n2d2py.exports import (
    ExportFolder,
    KernelChoice,
    Manifest,
    Prepared,
    StoredStimuli,
    Target,
    find_target,
    refuse_replacement,
    refuse_unwritable,
    target_names,
)
from n2d2py.graph import Graph, QuantGraph
from n2d2py.memory.from_graph import PlannedNetwork
from n2d2py.memory.settings import Settings
from n2d2py.operators.quantize import is_quantized
from n2d2py.quant.calibration import quantize_observed
from n2d2py.stages.accuracy import CheckedOutputs, worse_outputs
from n2d2py.stages.calibrate import STATISTICS_FILE, calibrate_stage, calibration_folder_name, check_ranges, save_statistics
from n2d2py.stages.compare import Comparison, compare_stage, sensitivity_stage
from n2d2py.stages.export import (
    check_app,
    check_labels,
    export_folder_name,
    export_request,
    export_stage,
    exported_stimuli,
    stored_stimuli,
    warn_without_effect,
)
from n2d2py.stages.fuse import fuse_stage
from n2d2py.stages.load import LoadedNetwork, load_stage
from n2d2py.stages.memory import plan_stage
from n2d2py.stages.memory_report import memory_report
from n2d2py.stages.options import SYNTHETIC_STIMULI, RunOptions, ScoreOptions
from n2d2py.stages.quantize import QuantizedNetwork, check_prequantized, quantize_stage
from n2d2py.stages.report import BuildMetrics, Checked, measured, pipeline_data, report_stage
from n2d2py.stages.score import Scores, compiled_scores, score_stage, scored_stimuli, stream_score, stream_scores
from n2d2py.stages.score_decisions import check_boxes, read_recordings
from n2d2py.stages.train import train_stage
from n2d2py.stages.values import write_outputs
from n2d2py.targets.scorer import refuse_positions

if TYPE_CHECKING:
    from n2d2py.frontend.models import Source


@dataclass(frozen=True)
class ExportJob:
    """Sources of an export: the request of its target, and the tested stimuli with those that it holds."""

    quantized: QuantizedNetwork
    options: RunOptions
    tested: Stimuli | None
    stored: StoredStimuli
    positions: np.ndarray
    memory: PlannedNetwork | None
    target: Target[Any]
    prepared: Prepared[Any]
    manifest: Manifest

    @property
    def planned(self) -> QuantizedNetwork:
        """The network as its memory is planned: with the layers that the memory stage fused."""
        return replace(self.quantized, graph=self.memory.graph) if self.memory else self.quantized


@dataclass(frozen=True, repr=False)
class ExportRun:
    """A written export in the folder of its project. E812 for differences in `checked` is left to the caller, so that they can
    be looked into."""

    folder: Path
    project: ExportJob
    checked: Checked

    def __repr__(self) -> str:
        return str(self.folder)


def train_network(path: Path, options: RunOptions) -> RunOptions:
    """Train the network in a file. Return the options for the later stages, with the best weights."""
    trained = train_stage(path, options)
    log.raise_on_strict()
    return trained


def load_network(path: Source, options: RunOptions) -> LoadedNetwork:
    """Read the network in a file or in memory, and its data. Under -strict its warnings are errors."""
    network = load_stage(path, options.load, options.folder)
    log.raise_on_strict()
    return network


def score_float(network: LoadedNetwork, options: RunOptions) -> Scores:
    """Score the float network; its target folders are written into the output folder."""
    if options.fuse:
        network, _ = fuse_stage(network, integer=False)
    stimuli = required_stimuli(network, options.score)
    options.folder.mkdir(parents=True, exist_ok=True)
    return _score_in_python(network, (network.graph, None), stimuli, options.score, options.folder)


def _score_in_python(
    network: LoadedNetwork, graphs: tuple[Graph, QuantGraph | None], stimuli: Stimuli, score: ScoreOptions, folder: Path
) -> Scores:
    """Return the scores of the float and, if given, the typed network; write their files and outputs of layers into
    `folder`."""
    scores = Scores()
    if score.test:
        scores = score_stage(network, *graphs, stimuli, folder, score.as_json)
    if score.streams is not None:
        stream_scores(network, *graphs, Path(score.streams), folder, scores)
    if score.log_outputs:
        write_outputs(*graphs, stimuli, score.log_outputs, folder)
    return scores


def required_stimuli(network: LoadedNetwork, options: ScoreOptions) -> Stimuli:
    """Return the stimuli for the score. Raise E509 if there are none, E124 and E452 if a target cannot be scored."""
    stimuli = scored_stimuli(network, options)
    if stimuli is None:
        remedy = "add a [database], or give labelled data with -calib-data FILE.npz"
        raise N2D2Error("E509", "the test set is empty", where=network.place, remedy=remedy)
    if options.streams is not None:
        read_recordings(Path(options.streams), network)
    if options.test:
        ErrorList.raise_if([target.unscored for target in network.targets if target.unscored is not None])
        check_boxes(network, stimuli)
    if options.test and stimuli.label_map is None and stimuli.boxes is None:
        for target in network.targets:
            refuse_positions(target, network.graph.shape(target.tensor))
    return stimuli


def reload_statistics(network: LoadedNetwork, options: RunOptions) -> RunOptions:
    """Return the options with the newest statistics that a calibration of this network left in the output folder."""
    bits = options.quantization.bits
    places = [options.folder / calibration_folder_name(network.graph.name, bits) / STATISTICS_FILE]
    if options.export.target:
        places.insert(0, options.folder / export_folder_name(options.export.target, bits) / STATISTICS_FILE)
    existing = [place for place in places if place.is_file()]
    newest = max(existing, key=lambda place: place.stat().st_mtime) if existing else places[0]
    return replace(options, calibration=replace(options.calibration, reload=newest))


def memory_table(network: LoadedNetwork, options: RunOptions) -> str:
    """Return the needs of every strategy of the memory in the export, as text."""
    network, options = _without_ranges(network, options)
    return memory_report(network, options, _target(options))


def calibrate_only(network: LoadedNetwork, options: RunOptions) -> Path:
    """Write the results of a calibration into calib_<name>_int<bits>; return that folder."""
    path = options.folder / calibration_folder_name(network.graph.name, options.quantization.bits)
    _refuse_early(path, network, options)
    if is_quantized(network.graph) or network.trained_quantized:
        check_prequantized(options.quantization.bits, ())
        raise N2D2Error("E007", "-calibOnly has no effect on a pre-quantized model", remedy=f"use -export {target_names()[0]}")
    quantized = quantize_stage(calibrate_stage(network, options.calibration), options.quantization, options.choices)
    log.raise_on_strict()
    recorded, params = dict(options.recorded), network.params.as_dict()
    manifest = Manifest("calibration", network.graph.name, recorded, params, network.hashes(), command=options.command)
    with ExportFolder(path, manifest, options.export.force) as folder:
        save_statistics(quantized.observed, folder)
        report_stage(quantized, None, Checked(), options, folder)
        log.raise_on_strict()
    return path


def export_network(network: LoadedNetwork, options: RunOptions) -> ExportRun:
    """Calibrate, quantize and export a loaded network."""
    network, options = _without_ranges(network, options)
    check_before(network, options)
    tested = tested_stimuli(network, options)
    if tested is not None and (options.export.stimuli or options.score.test):
        check_labels(network, tested)
    integer = options.quantization.integer
    calibrated = calibrate_stage(network, options.calibration) if integer else network
    quantized = quantize_stage(calibrated, options.quantization, options.choices)
    log.raise_on_strict()
    return export_quantized(quantized, tested, options)


def check_before(network: LoadedNetwork, options: RunOptions) -> None:
    """Check, before any work is done, the place and ranges of an export, its tuning and states; say what its test lacks."""
    if options.quantization.integer:
        check_ranges(network, options.calibration)
    if options.export.tune:
        _target(options).check_tunable(network.params.as_dict())
    _check_states(network, options)
    check_app(network, _target(options), options.export.app)
    check_place(network, options)
    warn_untested(network, options)


def check_place(network: LoadedNetwork, options: RunOptions) -> None:
    """Raise the errors of a folder that the export cannot replace or write."""
    _refuse_early(_export_path(options), network, options)


def warn_untested(network: LoadedNetwork, options: RunOptions) -> None:
    """W801 where a test is asked for that this machine lacks the tools for."""
    score, tester = options.score, _target(options).runner
    if tester is None or not (score.test or score.compare or score.latency):
        return
    if lacking := tester.missing(network.params.as_dict()):
        log.warning("W801", f"{lacking}: the {tester.label} export is not tested", remedy=tester.remedy)


def _without_ranges(network: LoadedNetwork, options: RunOptions) -> tuple[LoadedNetwork, RunOptions]:
    """For a network whose file computes scales at run time, where neither precision nor calibration was asked for: floating
    point, or noise that calibrates for a target of integers alone."""
    calibrates = options.calibration.stimuli or options.calibration.reload
    if not network.restored or calibrates or not options.quantization.integer or "nbbits" in options.given:
        return network, options
    if not find_target(options.export.target or "").in_floats:
        noise = replace(network.options, read_data=True, synthetic=SYNTHETIC_STIMULI)
        network = load_stage(network.files[0], noise, options.folder)
        return network, replace(options, calibration=replace(options.calibration, stimuli=-1))
    what = "the file computes activation scales at run time, so the export without -calib is in floating point"
    remedy = "add -calib-data FILE for integers with static scales, or -nbbits -32 for floating point"
    log.warning("W509", what, where=network.place, remedy=remedy)
    recorded = {**options.recorded, "nbbits": -32}
    return network, replace(options, quantization=replace(options.quantization, bits=-32), recorded=recorded)


def export_quantized(quantized: QuantizedNetwork, tested: Stimuli | None, options: RunOptions) -> ExportRun:
    """Export a typed network: plan, write, check, report. Raise errors for every wrong input; nothing half-written remains."""
    project = _prepare_project(quantized, tested, options)
    path = _export_path(options)
    with ExportFolder(path, project.manifest, options.export.force) as folder:
        project, kernels = _write_project(project, folder)
        checked = _check_project(project, folder)
        report_stage(quantized, project.memory, checked, options, folder, kernels, tested)
        log.raise_on_strict()
    return ExportRun(path, project, checked)


def compare_export(run: ExportRun, stimuli: int) -> Comparison:
    """Build a written export again and compare every layer over as many of its test stimuli. Raise E509 without stimuli, E80x
    where it cannot be built or run."""
    project = run.project
    tested = project.tested or required_stimuli(project.quantized.network, project.options.score)
    score = ScoreOptions(compare=stimuli)
    project = replace(project, tested=tested, options=replace(project.options, score=score))
    warn_untested(project.quantized.network, project.options)
    return _score_compiled(project, Scores(), run.folder)[0]


def _prepare_project(quantized: QuantizedNetwork, tested: Stimuli | None, options: RunOptions) -> ExportJob:
    _check_states(quantized.network, options)
    network, target = quantized.network, _target(options)
    if options.export.target in target.aliases:
        log.notice("-export %s is replaced by %s", options.export.target, target.name)
    memory = plan_stage(quantized.graph, network.params, target) if target.needs_plan else None
    graph = memory.graph if memory else quantized.graph
    chosen, positions = exported_stimuli(tested, options.export.stimuli)
    stored = stored_stimuli(network, graph, chosen)
    request = export_request(network, graph, memory, stored, options.recorded, options.export.app)
    warn_without_effect(network.params, target, quantized.graph)
    prepared = target.prepare(request)
    prepared.check()
    manifest = replace(target.manifest(prepared), command=options.command)
    if quantized.types is not None and quantized.types.biases is not None:
        manifest = replace(manifest, details={**manifest.details, "bias_correction": quantized.types.biases.as_dict()})
    return ExportJob(quantized, options, tested, stored, positions, memory, target, prepared, manifest)


def _write_project(project: ExportJob, folder: Path) -> tuple[ExportJob, list[KernelChoice]]:
    """Write the project, with the fastest tiles under -tune. Return it and the kernel of each layer."""
    export = project.options.export
    target = project.target
    kernels = export_stage(target, project.prepared, folder, export.weights_text)
    if export.tune:
        request = target.tune(project.prepared, folder, kernels, export.tune, export.tune_command)
        project = replace(project, prepared=target.prepare(request))
        kernels = export_stage(target, project.prepared, folder, export.weights_text)
    _advise(project)
    save_statistics(project.quantized.observed, folder)
    return project, kernels


_WORTH = 1.1  # gain in time from which on an option is recommended


def _advise(project: ExportJob) -> None:
    """Recommend -wt-reduce-range where this machine lacks the instructions for full 8-bit weights. With -test, which takes
    longer than a second quantization, say what it costs on these samples."""
    observed, options = project.quantized.observed, project.quantized.options
    if observed is None or options is None or options.reduce_range:
        return
    if (gain := project.target.reduced_range_gain(project.prepared)) <= _WORTH:
        return
    cost = "-test tells its cost"
    if observed.checked and project.options.score.test:
        with log.muted():
            reduced, _ = quantize_observed(observed, replace(options, reduce_range=True))
        lost = max(worse_outputs(reduced, project.quantized.graph, CheckedOutputs(observed)).values(), default=0.0)
        cost = f"the error of an output grows by {lost:.1f} dB" if lost else "the error of no output grows by more than 0.2 dB"
    text = "-wt-reduce-range: about %.1f times faster on processors like this one, without int8 dot product; %s"
    log.notice(text, gain, cost)


def _check_project(project: ExportJob, folder: Path) -> Checked:
    """Return the scores in Python and compiled, the comparison and the costs of layers, as far as requested."""
    score, tested = project.options.score, project.tested
    scores, compared, metrics = Scores(), Comparison(), BuildMetrics()
    typed, plan = project.planned, project.memory.plan if project.memory else None
    if tested is not None:
        graphs = typed.float_graph, typed.graph
        scores = _score_in_python(typed.network, graphs, tested, score, folder / "statistics")
    if score.test or score.compare or score.latency:
        compared, metrics = _score_compiled(project, scores, folder)
    sensitivity = sensitivity_stage(project.quantized, score.sensitivity, tested, scores, folder)
    stages = pipeline_data(typed.network, typed.graph, plan, project.manifest.details, metrics, tested)
    return Checked(scores, compared, sensitivity, metrics, stages, project.manifest.details.get("estimate", {}))


def _target(options: RunOptions) -> Target[Any]:
    return find_target(options.export.target or target_names()[0])


def _export_path(options: RunOptions) -> Path:
    return options.folder / export_folder_name(_target(options).name, options.quantization.bits)


def _check_states(network: LoadedNetwork, options: RunOptions) -> None:
    """Raise E706 if the export cannot keep the states of the network, or if its input is streamed row by row."""
    if not network.graph.states:
        return
    target, what = _target(options), f"the network '{network.graph.name}' keeps state between calls"
    if not target.keeps_states:
        able = [name for name in target_names() if find_target(name).keeps_states]
        what = f"{what}, which the export {target.name} does not support"
        remedy = f"use -export {' or '.join(able)}, or States=none to make the states inputs and outputs"
        raise N2D2Error("E706", what, where=network.place, remedy=remedy)
    if Settings.of(network.params).stream_input:
        raise N2D2Error("E706", f"{what}, which excludes StreamInput=1", remedy="remove StreamInput")


def _refuse_early(path: Path, network: LoadedNetwork, options: RunOptions) -> None:
    """Raise, before any work is done, the errors of ExportFolder for a folder that it cannot replace or write."""
    with suppress(OSError):
        refuse_replacement(path, network.graph.name, options.export.force)
    refuse_unwritable(path)


def tested_stimuli(network: LoadedNetwork, options: RunOptions) -> Stimuli | None:
    """Stimuli of the test of an export; None where that is neither there nor needed."""
    score, noise = options.score, network.data.noise
    if score.compare and not (score.test or score.sensitivity or score.log_outputs or network.data.sets) and noise is not None:
        return noise(score.compare)
    if score.test or score.compare or score.sensitivity or score.log_outputs:
        return required_stimuli(network, score)
    return scored_stimuli(network, score)


def _score_compiled(project: ExportJob, scores: Scores, folder: Path) -> tuple[Comparison, BuildMetrics]:
    """Build and run the export. Return the compared layers and the measurements; its scores are added to `scores`."""
    quantized, score, tester = project.planned, project.options.score, project.target.runner
    compared = project.tested.sample_evenly(score.compare) if score.compare and project.tested is not None else None
    if tester is not None and tester.missing(project.prepared.request.parameters):
        tester = None
    wanted = project.stored.count or compared is not None or score.latency or score.streams
    with tester(folder, project.manifest.details) if wanted and tester else nullcontext() as run:
        metrics = BuildMetrics() if run is None else measured(run, score.latency)
        if run is not None and score.test and project.stored.count and project.tested is not None:
            tested = (project.tested, project.positions)
            compiled_scores(quantized.network, quantized.graph, run, project.stored, tested, scores)
        if run is not None and score.streams is not None:
            streamed = stream_score(quantized.network, quantized.graph, run.network(), Path(score.streams))
            scores.add(run.label, streamed)
        if compared is None:
            return Comparison(), metrics
        running, slack = (None, 0.0) if run is None else (run.network(), run.slack)
        float_graph, contract = quantized.float_graph, quantized.network.data.contract
        return compare_stage(float_graph, quantized.graph, compared, running, slack, contract), metrics
