"""Scoring of network outputs against labels, and the files and tables that show the scores."""

from n2d2py.targets.files import target_folder_name, write_target_files
from n2d2py.targets.metrics import Metrics, class_metrics
from n2d2py.targets.score import Miss, Score, agreement, common
from n2d2py.targets.scorer import Scorer
from n2d2py.targets.table import ScoreRow, score_columns, score_lines, score_table, text_table

__all__ = [
    "Metrics",
    "Miss",
    "Score",
    "ScoreRow",
    "Scorer",
    "agreement",
    "class_metrics",
    "common",
    "score_columns",
    "score_lines",
    "score_table",
    "target_folder_name",
    "text_table",
    "write_target_files",
]
