"""Scores as text: the lines of one score, and a table that compares several."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from n2d2py.naming import shorten
from n2d2py.targets.score import Score, agreement, common_positions


@dataclass(frozen=True)
class ScoreRow:
    """A row of the table: a score and its name, for example "float", "simulated int8" or "compiled"."""

    label: str
    score: Score


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: int | Collection[int] = 1, width: int | None = None
) -> str:
    """Return aligned columns, separated by two blanks; the first `left` columns, or these, are left-aligned, the others right-aligned.

    With a `width`, the first column is shortened to fit, to at least 12 letters.
    """
    if width is not None:
        others = sum(2 + max(len(row[k]) for row in (header, *rows)) for k in range(1, len(header)))
        room = max(width - others, 12)
        rows = [[shorten(row[0], room), *row[1:]] for row in rows]
    widths = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    lines = []
    for row in (header, ["-" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if k in (range(left) if isinstance(left, int) else left) else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}%"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def score_lines(score: Score) -> list[str]:
    """Return the final lines of a test, in the words of N2D2.

    The means leave out the accuracy of one class against the others, which is near 100 % for many classes in any network. The
    recognition rate is the accuracy.
    """
    if score.errors is not None:
        lines = ["Mean squared error: " + ("-" if score.mse is None else f"{score.mse:.6g}")]
        return lines + ([f"Area under the ROC: {score.auc:.4f}"] if score.auc is not None else [])
    if score.detections is not None:
        details = ", ".join(f"{name}: {text}" for name, text in score.detections.details.items())
        return [f"{score.detections.metric}: {_percent(score.percent)}    ({details})"]
    m = score.metrics
    if score.top1 is None or m is None:
        return [f"No labels: {score.stimuli} stimuli run, none scored"]
    lines = [f"Final recognition rate: {score.top1:.2f}%    (error rate: {100 - score.top1:.2f}%)"]
    if score.topn is not None:
        lines.append(f"Top-{score.top_n} recognition rate: {score.topn:.2f}%    (error rate: {100 - score.topn:.2f}%)")
    names = ("Sensitivity", "Specificity", "Precision", "F1-score", "Informedness", "IU")
    shares = (m.sensitivity, m.specificity, m.precision, m.f1, m.informedness, m.iu)
    texts = [f"{name}: {_percent(None if np.isnan(one) else 100 * one)}" for name, one in zip(names, shares, strict=True)]
    lines.append("    each class against the others, mean: " + " / ".join(texts))
    if score.margins is not None:
        f1 = _percent(score.f1 and 100 * score.f1)
        lines.append(f"    {score.classes[1]}: area under the ROC: {_share(score.auc)} / F1-score: {f1}")
    return lines


def _difference(base: Score, other: Score) -> str:
    """Return the difference of `other` to `base` on common samples: points of top-1, or relative MSE for auto-encoders."""
    left, right = common_positions(base, other)
    if base.errors is not None and other.errors is not None:
        before = float(base.errors[left].mean()) if left.size else 0.0
        return f"{100 * (float(other.errors[right].mean()) / before - 1):+.2f}%" if before > 0 else "-"
    if base.detections is None and base.pixels is None:
        counted = (base.ranks[left] >= 0) & (other.ranks[right] >= 0)
        left, right = left[counted], right[counted]
    before, after = _rate(base, left), _rate(other, right)
    return "-" if before is None or after is None else f"{after - before:+.2f}"


def _rate(score: Score, where: np.ndarray) -> float | None:
    """Return the main metric over the samples at these positions, in percent."""
    if score.detections is not None:
        return score.detections.of(where).percent
    if score.pixels is not None:
        return 100 * float(score.pixels.hits[where].sum() / max(score.pixels.counted[where].sum(), 1))
    return 100 * float(np.mean(score.ranks[where] == 0)) if len(where) else None


def score_columns(rows: Sequence[ScoreRow]) -> tuple[list[str], list[list[str]], str]:
    """Return (header, cells of each row, note or "") of the table of scores; see `score_table`."""
    first, base = rows[0], rows[0].score
    note = "" if base.errors is not None else _shared_note(rows)

    def difference(row: ScoreRow) -> str:
        return "" if row is first else _difference(base, row.score)

    columns: dict[str, Callable[[ScoreRow], str]]
    if base.errors is not None:
        columns = {
            "stimuli": lambda row: str(row.score.stimuli),
            "MSE": lambda row: "-" if row.score.mse is None else f"{row.score.mse:.6g}",
            "AUC": lambda row: _share(row.score.auc),
            "MSE difference": difference,
        }
    elif base.detections is not None:
        columns = {
            "stimuli": lambda row: str(row.score.stimuli),
            base.detections.metric: lambda row: _percent(row.score.percent),
        }
        columns |= {name: partial(_detail, name) for name in base.detections.details} | {"points": difference}
    else:
        columns = {
            "stimuli": lambda row: str(row.score.count or row.score.stimuli),
            "top-1" if base.pixels is None else "pixels": lambda row: _percent(row.score.top1),
        }
        if base.top_n > 1 and base.pixels is None:
            columns[f"top-{base.top_n}"] = lambda row: _percent(row.score.topn)
        columns[f"agrees with {first.label}"] = lambda row: "" if row is first else _percent(agreement(base, row.score))
        columns["points"] = difference
        if base.margins is not None:
            columns |= {"AUC": lambda row: _share(row.score.auc), "F1": lambda row: _share(row.score.f1)}
    cells = [[row.label, *(text(row) for text in columns.values())] for row in rows]
    return ["", *columns], cells, note


def _detail(name: str, row: ScoreRow) -> str:
    return row.score.detections.details[name] if row.score.detections is not None else "-"


def _shared_note(rows: Sequence[ScoreRow]) -> str:
    partial = [row.label for row in rows[1:] if row.score.stimuli != rows[0].score.stimuli]
    return f"agreement and points of {', '.join(partial)}: on the stimuli shared with {rows[0].label}" if partial else ""


def score_table(rows: Sequence[ScoreRow]) -> str:
    """Return the table that `-test` prints: scores of one target, with the first row as reference.

    Agreement is the share of samples whose best output equals that of the reference. Agreement and difference are computed over
    common samples, which makes rows over different samples comparable.
    """
    if not rows:
        return ""
    header, body, note = score_columns(rows)
    return text_table(header, body) + (note + "\n" if note else "")
