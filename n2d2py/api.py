"""The tool from Python: load, calibrate, quantize, score, export and compare networks.

The functions compose: each takes what the one before gives, and `export` does all at once. They write the same files, byte for
byte, as the command with the same options. Wrong input raises N2D2Error. Messages go to stderr through `n2d2py.log`; with
`quiet`, the default, only warnings do.
"""

from __future__ import annotations

import html
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from n2d2py import log, pipeline
from n2d2py.errors import N2D2Error
from n2d2py.export import find_target, target_names
from n2d2py.graph import Graph, QuantGraph
from n2d2py.graph.describe import layer_macs, layer_params
from n2d2py.operators.quantize import is_quantized
from n2d2py.options import checked
from n2d2py.plugin.load import load_plugins
from n2d2py.quant.compare import LayerComparison
from n2d2py.report import comparison_text
from n2d2py.report.layers import layer_rows
from n2d2py.stages.calibrate import Calibration, calibrate_stage
from n2d2py.stages.compare import compare_stage, refuse_differences, summary
from n2d2py.stages.load import LoadedNetwork, with_data
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
)
from n2d2py.stages.quantize import QuantizedNetwork, quantize_stage
from n2d2py.stages.score import Scores, score_stage, scored_stimuli
from n2d2py.stages.values import LayerValues, layer_values, one_stimulus
from n2d2py.targets import Score, ScoreRow, score_table, text_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

_LAYERS = ("layer", "operator", "output", "type", "parameters", "MACs")


class _Shown:
    """Shows itself as a title and a table, as text and in notebooks."""

    def _title(self) -> str:
        raise NotImplementedError

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        header, rows = self._table()
        return f"{self._title()}\n{text_table(header, rows)}" if rows else self._title()

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        header, rows = self._table()
        table = line(header, "th") + "".join(line(row, "td") for row in rows)
        return f"<p>{html.escape(self._title())}</p><table>{table}</table>"


@dataclass(frozen=True, repr=False)
class LayerTable(_Shown, Mapping[str, LayerValues]):
    """The values of every layer for one stimulus, by name: inputs first, then layers in execution order."""

    values_by_name: Mapping[str, LayerValues]

    def __getitem__(self, name: str) -> LayerValues:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def _title(self) -> str:
        return f"{len(self)} inputs and layers"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return ("layer", "shape", "float", "type", "integers", "largest error"), [
            (one.name, "x".join(map(str, one.float.shape)), _extremes(one.float), *_integer_cells(one)) for one in self.values()
        ]


def _extremes(values: np.ndarray) -> str:
    return f"{values.min():.4g} .. {values.max():.4g}" if values.size else ""


def _integer_cells(one: LayerValues) -> tuple[str, str, str]:
    if one.integer is None or one.type is None or one.dequantized is None:
        return "", "", ""
    error = np.abs(one.dequantized - one.float).max(initial=0.0)
    return one.type.name, _extremes(one.integer), f"{error:.3g}"


@dataclass(frozen=True, repr=False)
class Model(_Shown):
    """A float network with its data.

    Attributes:
        network: graph, targets, data and files.
        options: those that it was loaded with.
    """

    network: LoadedNetwork
    options: RunOptions

    @property
    def graph(self) -> Graph:
        """The float graph; shapes are (N, C, H, W) or (N, F) with N = 1."""
        return self.network.graph

    def layers(self, stimulus: int | np.ndarray = 0) -> LayerTable:
        """The real values of every layer for one stimulus: one of the test set by its position, or an array.

        Args:
            stimulus: a position from 0, or real values (C, H, W).

        Raises:
            N2D2Error: E509 no stimuli, E513 a position beyond them, E414 an array of another shape.
        """
        return LayerTable(layer_values(self.graph, None, _stimulus(self.network, self.graph, stimulus)))

    def _title(self) -> str:
        return _graph_title(self.graph)

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return _LAYERS, _float_rows(self.graph)


@dataclass(frozen=True, repr=False)
class CalibratedModel(_Shown):
    """A fused float network with the statistics of its tensors."""

    calibration: Calibration
    options: RunOptions

    @property
    def graph(self) -> Graph:
        """The fused float graph."""
        return self.calibration.network.graph

    def _title(self) -> str:
        observed = self.calibration.observed
        how = "comes quantized" if observed is None else f"calibrated on {observed.statistics.stimuli} stimuli"
        return f"{_graph_title(self.graph)}, {how}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return _LAYERS, _float_rows(self.graph)


@dataclass(frozen=True, repr=False)
class QuantizedModel(_Shown):
    """A network with a number type on every edge."""

    quantized: QuantizedNetwork
    options: RunOptions

    @property
    def target(self) -> str:
        """The export that it was loaded and quantized for."""
        return self.options.load.target or target_names()[0]

    @property
    def graph(self) -> QuantGraph:
        """The typed graph."""
        return self.quantized.graph

    def layers(self, stimulus: int | np.ndarray = 0) -> LayerTable:
        """The values of every layer for one stimulus, real ones of the float network and the integers; as `Model.layers`."""
        real = self.quantized.float_graph
        return LayerTable(layer_values(real, self.graph, _stimulus(self.quantized.network, real, stimulus)))

    def plot_histograms(self, layers: Sequence[str] = (), columns: int = 3) -> Figure:
        """The calibrated values of layers (all without names) with the range that their integers hold.

        Raises:
            N2D2Error: E516 a layer, or a network, that was not calibrated; E454 without matplotlib.
        """
        from n2d2py.plots import histogram_figure

        return histogram_figure(self.quantized, layers, columns)

    def _title(self) -> str:
        kind = "int" if self.graph.bits > 0 else "float"
        return f"{_graph_title(self.quantized.network.graph)}, {kind}{abs(self.graph.bits)}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = layer_rows(self.graph)
        return _LAYERS, [
            (
                row.name,
                row.type,
                _dims(self.graph.shape(node.outputs[0])),
                row.output_type,
                f"{row.parameters:,}",
                f"{row.macs:,}",
            )
            for row, node in zip(rows, self.graph.nodes, strict=True)
        ]


@dataclass(frozen=True, repr=False)
class ScoreTable(_Shown):
    """Scores by target and by what computed them: "float", "simulated int8", "compiled"."""

    rows: dict[str, dict[str, Score]]

    @property
    def float(self) -> Score | None:
        """The score of the float network on its first target; None where it was not computed."""
        return self._find("float")

    @property
    def simulated(self) -> Score | None:
        """That of the typed network, computed in Python."""
        return self._find("simulated")

    @property
    def compiled(self) -> Score | None:
        """That of the built export, on the stimuli that it holds."""
        return next((score for label, score in self._first() if label.split()[0] not in ("float", "simulated")), None)

    def plot_confusion(self, kind: str = "simulated") -> Figure:
        """The confusion matrix of the first target: of "float", "simulated" or "compiled", else of what there is.

        Raises:
            N2D2Error: E509 without scores, E454 without matplotlib.
        """
        from n2d2py.plots import confusion_figure

        found = {"float": self.float, "compiled": self.compiled}.get(kind, self.simulated) or self.float
        if found is None:
            raise N2D2Error("E509", "there are no scores", remedy="give labels, or score the network")
        return confusion_figure(found)

    def _first(self) -> list[tuple[str, Score]]:
        return list(next(iter(self.rows.values()), {}).items())

    def _find(self, kind: str) -> Score | None:
        return next((score for label, score in self._first() if label.split()[0] == kind), None)

    def __repr__(self) -> str:
        return "".join(
            f"{target}:\n" + score_table([ScoreRow(label, score) for label, score in rows.items()])
            for target, rows in self.rows.items()
        )

    def _title(self) -> str:
        return ", ".join(self.rows) or "no scores"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        found = [(target, label, score) for target, rows in self.rows.items() for label, score in rows.items()]
        return ("target", "computed", "stimuli", "top-1"), [
            (target, label, str(score.stimuli), "" if score.top1 is None else f"{score.top1:.2f} %")
            for target, label, score in found
        ]


@dataclass(frozen=True)
class MemoryFigures:
    """The static memory of an export, in bytes.

    Attributes:
        arena: of all tensors and scratch together, as planned.
        tensors: sum of the sizes of all tensors, without sharing.
        bound: a plan of this kind cannot be smaller; None where that is not known.
        strategy: the memory mode or strategy of the plan.
    """

    arena: int
    tensors: int
    bound: int | None
    strategy: str


@dataclass(frozen=True, repr=False)
class ExportedModel(_Shown):
    """A written export.

    Attributes:
        folder: the project.
        report: its report.html.
        scores: float and simulated over the tested stimuli, compiled over those that the project holds; empty without labels.
        memory: None for targets that place memory themselves.
        model: what was exported.
    """

    folder: Path
    report: Path
    scores: ScoreTable
    memory: MemoryFigures | None
    model: QuantizedModel
    run: pipeline.ExportRun

    def plot_memory(self) -> Figure:
        """The memory map: address against time, a rectangle for each buffer.

        Raises:
            N2D2Error: E605 a target that places memory itself, or no matplotlib.
        """
        from n2d2py.plots import plan_figure

        planned = self.run.project.memory
        if planned is None:
            raise N2D2Error("E605", "this target places memory itself", remedy="see its report")
        return plan_figure(planned.problem, planned.plan)

    def _title(self) -> str:
        arena = f", arena {self.memory.arena:,} bytes" if self.memory else ""
        return f"{self.folder}: {self.model._title()}{arena}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        return self.scores._table()


@dataclass(frozen=True, repr=False)
class ComparedExport(_Shown):
    """Every layer of an export: float against integers, and Python's integers against the compiled ones.

    Attributes:
        layers: in execution order.
        summary: one line: whether all layers agree.
    """

    layers: list[LayerComparison]
    summary: str

    @property
    def identical(self) -> bool:
        """Whether the compiled values of all layers were compared and none differs."""
        return any(layer.identical is not None for layer in self.layers) and all(
            layer.difference is None for layer in self.layers
        )

    def plot(self) -> Figure:
        """The error of every layer as SQNR in dB.

        Raises:
            N2D2Error: E454 without matplotlib.
        """
        from n2d2py.plots import error_figure

        return error_figure(self.layers)

    def check(self) -> None:
        """Raises E812 where the compiled values of a layer are not those of Python."""
        refuse_differences(self.layers)

    def __repr__(self) -> str:
        return comparison_text(self.layers) + self.summary

    def _title(self) -> str:
        return self.summary

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        compiled = {None: "not compared", True: "identical", False: "differs"}
        return ("layer", "SQNR", "alone", "largest error", "saturated", "compiled"), [
            (
                one.layer,
                f"{one.sqnr_db:.1f} dB",
                "" if one.alone_db is None else f"{one.alone_db:.1f} dB",
                f"{one.max_error:.3g}",
                f"{100 * one.saturated:.2f} %",
                compiled[one.identical],
            )
            for one in self.layers
        ]


def load(
    path: str | Path,
    target: str | None = None,
    *,
    options: LoadOptions = LoadOptions(),
    folder: str | Path = ".",
    quiet: bool = True,
    strict: bool = False,
    progress: bool = False,
) -> Model:
    """Reads an INI or ONNX file, and starts a run: what warnings it gives is part of later reports.

    Args:
        path: NET.ini or NET.onnx.
        target: the export that it is loaded for, such as "NVDLA"; by default that of the options, else "CPP".
        options: seed, weights, data and others.
        folder: where the weights and statistics of earlier runs are found, and what a pipeline stores is written.
        quiet: whether only warnings are logged.
        strict: whether warnings are errors.
        progress: whether this and the next steps draw progress bars, in notebooks as widgets where ipywidgets is installed.

    Raises:
        N2D2Error: E1xx to E4xx for files that cannot be read or hold what is not supported, E008 for another kind of file.
    """
    log.setup(quiet=quiet, strict=strict, bars=progress)
    name = find_target(target or options.target or target_names()[0]).name
    run = checked(RunOptions(load=replace(options, target=name), folder=Path(folder)))
    load_plugins(list(options.plugins))
    return Model(pipeline.load_network(Path(path), run), run)


def calibrate(
    model: Model, data: Data | None = None, labels: Labels | None = None, *, options: CalibrationOptions = CalibrationOptions()
) -> CalibratedModel:
    """Fuses a network and collects the statistics of its tensors, over its own data or the given ones.

    Args:
        data: a folder of pictures, an .npy or .npz file, an array (N, C, H, W), or arrays by name. Bytes 0 to 255 become the
            `input_range` of the load options, real values are inputs as they are. Without any data an ONNX file is calibrated
            on noise, with the warning W402. As with the command, 128 stimuli calibrate unless the options say another number.
        labels: ids (N,) of `data`, -1 for none; what has labels is scored too.
        options: how many stimuli, corrections and others.

    Raises:
        N2D2Error: E4xx for data that do not fit, E504 values that are not finite, E508 no stimuli, E501 to E503 statistics
            that cannot be reloaded.
    """
    run = checked(replace(_with_data(model.options, data, labels), calibration=options))
    count = 0 if options.reload else options.stimuli if options.stimuli > 0 else SYNTHETIC_STIMULI
    network = with_data(model.network, data, labels, None if options.stimuli == 0 else count)
    return CalibratedModel(calibrate_stage(network, options), run)


def quantize(
    model: Model,
    calibrated: CalibratedModel | None = None,
    *,
    bits: int | None = None,
    options: QuantizationOptions = QuantizationOptions(),
) -> QuantizedModel:
    """Gives every tensor a number type: integers by a calibration, or floating point.

    Args:
        model: the network; with a calibration, the one that was calibrated.
        bits: 8 or 16 for integers; -32 or -64 for floating point, -16 for that with weights in half precision; None: those
            of the options.

    Raises:
        N2D2Error: E506 another width, E507 integers without a calibration, E51x layers without integer arithmetic, all
            together.
    """
    options = options if bits is None else replace(options, bits=bits)
    without = replace(model.options, calibration=CalibrationOptions(stimuli=0))
    run = checked(replace(calibrated.options if calibrated else without, quantization=options))
    if not options.integer:
        network = _calibrated_network(model, calibrated)
        return QuantizedModel(quantize_stage(network, options, run.given), run)
    if calibrated is None:
        calibrated = CalibratedModel(calibrate_stage(model.network, run.calibration), run)
    return QuantizedModel(quantize_stage(calibrated.calibration, options, run.given), run)


def _calibrated_network(model: Model, calibrated: CalibratedModel | None) -> LoadedNetwork:
    """The network as it was loaded, with the data of its calibration, if any."""
    return model.network if calibrated is None else replace(model.network, data=calibrated.calibration.network.data)


def score(
    model: Model | QuantizedModel,
    data: Data | None = None,
    labels: Labels | None = None,
    *,
    options: ScoreOptions = ScoreOptions(),
    folder: str | Path | None = None,
) -> ScoreTable:
    """Scores a network over its test stimuli, or over given data with labels: in floating point, and the integers simulated.

    Args:
        folder: where the target folders with confusion matrices are written; None writes none.

    Raises:
        N2D2Error: E509 no stimuli, E513 an index beyond them, E4xx data that do not fit.
    """
    run = checked(replace(_with_data(model.options, data, labels), score=replace(options, test=True)))
    typed = model.quantized if isinstance(model, QuantizedModel) else None
    network = with_data(typed.network if typed else _network(model), data, labels)
    stimuli = pipeline.required_stimuli(network, run.score)
    graphs = (typed.float_graph, typed.graph) if typed else (network.graph, None)
    with tempfile.TemporaryDirectory() as nowhere:
        return _score_table(score_stage(network, *graphs, stimuli, Path(folder or nowhere), options.as_json))


def export(
    model: str | Path | Model | QuantizedModel,
    target: str | None = None,
    *,
    data: Data | None = None,
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
    """Writes a project of a target into FOLDER/export_TARGET_<int|float><bits>; of a file or a network all steps before too.

    Args:
        model: NET.ini, NET.onnx, a loaded or a quantized network; of the last one, data and the options of the steps before
            have no effect.
        target: such as "CPP" or "NVDLA"; None: what the network was loaded for, of a file "CPP".
        data, labels: as of `calibrate`.
        bits: as of `quantize`.
        test: whether the export is scored, and built for that; None: where `labels` are given.
        folder: in which the export's folder is written; the rest of it is left alone.
        quiet, progress: as of `load`, where `model` is a file.

    Raises:
        N2D2Error: for every wrong input; nothing half-written stays behind. E7xx what the target cannot take, E60x memory,
            E812 an export whose output differs from Python's.
    """
    scored = replace(score_options, test=score_options.test or labels is not None if test is None else test)
    if isinstance(model, QuantizedModel):
        name = find_target(target or options.target or model.target).name
        run = checked(replace(model.options, score=scored, export=replace(options, target=name), folder=Path(folder)))
        pipeline.check_tuning(model.quantized.network, run)
        tested = pipeline.tested_stimuli(model.quantized.network, run)
        return _exported(pipeline.export_quantized(model.quantized, tested, run), model)
    chosen = quantization if bits is None else replace(quantization, bits=bits)
    if not isinstance(model, Model):
        count = calibration.stimuli if calibration.stimuli > 0 else SYNTHETIC_STIMULI
        noise = None if not chosen.integer else 0 if calibration.reload else count
        given = load_options if data is None else replace(load_options, data=data, labels=labels)
        model = load(
            model,
            target or options.target,
            options=replace(given, synthetic=noise),
            folder=folder,
            quiet=quiet,
            progress=progress,
        )
        data = None
    if chosen.integer and not is_quantized(model.graph):
        calibrated = calibrate(model, data, labels, options=calibration)
        quantized = quantize(model, calibrated, options=chosen)
    else:
        network = with_data(model.network, data, labels)
        quantized = quantize(Model(network, _with_data(model.options, data, labels)), options=chosen)
    return export(quantized, target, folder=folder, score_options=scored, options=options, test=scored.test)


def compare(exported: ExportedModel | QuantizedModel, stimuli: int = 10) -> ComparedExport:
    """Compares every layer over `stimuli` stimuli: float and simulated; an export, which is built and run, compiled too.

    Raises:
        N2D2Error: E509 no stimuli, E80x where the export cannot be built or run.
    """
    if isinstance(exported, QuantizedModel):
        typed = exported.quantized
        tested = pipeline.required_stimuli(typed.network, ScoreOptions()).spread(stimuli)
        found = compare_stage(typed.float_graph, typed.graph, tested, None)
        weakest = min(found.layers, key=lambda one: one.sqnr_db)
        what = f"{len(found.layers)} layers, the weakest is {weakest.layer} with {weakest.sqnr_db:.1f} dB"
        return ComparedExport(found.layers, f"{what}; {summary(found.layers, typed.graph.bits)}")
    found = pipeline.compare_export(exported.run, stimuli)
    text = summary(found.layers, exported.model.graph.bits, exported.run.slack)
    return ComparedExport(found.layers, text)


def _stimulus(network: LoadedNetwork, graph: Graph, chosen: int | np.ndarray) -> np.ndarray:
    """The real values of a stimulus of the test set, else of the one that calibrates, or the given ones."""
    return one_stimulus(graph, scored_stimuli(network, ScoreOptions()), chosen, str(network.files[0]))


def _network(model: Model | QuantizedModel) -> LoadedNetwork:
    return model.network if isinstance(model, Model) else model.quantized.network


def _with_data(options: RunOptions, data: Data | None, labels: Labels | None) -> RunOptions:
    return options if data is None else replace(options, load=replace(options.load, data=data, labels=labels))


def _exported(run: pipeline.ExportRun, model: QuantizedModel) -> ExportedModel:
    memory = run.project.memory
    figures = None
    if memory is not None:
        plan = memory.plan
        figures = MemoryFigures(
            plan.arena_bytes, memory.problem.tensor_bytes, plan.bound, str(plan.options.get("MemoryMode", plan.strategy))
        )
    report = run.folder / "statistics" / "report.html"
    return ExportedModel(run.folder, report, _score_table(run.checked.scores), figures, model, run)


def _score_table(scores: Scores) -> ScoreTable:
    return ScoreTable({target: dict(rows) for target, rows in scores.rows.items()})


def _graph_title(graph: Graph) -> str:
    count = sum(not node.helper for node in graph.nodes)
    return f"{graph.name}: {count} layers, inputs {_shapes(graph, graph.inputs)}, outputs {_shapes(graph, graph.outputs)}"


def _shapes(graph: Graph, names: list[str]) -> str:
    return ", ".join(f"{name} {_dims(graph.shape(name))}" for name in names)


def _dims(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape[1:]))


def _float_rows(graph: Graph) -> list[tuple[str, ...]]:
    return [
        (
            node.name,
            node.op.kind,
            _dims(graph.shape(node.outputs[0])),
            graph.kind(node.outputs[0]) or "float32",
            f"{layer_params(node):,}",
            f"{layer_macs(graph, node):,}",
        )
        for node in graph.nodes
        if not node.helper
    ]
