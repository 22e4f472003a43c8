"""`report.html`: one file that shows everything, without any other file or host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from n2d2py.quant.thresholds import CLIPPING_MODES
from n2d2py.report.calibration import TensorRange
from n2d2py.report.comparison import identical_word
from n2d2py.report.comparison_plot import draw_levels, draw_sqnr, inline_picture
from n2d2py.report.confusion_plot import draw_confusion_svg, frequent_confusions
from n2d2py.report.data import ReportData
from n2d2py.report.drawing import draw_network
from n2d2py.report.histogram_plot import CANDIDATE_CLASSES, HistogramPlot, draw_histogram
from n2d2py.report.layers import LayerRow, Totals, totals
from n2d2py.report.memory_plot import draw_memory
from n2d2py.report.summary import SCORE_LABELS
from n2d2py.report.text import decimal, grouped, short_bytes, short_count
from n2d2py.resources import folder
from n2d2py.targets import Score, ScoreRow, score_columns, score_lines

__all__ = ["report_page"]

_MISSES_SHOWN = 100
_PICTURE_CLASSES = 200


@dataclass(frozen=True)
class Tile:
    """A figure at the head of the page; `alarm` when it needs attention."""

    name: str
    value: str
    note: str = ""
    alarm: bool = False


def report_page(data: ReportData, rows: list[LayerRow], ranges: list[TensorRange]) -> str:
    """The text of the page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(folder("export_templates") / "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(grouped=grouped, bytes=short_bytes, count=short_count, decimal=decimal)
    page = environment.get_template("report.html.j2").render(
        data=data,
        rows=rows,
        totals=totals(rows),
        tiles=_tiles(data, rows),
        largest=_largest(rows),
        precision=_precision(data.qgraph.bits),
        targets=_targets(data),
        histograms=_histograms(ranges),
        modes=[(mode, CANDIDATE_CLASSES[mode]) for mode in CLIPPING_MODES],
        memory=draw_memory(data.problem, data.plan) if data.problem is not None and data.plan is not None else "",
        planes=_planes(data),
        sqnr=draw_sqnr(data.comparisons) if data.comparisons else "",
        comparisons=[(c, identical_word(c)) for c in data.comparisons],
        levels=[(c, draw_levels(c.levels)) for c in data.comparisons if c.levels is not None],
        worst=_worst(data),
        drawing=draw_network(data.qgraph, standalone=False),
    )
    return page if page.endswith("\n") else page + "\n"


def _precision(bits: int) -> str:
    return f"int{bits}" if bits > 0 else f"float{-bits}"


def _largest(rows: list[LayerRow]) -> dict[str, int]:
    """The largest value of each column that is drawn with bars, at least 1."""
    return {
        key: max([1, *(getattr(row, key) for row in rows)])
        for key in ("macs", "parameters", "parameter_bytes", "activation_bytes")
    }


def _score_tile(data: ReportData, label: str) -> Tile:
    score = data.score(label)
    if score is None:
        return Tile(f"{label} score", "–", "not run")
    if score.errors is not None:
        auc = f"AUC {score.auc:.4f}, " if score.auc is not None else ""
        return Tile(f"{label} MSE", decimal(score.mse, 5) or "–", f"{auc}{score.stimuli} stimuli")
    if score.top1 is None:
        return Tile(f"{label} score", "–", f"{score.stimuli} stimuli without labels")
    note = f"{score.correct} of {score.count}"
    return Tile(
        f"{label} score",
        f"{score.top1:.2f}%",
        note + (f", top-{score.top_n} {score.topn:.2f}%" if score.topn is not None else ""),
    )


def _weights_text(sums: Totals) -> str:
    packed = f", {grouped(sums.parameter_bytes)} before packing" if sums.flash_bytes != sums.parameter_bytes else ""
    return f"{grouped(sums.flash_bytes)} bytes{packed}"


def _tiles(data: ReportData, rows: list[LayerRow]) -> list[Tile]:
    sums = totals(rows)
    tiles = [_score_tile(data, label) for label in SCORE_LABELS]
    if data.plan is not None:
        tiles.append(Tile("arena", short_bytes(data.plan.arena_bytes), f"{grouped(data.plan.arena_bytes)} bytes"))
    tiles += [
        Tile("weights", short_bytes(sums.flash_bytes), _weights_text(sums)),
        Tile("MACs", short_count(sums.macs), f"{grouped(sums.macs)} per inference"),
        Tile("layers", str(sums.layers), f"{short_count(sums.parameters)} parameters"),
    ]
    tested = [c for c in data.comparisons if c.identical is not None]
    if tested:
        wrong = [c.layer for c in tested if not c.identical]
        tiles.append(
            Tile(
                "compiled = simulated",
                "no" if wrong else "yes",
                f"first difference in {wrong[0]}" if wrong else f"all {len(tested)} layers",
                bool(wrong),
            )
        )
    return tiles


def _targets(data: ReportData) -> list[dict[str, Any]]:
    """Per target: its table of scores, and the details of the score nearest to what is deployed."""
    grouped_rows: dict[str, list[ScoreRow]] = {}
    for label, score in data.scores:
        grouped_rows.setdefault(score.target, []).append(ScoreRow(label, score))
    result = []
    for name, rows in grouped_rows.items():
        header, body, note = score_columns(rows)
        shown = rows[-1]
        result.append(
            {
                "name": name,
                "header": header,
                "body": body,
                "note": note,
                "label": shown.label,
                "lines": score_lines(shown.score),
                **_details(shown.score),
            }
        )
    return result


def _details(score: Score) -> dict[str, Any]:
    confusion, classes = score.confusion, score.classes
    draw = score.count > 0 and 0 < len(classes) <= _PICTURE_CLASSES
    misses = score.misclassified
    return {
        "confusion": draw_confusion_svg(confusion, classes) if draw else "",
        "classes": len(classes),
        "frequent": frequent_confusions(confusion, classes) if len(classes) else [],
        "misses": [(miss, classes[miss.label], classes[miss.estimated]) for miss in misses[:_MISSES_SHOWN]],
        "miss_count": len(misses),
    }


def _histograms(ranges: list[TensorRange]) -> list[tuple[TensorRange, str]]:
    return [
        (r, draw_histogram(HistogramPlot(r.edges, r.counts, r.threshold, r.candidates), width=250, height=92, standalone=False))
        for r in ranges
    ]


def _worst(data: ReportData) -> list[dict[str, Any]]:
    """The stimuli whose outputs the integers hold worst, with their pictures and the names of their classes."""
    classes = data.scores[0][1].classes if data.scores else ()

    def name(index: int) -> str:
        return classes[index] if 0 <= index < len(classes) else str(index)

    red_first = not data.pipeline or any("RGB" in step for step in data.pipeline)
    result = []
    for one in data.stimuli:
        image = one.picture
        if image is not None and image.ndim == 3 and not red_first:
            image = image[:, :, ::-1].copy()
        result.append(
            {
                "stimulus": one,
                "picture": "" if image is None else inline_picture(image),
                "expected": name(one.expected),
                "found": name(one.found),
                "label": name(one.label) if one.label >= 0 else "",
            }
        )
    return result


def _planes(data: ReportData) -> list[dict[str, Any]]:
    """The buffers in the order of execution."""
    if data.plan is None or data.problem is None:
        return []
    names = [*data.problem.inputs, *(data.problem.op(name).output for name in data.plan.order)]
    writers = {data.problem.op(name).output: name for name in data.plan.order}
    result = []
    for name in names:
        plane, writer = data.plan.planes[name], writers.get(name)
        parts = plane.intervals()
        result.append({"name": writer or name, "plane": plane, "view": writer in data.plan.views, "parts": parts})
    return result
