"""The tool from Python: load, calibrate, quantize, score, export and compare networks.

The functions compose: each takes what the one before gives, and `export` does all at once. They write the same files, byte for
byte, as the command with the same options. Wrong input raises N2D2Error. Messages go to stderr through `n2d2py.log`; with
`quiet`, the default, only warnings do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from n2d2py import log, pipeline
from n2d2py.data.input_data import as_array, as_data
from n2d2py.exports import find_target, target_names
from n2d2py.operators.quantize import is_quantized
from n2d2py.options import checked, python_words
from n2d2py.plugin.load import load_plugins
from n2d2py.results import (
    CalibratedModel,
    ComparedExport,
    ExportedModel,
    LayerTable,
    MemoryFigures,
    Model,
    QuantizedModel,
    ScoreTable,
)
from n2d2py.stages.calibrate import calibrate_stage
from n2d2py.stages.compare import compare_stage, summary
from n2d2py.stages.load import with_data
from n2d2py.stages.options import (
    SYNTHETIC_STIMULI,
    CalibrationOptions,
    Data,
    ExportOptions,
    Labels,
    LoadOptions,
    QuantizationOptions,
    RunOptions,
    ScoreOptions,
    suit_calibration,
)
from n2d2py.stages.quantize import quantize_stage
from n2d2py.stages.score import Scores, score_stage

__all__ = [
    "CalibratedModel",
    "ComparedExport",
    "ExportedModel",
    "LayerTable",
    "MemoryFigures",
    "Model",
    "QuantizedModel",
    "ScoreTable",
    "calibrate",
    "compare",
    "export",
    "load",
    "quantize",
    "score",
]


Target = Literal["CPP", "CPP_MCU", "ONNX", "TFLite"]
"""Exports of this package; others may add theirs."""
AnyData = Data | Iterable[Any]
"""Data of a call, or what gives batches: a DataLoader of PyTorch, or an iterator of (x, y) (`n2d2py.data.input_data.as_data`)."""


def load(
    model: str | Path | Any,
    target: Target | str | None = None,
    *,
    example_inputs: Any = None,
    options: LoadOptions = LoadOptions(),
    folder: str | Path = ".",
    quiet: bool = True,
    strict: bool = False,
    progress: bool = False,
) -> Model:
    """Read an INI, ONNX or TFLite file, or a model in memory, and start a run: what warnings it gives is part of later reports.

    Args:
        model: NET.ini, NET.onnx or NET.tflite; an `onnx.ModelProto`, an `onnx_ir.Model`, or a `torch.nn.Module`.
        example_inputs: of a module alone: a tensor, or a tuple of one for each input, with batch 1. torch.onnx exports it with
            them.
        target: the export that it is loaded for, such as "ONNX"; by default that of the options, else "CPP".
        options: seed, weights, data and others.
        folder: where the weights and statistics of earlier runs are found, and what a pipeline stores is written.
        quiet: whether only warnings are logged.
        strict: whether warnings are errors.
        progress: whether this and the next steps draw progress bars, in notebooks as widgets where ipywidgets is installed.

    Raises:
        N2D2Error: E1xx to E4xx for files that cannot be read or hold what is not supported, E008 for another kind of file or
            model.
    """
    log.setup(quiet=quiet, strict=strict, bars=progress, words=python_words)
    name = find_target(target or options.target or target_names()[0]).name
    run = checked(RunOptions(load=replace(options, target=name, data=as_data(options.data)), folder=Path(folder)))
    load_plugins(list(options.plugins))
    if isinstance(model, (str, Path)) and example_inputs is None:
        return Model(pipeline.load_network(Path(model), run), run)
    from n2d2py.frontend.models import onnx_model  # late: INI files need no ONNX

    return Model(pipeline.load_network(onnx_model(model, example_inputs), run), run)


def calibrate(
    model: Model,
    data: AnyData | None = None,
    labels: Labels | None = None,
    *,
    options: CalibrationOptions = CalibrationOptions(),
) -> CalibratedModel:
    """Fuse a network and collects the statistics of its tensors, over its own data or the given ones.

    Args:
        data: a folder of images, an .npy or .npz file, an array (N, C, H, W), arrays by name, a DataLoader of PyTorch, or an
            iterator of (x, y), of which as many are taken as calibrate. Bytes 0 to 255 become the
            `input_range` of the load options, real values are used unchanged. Without any data an ONNX file is calibrated
            on noise, with the warning W402. As with the command, 128 stimuli calibrate unless the options say another number.
        labels: ids (N,) of `data`, -1 for none; what has labels is scored too.
        options: how many stimuli, corrections and others.

    Raises:
        N2D2Error: E4xx for data that do not fit, E504 values that are not finite, E508 no stimuli, E501 to E503 statistics
            that cannot be reloaded.
    """
    samples, labels = as_data(data, max(options.stimuli, 0)), _as_labels(labels)
    run = checked(replace(_with_data(model.options, samples, labels), calibration=options))
    count = 0 if options.reload else options.stimuli if options.stimuli > 0 else SYNTHETIC_STIMULI
    network = with_data(model._loaded, samples, labels, None if options.stimuli == 0 else count)
    return CalibratedModel(calibrate_stage(network, options), run)


def quantize(
    model: Model | CalibratedModel,
    calibrated: CalibratedModel | None = None,
    *,
    bits: int | None = None,
    options: QuantizationOptions = QuantizationOptions(),
) -> QuantizedModel:
    """Give every tensor a number type: integers by a calibration, or floating point.

    Args:
        model: a calibrated network, or one without calibration, for floating point or a pre-quantized file.
        calibrated: the calibration of `model`, where that is the network before it.
        bits: 8 or 16 for integers; -32 or -64 for floating point, -16 for that with weights in half precision; None: those
            of the options.

    Raises:
        N2D2Error: E506 another width, E507 integers without a calibration, E51x layers without integer arithmetic, all
            together.
    """
    options = options if bits is None else replace(options, bits=bits)
    if isinstance(model, CalibratedModel):
        calibrated, model = model, Model(model.calibration.network, model.options)
    without = replace(model.options, calibration=CalibrationOptions(stimuli=0))
    run = checked(replace(calibrated.options if calibrated else without, quantization=options))
    if not options.integer:
        network = model._loaded if calibrated is None else replace(model._loaded, data=calibrated.calibration.network.data)
        return QuantizedModel(quantize_stage(network, options, run.choices), run)
    if calibrated is None:
        calibrated = CalibratedModel(calibrate_stage(model._loaded, run.calibration), run)
    return QuantizedModel(quantize_stage(calibrated.calibration, options, run.choices), run)


def score(
    model: Model | QuantizedModel,
    data: AnyData | None = None,
    labels: Labels | None = None,
    *,
    options: ScoreOptions = ScoreOptions(),
    folder: str | Path | None = None,
) -> ScoreTable:
    """Score a network over its test stimuli, or over given data with labels: in floating point, and the integers simulated.

    Args:
        folder: where the target folders with confusion matrices are written; None writes none.

    Raises:
        N2D2Error: E509 no stimuli, E513 an index beyond them, E4xx data that do not fit.
    """
    samples, labels = as_data(data), _as_labels(labels)
    run = checked(replace(_with_data(model.options, samples, labels), score=replace(options, test=True)))
    typed = model.quantized if isinstance(model, QuantizedModel) else model
    network = with_data(typed.network, samples, labels)
    stimuli = pipeline.required_stimuli(network, run.score)
    graphs = (network.graph, None) if isinstance(typed, Model) else (typed.float_graph, typed.graph)
    with tempfile.TemporaryDirectory() as nowhere:
        return _score_table(score_stage(network, *graphs, stimuli, Path(folder or nowhere), options.as_json))


def export(
    model: str | Path | Model | QuantizedModel | Any,
    target: Target | str | None = None,
    *,
    example_inputs: Any = None,
    data: AnyData | None = None,
    labels: Labels | None = None,
    folder: str | Path = ".",
    bits: int | None = None,
    test: bool | None = None,
    load_options: LoadOptions = LoadOptions(),
    calibration: CalibrationOptions = CalibrationOptions(),
    quantization: QuantizationOptions = QuantizationOptions(),
    score_options: ScoreOptions = ScoreOptions(),
    options: ExportOptions = ExportOptions(),
    quiet: bool = True,
    progress: bool = False,
) -> ExportedModel:
    """Write a project of a target into FOLDER/export_TARGET_<int|float><bits>; of a file or a network all steps before too.

    Args:
        model: what `load` takes, a loaded or a quantized network; of the last one, data and the options of the steps before
            have no effect.
        target: such as "CPP" or "ONNX"; None: what the network was loaded for, of a file "CPP".
        example_inputs: as of `load`.
        data, labels: as of `calibrate`.
        bits: as of `quantize`.
        test: whether the export is scored, and built for that; None: where `labels` are given.
        folder: in which the export's folder is written; the rest of it is left alone.
        quiet, progress: as of `load`, where `model` is a file.

    Raises:
        N2D2Error: for every wrong input; nothing half-written remains. E7xx what the target cannot take, E60x memory,
            E812 an export whose output differs from Python's.
    """
    scored = replace(score_options, test=score_options.test or labels is not None if test is None else test)
    if isinstance(model, QuantizedModel):
        if data is not None or bits is not None:
            log.warning("W011", "data and bits have no effect on a quantized network", remedy="give them to the steps before")
        name = find_target(target or options.target or model.target).name
        run = checked(replace(model.options, score=scored, export=replace(options, target=name), folder=Path(folder)))
        pipeline.check_before(model.quantized.network, run)
        tested = pipeline.tested_stimuli(model.quantized.network, run)
        return _exported(pipeline.export_quantized(model.quantized, tested, run), model)
    chosen = quantization if bits is None else replace(quantization, bits=bits)
    samples, labels = as_data(data, max(calibration.stimuli, 0)), _as_labels(labels)
    if not isinstance(model, Model):
        count = calibration.stimuli if calibration.stimuli > 0 else SYNTHETIC_STIMULI
        noise = None if not chosen.integer else 0 if calibration.reload else count
        sources = replace(load_options, synthetic=noise)
        if samples is not None:
            sources, samples = replace(sources, data=samples, labels=labels), None
        name, shown = target or options.target, {"quiet": quiet, "progress": progress}
        model = load(model, name, example_inputs=example_inputs, options=sources, folder=folder, **shown)
    named = replace(options, target=find_target(target or options.target or model.target).name)
    pipeline.check_place(model.network, replace(model.options, quantization=chosen, export=named, folder=Path(folder)))
    if chosen.integer and not is_quantized(model.graph):
        calibrated = calibrate(model, samples, labels, options=suit_calibration(calibration, chosen))
        quantized = quantize(model, calibrated, options=chosen)
    else:
        network = with_data(model.network, samples, labels)
        quantized = quantize(Model(network, _with_data(model.options, samples, labels)), options=chosen)
    return export(quantized, target, folder=folder, score_options=scored, options=options, test=scored.test)


def compare(exported: ExportedModel | QuantizedModel, stimuli: int = 10) -> ComparedExport:
    """Compare every layer over `stimuli` stimuli (-1: all): float and simulated; an export, which is built and run, compiled too.

    Raises:
        N2D2Error: E509 no stimuli, E80x where the export cannot be built or run.
    """
    if isinstance(exported, QuantizedModel):
        typed = exported.quantized
        tested = pipeline.required_stimuli(typed.network, ScoreOptions()).sample_evenly(stimuli)
        comparison = compare_stage(typed.float_graph, typed.graph, tested, None)
        weakest = min(comparison.layers, key=lambda one: one.sqnr_db)
        what = f"{len(comparison.layers)} layers, the weakest is {weakest.layer} with {weakest.sqnr_db:.1f} dB"
        return ComparedExport(comparison.layers, f"{what}; {summary(comparison.layers, typed.graph.bits)}")
    comparison = pipeline.compare_export(exported.run, stimuli)
    text = summary(comparison.layers, exported.model.graph.bits, comparison.slack)
    return ComparedExport(comparison.layers, text)


def _as_labels(labels: Labels | None) -> Labels | None:
    return labels if labels is None or isinstance(labels, (str, Path)) else as_array(labels)


def _with_data(options: RunOptions, data: Data | None, labels: Labels | None) -> RunOptions:
    return options if data is None else replace(options, load=replace(options.load, data=data, labels=labels))


def _exported(run: pipeline.ExportRun, model: QuantizedModel) -> ExportedModel:
    memory, figures = run.project.memory, None
    if memory is not None:
        plan = memory.plan
        strategy = str(plan.options.get("MemoryMode", plan.strategy))
        figures = MemoryFigures(plan.arena_bytes, memory.problem.tensor_bytes, plan.bound, strategy)
    report = run.folder / "statistics" / "report.html"
    return ExportedModel(run.folder, report, _score_table(run.checked.scores), figures, model, run)


def _score_table(scores: Scores) -> ScoreTable:
    return ScoreTable({target: dict(rows) for target, rows in scores.rows.items()})
