"""Figures of the results, for notebooks: matplotlib is imported when one is drawn, no display is needed.

Each function gives a `matplotlib.figure.Figure`, which notebooks show and `savefig` writes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from n2d2py.errors import N2D2Error, suggest
from n2d2py.figures import new_figure
from n2d2py.files import plain_text
from n2d2py.quant.observe.compare import LayerComparison
from n2d2py.report import ReportData
from n2d2py.report.calibration import TensorRange, tensor_ranges
from n2d2py.report.text import shorten
from n2d2py.stages.quantize import QuantizedNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_BARS, _WEAK, _CHOSEN = "#4e79a7", "#f28e2b", "#d62728"
_WEAK_DB = 15.0
"""SQNR in dB below which a layer stands out, as in report.html."""


@plain_text()
def error_figure(layers: Sequence[LayerComparison]) -> Figure:
    """SQNR of each layer in dB, in execution order; a mark is the layer alone, on the float network's inputs.

    A layer without any error reaches the top.

    Raises:
        N2D2Error: E454 without matplotlib.
    """
    figure = new_figure(max(5.0, min(24.0, 2.0 + 0.3 * len(layers))), 4.0, what="the plot of layers", layout="constrained")
    axes = figure.add_subplot()
    known = [value for one in layers for value in (one.sqnr_db, one.alone_db) if value is not None and math.isfinite(value)]
    top = 1.05 * max([10.0, *known])

    def height(value: float) -> float:
        return min(max(value, 0.0), top)

    colours = [_WEAK if one.sqnr_db < _WEAK_DB else _BARS for one in layers]
    axes.bar(range(len(layers)), [height(one.sqnr_db) for one in layers], color=colours, label="in the network")
    alone = [(place, height(one.alone_db)) for place, one in enumerate(layers) if one.alone_db is not None]
    if alone:
        axes.plot(*zip(*alone, strict=True), linestyle="none", marker="_", markersize=10, color="black", label="alone")
        axes.legend(fontsize=8)
    axes.set_xticks(range(len(layers)), [shorten(one.layer, 24) for one in layers], rotation=90, fontsize=7)
    axes.set_ylim(0, top)
    axes.set_ylabel("SQNR (dB)")
    axes.grid(axis="y", alpha=0.3)
    return figure


@plain_text()
def histogram_figure(quantized: QuantizedNetwork, names: Sequence[str] = (), columns: int = 3) -> Figure:
    """Return the values of the calibrated tensors, counts on a logarithmic axis; the range that the integers hold is shaded.

    Args:
        names: the layers and inputs to draw, in this order; all without any.
        columns: histograms side by side, 1 or more.

    Raises:
        N2D2Error: E454 without matplotlib, E516 a name, or a network, that was not calibrated.
    """
    by_name = {one.layer: one for one in _ranges(quantized)}
    for name in names:
        if name not in by_name:
            raise N2D2Error("E516", f"'{name}' has no histogram", remedy=suggest(name, by_name))
    chosen = [by_name[name] for name in names] if names else list(by_name.values())
    columns = max(1, min(columns, len(chosen)))
    lines = max(1, -(-len(chosen) // columns))
    figure = new_figure(3.6 * columns, 2.2 * lines, what="the plot of histograms", layout="constrained")
    for place, one in enumerate(chosen):
        _draw_range(figure.add_subplot(lines, columns, place + 1), one)
    return figure


def _ranges(quantized: QuantizedNetwork) -> list[TensorRange]:
    """Return the ranges that the calibration of a network saw: E516 without one."""
    if quantized.observed is None or quantized.types is None:
        raise N2D2Error("E516", "the model is not calibrated", remedy="quantize it with calibration data")
    return tensor_ranges(
        ReportData(
            quantized.network.graph.name,
            quantized.float_graph,
            quantized.graph,
            quant=quantized.options,
            histograms=quantized.observed.statistics.histograms,
            thresholds=quantized.types.thresholds,
        )
    )


def _draw_range(axes: Axes, one: TensorRange) -> None:
    axes.stairs(one.counts, one.edges, fill=True, color=_BARS)
    axes.set_yscale("symlog", linthresh=1)
    axes.yaxis.set_visible(False)
    if one.threshold is not None:
        low = -one.threshold if one.edges[0] < 0 else 0.0
        axes.axvspan(low, one.threshold, color=_CHOSEN, alpha=0.08)
        for edge in (low, one.threshold) if low else (one.threshold,):
            axes.axvline(edge, color=_CHOSEN, linewidth=1.0)
    beyond = f", {100 * one.clipped:.2g} % beyond" if one.clipped else ""
    text = "" if one.threshold is None else f": {one.threshold:.4g}{beyond}"
    axes.set_title(f"{shorten(one.layer, 26)}{text}", fontsize=8)
    axes.tick_params(labelsize=7)
