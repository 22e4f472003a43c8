"""Stage report: statistics, pictures and report.html of the run; the score tables on stdout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from n2d2py import log
from n2d2py.errors import Location, N2D2Error
from n2d2py.export import KernelChoice
from n2d2py.report import ReportData, write_report
from n2d2py.stages.compare import Comparison
from n2d2py.stages.memory import PlannedNetwork
from n2d2py.stages.quantize import QuantizedNetwork
from n2d2py.stages.score import Scores
from n2d2py.targets import ScoreRow, score_lines, score_table

__all__ = ["print_scores", "report_stage"]


def report_stage(
    quantized: QuantizedNetwork,
    memory: PlannedNetwork | None,
    scores: Scores,
    compared: Comparison,
    recorded: Mapping[str, object],
    folder: Path,
    kernels: list[KernelChoice] | None = None,
) -> None:
    """Writes everything under statistics/."""
    network, observed, types = quantized.network, quantized.observed, quantized.types
    data = ReportData(
        network.graph.name,
        quantized.float_graph,
        memory.graph if memory else quantized.graph,
        dict(recorded),
        quantized.options,
        observed.statistics.histograms if observed else {},
        types.thresholds if types else {},
        memory.problem if memory else None,
        memory.plan if memory else None,
        [(_plain(label), score) for rows in scores.rows.values() for label, score in rows],
        compared.layers,
        quantized.fused.lines(),
        [_without_folder(warning) for warning in log.warnings_seen()],
        network.data.steps,
        compared.stimuli,
        {one.layer: one for one in kernels or []},
        quantized.graph,
    )
    write_report(data, folder / "statistics")


def _without_folder(warning: N2D2Error) -> str:
    """The warning's line with the file's name only, so that the report is the same in every folder."""
    where = warning.where
    if isinstance(where, Location) and where.file:
        where = replace(where, file=Path(where.file).name)
    elif isinstance(where, str):
        where = Path(where).name
    return N2D2Error(warning.code, warning.what, where=where, remedy=warning.remedy).line()


def _plain(label: str) -> str:
    return label.split()[0]


def print_scores(scores: Scores) -> None:
    """The table of each target on stdout: float, simulated, compiled."""
    for target, rows in scores.rows.items():
        if len(scores.rows) > 1:
            print(f"{target}:")
        print(score_table([ScoreRow(label, score) for label, score in rows]), end="")
        typed = rows[1][1] if len(rows) > 1 else rows[0][1]
        print("\n".join(score_lines(typed)))
