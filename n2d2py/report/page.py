"""The files of `statistics/`, with `report.html`: one file that shows everything, without any other file or host."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.arithmetic.histogram import CLIPPING_MODES
from n2d2py.files import json_text, write_text
from n2d2py.memory.format import write_memory_files
from n2d2py.report.bits import bits_csv, bits_text, draw_front, packing_text
from n2d2py.report.calibration import CANDIDATE_CLASSES, TensorRange, draw_histogram, tensor_ranges, write_calibration
from n2d2py.report.comparison import (
    WEAK_DB,
    comparison_csv,
    comparison_text,
    draw_levels,
    draw_sqnr,
    identical_word,
    inline_picture,
    levels_csv,
    worst_csv,
    worst_text,
)
from n2d2py.report.data import ReportData
from n2d2py.report.drawing import draw_memory, draw_network
from n2d2py.report.in_float import float_layers_csv, float_layers_in, float_layers_text, float_shares
from n2d2py.report.layers import LayerRow, layer_rows, layer_table, layers_csv, layers_text, totals
from n2d2py.report.pipeline import shown_stages
from n2d2py.report.summary import latency_bars, loss_bars, summary, tiles
from n2d2py.report.text import decimal, grouped, short_bytes, short_count
from n2d2py.resources import folder, templates
from n2d2py.targets import Score, ScoreRow, class_metrics, score_columns, score_lines
from n2d2py.targets.plots import DRAWN_CLASSES, draw_confusion

MISSES_SHOWN = 48
"""Misclassified stimuli of a target that the page shows."""


def report_page(data: ReportData, rows: list[LayerRow], ranges: list[TensorRange]) -> str:
    """Return the text of the page."""
    in_float = float_layers_in(data.qgraph, data.graph)
    page = rendered(
        "report.html.j2",
        data=data,
        rows=rows,
        in_float=in_float,
        in_float_shares=float_shares(in_float),
        totals=totals(rows),
        tiles=tiles(data, rows),
        times=latency_bars(data, rows),
        losses=loss_bars(data, rows),
        front=draw_front(data.search, standalone=False) if data.search else "",
        bits=bits_text(data.search) if data.search else "",
        layers=layer_table(data, rows),
        precision=f"int{data.qgraph.bits}" if data.qgraph.bits > 0 else f"float{-data.qgraph.bits}",
        targets=_targets(data),
        histograms=[(r, draw_histogram(r, width=250, height=92, standalone=False)) for r in ranges],
        modes=[(mode, CANDIDATE_CLASSES[mode]) for mode in CLIPPING_MODES],
        memory=draw_memory(data.problem, data.plan, [row.name for row in rows]) if data.problem and data.plan else "",
        planes=_planes(data),
        packing=packing_text(data.qgraph),
        weak=WEAK_DB,
        sqnr=draw_sqnr(data.comparisons) if data.comparisons else "",
        comparisons=[(c, identical_word(c)) for c in data.comparisons],
        numbers={row.name: k for k, row in enumerate(rows)},
        levels=[(c, draw_levels(c.levels)) for c in data.comparisons if c.levels is not None],
        worst=_worst(data),
        inputs=[(one, inline_picture(data.contract.red_first(one.image))) for one in data.inputs],
        stages=shown_stages(data.stages) if data.stages else [],
        drawing=draw_network(data.qgraph, standalone=False),
    )
    return page.rstrip("\n") + "\n"


def _targets(data: ReportData) -> list[dict[str, Any]]:
    """Per target: its table of scores, and the details of the score nearest to what is deployed."""
    pictures = {number: inline_picture(data.contract.red_first(image)) for number, image in data.images.items()}
    grouped_rows: dict[str, list[ScoreRow]] = {}
    for label, score in data.scores:
        grouped_rows.setdefault(score.target, []).append(ScoreRow(label, score))
    result = []
    for name, rows in grouped_rows.items():
        table, shown = dict(zip(("header", "body", "note"), score_columns(rows), strict=True)), rows[-1]
        first = {"name": name, **table, "label": shown.label, "lines": score_lines(shown.score)}
        result.append({**first, **_details(shown.score, pictures)})
    return result


def _details(score: Score, pictures: Mapping[int, str]) -> dict[str, Any]:
    confusion, classes = score.confusion, score.classes
    return {
        "confusion": draw_confusion(score, standalone=False) if score.count > 0 and 0 < len(classes) <= DRAWN_CLASSES else "",
        "classes": len(classes),
        "misses": [
            {
                "miss": one,
                "label": classes[one.label],
                "estimated": classes[one.estimated],
                "picture": pictures.get(one.index, ""),
            }
            for one in score.misses_by_class(MISSES_SHOWN)
        ],
        "miss_count": len(score.misclassified),
        "by_class": list(zip(classes, confusion.sum(axis=1).tolist(), class_metrics(confusion), strict=True))
        if len(classes)
        else [],
    }


def _worst(data: ReportData) -> list[dict[str, Any]]:
    classes = data.scores[0][1].classes if data.scores else ()

    def name(index: int) -> str:
        return classes[index] if 0 <= index < len(classes) else str(index)

    return [
        {
            "stimulus": one,
            "picture": "" if one.image is None else inline_picture(data.contract.red_first(one.image)),
            "expected": name(one.expected),
            "found": name(one.found),
            "label": name(one.label) if one.label >= 0 else "",
        }
        for one in data.stimuli
    ]


def _planes(data: ReportData) -> list[dict[str, Any]]:
    if data.plan is None or data.problem is None:
        return []
    buffers = [(name, name, False) for name in data.problem.inputs]
    buffers += [(op, data.problem.op(op).output, op in data.plan.views) for op in data.plan.order]
    planes = [(name, data.plan.planes[buffer], is_view) for name, buffer, is_view in buffers]
    return [{"name": name, "plane": one, "view": is_view, "parts": one.intervals()} for name, one, is_view in planes]


# ---- pages from templates: one file each, whose own style and script are the only ones that it allows ----
def rendered(name: str, **values: Any) -> str:
    """Return the page of a template in export_templates/report.

    Its content security policy (https://www.w3.org/TR/CSP3/) names the digests of `page.css` and `page.js`: no other style
    or script runs, whatever the names in the page are, and nothing is asked of any host.
    """
    home = folder("export_templates") / "report"
    style, script = ("\n" + (home / file).read_text(encoding="utf-8") for file in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    environment = templates("report", escape=True)
    environment.filters.update(grouped=grouped, bytes=short_bytes, count=short_count, decimal=decimal)
    return environment.get_template(name).render(style=style, script=script, policy=policy, icon=_icon(), **values)


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"


def _icon() -> str:
    image = np.full((16, 16, 3), 255, np.uint8)
    for k, top in enumerate((9, 5, 2)):
        image[top:14, 2 + 4 * k : 5 + 4 * k] = (47, 107, 189)
    return inline_picture(image)


def write_report(data: ReportData, folder: Path) -> None:
    """Write all files of a report into `folder` (the export's `statistics`); equal data give equal bytes.

    layers.csv, layers.txt, float_layers.csv and .txt where an integer network has such, summary.json, report.html; calibration/
    (ranges and histograms); memory/ with a plan, packed_activations.txt there where tensors are packed; bits/ with a search for
    bits; graph/network.svg and graph.json; compare.txt, compare.csv, compare_levels.csv and compare_stimuli.csv with
    comparisons.
    """
    rows = layer_rows(data.qgraph, data.kernels)
    ranges = tensor_ranges(data)
    write_text(folder / "layers.csv", layers_csv(rows))
    write_text(folder / "layers.txt", layers_text(rows))
    in_float = float_layers_in(data.qgraph, data.graph)
    if in_float:
        write_text(folder / "float_layers.csv", float_layers_csv(in_float))
        write_text(folder / "float_layers.txt", float_layers_text(in_float))
    write_text(folder / "summary.json", json_text(summary(data, rows)))
    if ranges:
        write_calibration(folder / "calibration", ranges)
    if data.problem is not None and data.plan is not None:
        write_memory_files(folder / "memory", data.problem, data.plan)
        draw_memory(data.problem, data.plan, standalone=True).save(folder / "memory" / "memory_mapping.svg")
    if packing := packing_text(data.qgraph):
        write_text(folder / "memory" / "packed_activations.txt", packing)
    draw_network(data.qgraph).save(folder / "graph" / "network.svg")
    write_text(folder / "graph" / "graph.json", json_text(data.qgraph.dump()))
    if data.search is not None:
        write_text(folder / "bits" / "front.txt", bits_text(data.search))
        write_text(folder / "bits" / "front.csv", bits_csv(data.search))
        draw_front(data.search).save(folder / "bits" / "front.svg")
    if data.comparisons:
        worst = "\n" + worst_text(data.stimuli) if data.stimuli else ""
        write_text(folder / "compare.txt", comparison_text(data.comparisons) + worst)
        write_text(folder / "compare_levels.csv", levels_csv(data.comparisons))
        write_text(folder / "compare_stimuli.csv", worst_csv(data.stimuli))
        write_text(folder / "compare.csv", comparison_csv(data.comparisons))
    write_text(folder / "report.html", report_page(data, rows, ranges))
