"""Stage report: statistics, pictures and report.html of the run; the score tables on stdout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from n2d2py import log
from n2d2py.errors import Location, N2D2Error
from n2d2py.export import KernelChoice
from n2d2py.passes import FuseReport
from n2d2py.report import ReportData, write_report
from n2d2py.stages.calibrate import Calibration
from n2d2py.stages.compare import Comparison
from n2d2py.stages.load import Network
from n2d2py.stages.memory import Memory
from n2d2py.stages.settings import Settings
from n2d2py.stages.test import Scores
from n2d2py.targets import ScoreRow, score_lines, score_table

__all__ = ["print_scores", "report_stage"]


def report_stage(
    network: Network,
    calibration: Calibration,
    memory: Memory | None,
    scores: Scores,
    compared: Comparison,
    fused: FuseReport,
    settings: Settings,
    folder: Path,
    kernels: list[KernelChoice] | None = None,
) -> None:
    """Writes everything under statistics/."""
    statistics, types = calibration.statistics, calibration.types
    data = ReportData(
        network.graph.name,
        calibration.float_graph,
        memory.graph if memory else calibration.graph,
        settings.arguments.described(),
        settings.quant if settings.integer else None,
        statistics.histograms if statistics else {},
        types.thresholds if types else {},
        memory.problem if memory else None,
        memory.plan if memory else None,
        [(_plain(label), score) for rows in scores.rows.values() for label, score in rows],
        compared.layers,
        fused.lines(),
        [_without_folder(warning) for warning in log.warnings_seen()],
        network.data.steps,
        compared.stimuli,
        {one.layer: one for one in kernels or []},
        calibration.graph,
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
