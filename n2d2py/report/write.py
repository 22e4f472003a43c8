"""Writes `statistics/`: every table, plot and figure of an export."""

from __future__ import annotations

from pathlib import Path

from n2d2py.files import json_text, write_text
from n2d2py.memory.format import write_memory_files
from n2d2py.report.bits import bits_csv, bits_text, draw_front, packing_text
from n2d2py.report.calibration import tensor_ranges, write_calibration
from n2d2py.report.comparison import comparison_csv, comparison_text, levels_csv, worst_csv, worst_text
from n2d2py.report.data import ReportData
from n2d2py.report.drawing import draw_memory, draw_network
from n2d2py.report.in_float import float_layers_csv, float_layers_in, float_layers_text
from n2d2py.report.layers import layer_rows, layers_csv, layers_text
from n2d2py.report.page import report_page
from n2d2py.report.summary import summary


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
    write_calibration(folder / "calibration", data, ranges)
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
