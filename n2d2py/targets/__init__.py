"""Scoring of network outputs against labels, and the files and tables of the scores."""

from n2d2py.targets.files import target_folder_name, write_target_files
from n2d2py.targets.score import Metrics, Miss, Score, agreement, class_metrics, common_positions
from n2d2py.targets.scorer import Scorer
from n2d2py.targets.table import ScoreRow, score_columns, score_lines, score_table, text_table
