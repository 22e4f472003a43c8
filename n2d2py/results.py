"""Results of the functions of the API: a network after each step, scores and comparisons, which show themselves as tables."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from n2d2py import pipeline
from n2d2py.data.input_data import as_array
from n2d2py.errors import N2D2Error, suggest
from n2d2py.exports import target_names
from n2d2py.figures import Drawing
from n2d2py.graph import Graph, InputContract, QuantGraph, dims_text, layer_macs, layer_params
from n2d2py.passes.edit import Operation, apply_pass, insert_layer, remove_layer, rename, replace_layer, set_precision
from n2d2py.quant.observe.compare import LayerComparison
from n2d2py.report import ReportData, comparison_text
from n2d2py.report.calibration import draw_histograms, tensor_ranges
from n2d2py.report.comparison import draw_sqnr
from n2d2py.report.drawing import draw_memory
from n2d2py.report.layers import layer_rows
from n2d2py.runtime import FloatNetwork, Network, Simulator
from n2d2py.runtime.base import NetworkInfo
from n2d2py.stages.calibrate import Calibration
from n2d2py.stages.compare import refuse_differences
from n2d2py.stages.fuse import with_graph
from n2d2py.stages.load import LoadedNetwork
from n2d2py.stages.options import RunOptions, ScoreOptions
from n2d2py.stages.quantize import QuantizedNetwork
from n2d2py.stages.score import scored_stimuli
from n2d2py.stages.score_decisions import with_pipeline
from n2d2py.stages.values import LayerValues, layer_values, one_stimulus
from n2d2py.targets import Score, ScoreRow, score_table, text_table
from n2d2py.targets.plots import draw_confusion

if TYPE_CHECKING:
    from pandas import DataFrame

Cell = str | float | None
"""A cell of a table: int, float and None too."""

_LAYERS = ("layer", "operator", "output", "type", "parameters", "MACs")


class _Shown:
    """Shows itself as a title and a table: as text, in notebooks, and as a DataFrame."""

    def _title(self) -> str:
        raise NotImplementedError

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        """Return the header and the rows."""
        raise NotImplementedError

    def to_pandas(self) -> DataFrame:
        """Return the table as a DataFrame with numbers, not texts. Raise E454 without pandas."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise N2D2Error("E454", "the table requires pandas", remedy="pip install pandas") from error
        header, rows = self._table()
        return DataFrame(rows, columns=list(header))

    def _text_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the header and the rows as texts, without the middle of more than 60 rows."""
        header, rows = self._table()
        cells = [tuple(map(_cell_text, row)) for row in rows]
        if len(cells) > 60:
            cells[20:-20] = [("...", *[""] * (len(header) - 1))]
        return header, cells

    def __repr__(self) -> str:
        header, rows = self._text_table()
        return f"{self._title()}\n{text_table(header, rows)}" if rows else self._title()

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        header, rows = self._text_table()
        table = line(header, "th") + "".join(line(row, "td") for row in rows)
        return f"<p>{html.escape(self._title())}</p><table>{table}</table>"


def _cell_text(cell: Cell) -> str:
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}" if isinstance(cell, float) else cell


class _Runs(_Shown):
    """Computes its outputs when it is called."""

    options: RunOptions

    @property
    def graph(self) -> Graph | QuantGraph:
        """Network that a call runs."""
        return self._loaded.graph

    @property
    def _loaded(self) -> LoadedNetwork:
        """Network with the data that it was loaded with."""
        raise NotImplementedError

    @property
    def target(self) -> str:
        """Export that it was loaded for."""
        return self.options.load.target or target_names()[0]

    @cached_property
    def _network(self) -> Network:
        graph = self.graph
        network = Simulator(graph) if isinstance(graph, QuantGraph) else FloatNetwork(graph)
        return with_pipeline(network, self._loaded, graph)

    @property
    def info(self) -> NetworkInfo:
        """Names, shapes and types of inputs and outputs, as of `n2d2py.load_export`."""
        return self._network.info

    def __call__(self, *inputs: np.ndarray, outputs: Sequence[str] | str | None = None) -> np.ndarray | tuple[np.ndarray, ...]:
        """Real outputs for real inputs (N, ...) in the axes of the file; the rest as in `n2d2py.load_export`. Raise E804 for
        arrays of another number, shape or type, or with NaN; for outputs that the network does not have."""
        return self._network(*map(as_array, inputs), outputs=outputs)

    def pipeline(self, raw: np.ndarray) -> Any:
        """Return the result for one raw image or sound, computed in Python, as `pipeline` of `n2d2py.load_export`. Raise E804,
        E407 for what the network does not take."""
        return self._network.pipeline(raw)

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        graph, rows = self._loaded.graph, []
        for node in graph.nodes:
            out = node.outputs[0]
            if not node.helper:
                kind, cost = graph.kind(out) or "float32", (layer_params(node), layer_macs(graph, node))
                rows.append((node.name, node.op.kind, dims_text(graph.shape(out)[1:]), kind, *cost))
        return _LAYERS, rows


class _FloatRuns(_Runs):
    @property
    def graph(self) -> Graph:
        """The float graph, fused once it is calibrated; shapes are (N, C, H, W) or (N, F) with N = 1."""
        return self._loaded.graph


class LayerTable(_Shown, dict[str, LayerValues]):
    """The values of every layer for one stimulus, by name: inputs first, then layers in execution order."""

    def _title(self) -> str:
        return f"{len(self)} inputs and layers"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        return ("layer", "shape", "float", "type", "integers", "largest error"), [
            (one.name, dims_text(one.float.shape), _extremes(one.float), *_integer_cells(one)) for one in self.values()
        ]


def _extremes(values: np.ndarray) -> str:
    return f"{values.min():.4g} .. {values.max():.4g}" if values.size else ""


def _integer_cells(one: LayerValues) -> tuple[Cell, Cell, Cell]:
    if one.integer is None or one.type is None or one.dequantized is None:
        return None, None, None
    error = np.abs(one.dequantized - one.float).max(initial=0.0)
    return one.type.name, _extremes(one.integer), float(error)


@dataclass(frozen=True, repr=False)
class Model(_FloatRuns):
    """A float network with its data. Edits and passes give a changed copy.

    Attributes:
        network: graph, targets, data and files.
        options: those that it was loaded with.
    """

    network: LoadedNetwork
    options: RunOptions

    @property
    def contract(self) -> InputContract:
        """Images that the network takes, and names of its classes."""
        return self.network.data.contract

    @property
    def _loaded(self) -> LoadedNetwork:
        return self.network

    def insert(self, after: str, name: str, operation: Operation, params: Mapping[str, np.ndarray] | None = None) -> Model:
        """Return the model with one more layer, as `n2d2py.passes.edit.insert_layer`."""
        return self._with(insert_layer(self.graph, after, name, operation, params))

    def replace(self, layer: str, operation: Operation, params: Mapping[str, np.ndarray] | None = None) -> Model:
        """Another operator or activation in a layer, as `n2d2py.passes.edit.replace_layer`."""
        return self._with(replace_layer(self.graph, layer, operation, params))

    def remove(self, layer: str) -> Model:
        """Return the model without a layer, as `n2d2py.passes.edit.remove_layer`."""
        return self._with(remove_layer(self.graph, layer))

    def rename(self, old: str, new: str) -> Model:
        """Another name of a layer, an input or an output, as `n2d2py.passes.edit.rename`."""
        return self._with(rename(self.graph, old, new))

    def set_precision(
        self, layer: str, bits: int | None = None, weight_bits: int | None = None, quantize: bool | None = None
    ) -> Model:
        """Return the model with other bit widths of a layer, or with the layer in floating point, as
        `n2d2py.passes.edit.set_precision`."""
        return self._with(set_precision(self.graph, layer, bits, weight_bits, quantize))

    def apply(self, *names: str) -> Model:
        """Apply passes one after the other, each wherever it fits, as `n2d2py.passes.edit.apply_pass`."""
        graph = self.graph
        for name in names:
            graph, _ = apply_pass(graph, name)
        return self._with(graph)

    def _with(self, graph: Graph) -> Model:
        return Model(with_graph(self.network, graph), self.options)

    def layers(self, stimulus: int | np.ndarray = 0) -> LayerTable:
        """Return the real values of every layer for one stimulus: one of the test set by its position, or an array.

        Args:
            stimulus: a position from 0, or real values (C, H, W).

        Raises:
            N2D2Error: E509 no stimuli, E513 a position beyond them, E414 an array of another shape.
        """
        return LayerTable(layer_values(self.graph, None, _stimulus(self.network, self.graph, stimulus)))

    def _title(self) -> str:
        return repr(self.graph)


@dataclass(frozen=True, repr=False)
class CalibratedModel(_FloatRuns):
    """A fused float network with the statistics of its tensors."""

    calibration: Calibration
    options: RunOptions

    @property
    def _loaded(self) -> LoadedNetwork:
        return self.calibration.network

    def _title(self) -> str:
        observed = self.calibration.observed
        how = "pre-quantized" if observed is None else f"calibrated on {observed.statistics.stimuli} samples"
        return f"{self.graph!r}, {how}"


@dataclass(frozen=True, repr=False)
class QuantizedModel(_Runs):
    """A network with a number type on every edge."""

    quantized: QuantizedNetwork
    options: RunOptions

    @property
    def graph(self) -> QuantGraph:
        """The typed graph."""
        return self.quantized.graph

    @property
    def _loaded(self) -> LoadedNetwork:
        return self.quantized.network

    def layers(self, stimulus: int | np.ndarray = 0) -> LayerTable:
        """Return the values of every layer for one stimulus, in the float network and in integers; as `Model.layers`."""
        real = self.quantized.float_graph
        return LayerTable(layer_values(real, self.graph, _stimulus(self.quantized.network, real, stimulus)))

    def plot_histograms(self, layers: Sequence[str] = (), columns: int = 3) -> Drawing:
        """Return the calibrated values of layers (all without names), in `columns`, with the range that their integers hold.
        Raise E516 for a layer, or a network, that was not calibrated."""
        found, types = self.quantized.observed, self.quantized.types
        if found is None or types is None:
            raise N2D2Error("E516", "the model is not calibrated", remedy="quantize it with calibration data")
        data = ReportData(self.graph.name, self.quantized.float_graph, self.graph, quant=self.quantized.options)
        data = replace(data, histograms=found.statistics.histograms, thresholds=types.thresholds)
        ranges = {one.layer: one for one in tensor_ranges(data)}
        for name in layers:
            if name not in ranges:
                raise N2D2Error("E516", f"'{name}' has no histogram", remedy=suggest(name, ranges))
        return draw_histograms([ranges[name] for name in layers or ranges], columns)

    def _title(self) -> str:
        kind = "int" if self.graph.bits > 0 else "float"
        return f"{self.quantized.network.graph!r}, {kind}{abs(self.graph.bits)}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        rows = layer_rows(self.graph)
        return _LAYERS, [
            (row.name, row.type, dims_text(self.graph.shape(node.outputs[0])[1:]), row.output_type, row.parameters, row.macs)
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
        return self._find("compiled")

    def plot_confusion(self, kind: str = "simulated") -> Drawing:
        """Return the confusion matrix of the first target: of "float", "simulated" or "compiled", else of the first that was
        scored. Raise E509 without scores."""
        scores = self._find(kind if kind in ("float", "compiled") else "simulated") or self.float
        if scores is None:
            raise N2D2Error("E509", "the result has no scores", remedy="give labels, and score the model")
        return draw_confusion(scores)

    def _find(self, kind: str) -> Score | None:
        """Return the score of the first target by the first word of its label; "compiled" has any other one."""
        first = {label.split()[0]: score for label, score in next(iter(self.rows.values()), {}).items()}
        others = [score for word, score in first.items() if word not in ("float", "simulated")]
        return first.get(kind) if kind != "compiled" else next(iter(others), None)

    def __repr__(self) -> str:
        tables = {target: [ScoreRow(label, score) for label, score in rows.items()] for target, rows in self.rows.items()}
        return "".join(f"{target}:\n{score_table(rows)}" for target, rows in tables.items())

    def _title(self) -> str:
        return ", ".join(self.rows) or "no scores"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        scores = [(target, label, score) for target, rows in self.rows.items() for label, score in rows.items()]
        figure = next((f"{score.detections.metric}, %" for _, _, score in scores if score.detections is not None), "top-1, %")
        return ("target", "computed", "stimuli", figure), [
            (target, label, score.stimuli, None if score.percent is None else round(score.percent, 2))
            for target, label, score in scores
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

    def pipeline(self, raw: np.ndarray) -> Any:
        """Return the result for one raw image or sound, computed in Python, as the compiled export does."""
        return self.model.pipeline(raw)

    def plot_memory(self) -> Drawing:
        """Return the memory map: address against time, a rectangle for each buffer. Raise E605 for a target that places memory
        itself."""
        memory = self.run.project.memory
        if memory is None:
            raise N2D2Error("E605", "this target places its memory itself", remedy="read the report of the export")
        return draw_memory(memory.problem, memory.plan, standalone=True)

    def _title(self) -> str:
        arena = f", arena {self.memory.arena:,} bytes" if self.memory else ""
        return f"{self.folder}: {self.model._title()}{arena}"

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
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
        """True if the compiled values of all layers were compared and none differs."""
        compared = any(layer.identical is not None for layer in self.layers)
        return compared and all(layer.difference is None for layer in self.layers)

    def plot(self) -> Drawing:
        """Return the error of every layer as SQNR in dB; a stroke is the layer alone."""
        return draw_sqnr(self.layers, standalone=True)

    def check(self) -> None:
        """Raise E812 where the compiled values of a layer are not those of Python."""
        refuse_differences(self.layers)

    def __repr__(self) -> str:
        return comparison_text(self.layers) + self.summary

    def _title(self) -> str:
        return self.summary

    def _table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        compiled = {None: "not compared", True: "identical", False: "differs"}
        return ("layer", "SQNR, dB", "alone, dB", "largest error", "saturated, %", "compiled"), [
            (one.layer, one.sqnr_db, one.alone_db, one.max_error, 100 * one.saturated, compiled[one.identical])
            for one in self.layers
        ]


def _stimulus(network: LoadedNetwork, graph: Graph, chosen: int | np.ndarray) -> np.ndarray:
    """Return the real values of a stimulus of the test set, else of the one that calibrates, or the given ones."""
    return one_stimulus(graph, scored_stimuli(network, ScoreOptions()), chosen, network.place)
