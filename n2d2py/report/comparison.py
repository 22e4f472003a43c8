"""The comparison of float and integers, layer by layer and stimulus by stimulus, as text and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from n2d2py.quant.compare import LayerComparison
from n2d2py.quant.worst import StimulusComparison
from n2d2py.report.text import csv_text, decimal, shorten
from n2d2py.targets import text_table

_WORST_SHOWN = 5


def identical_word(comparison: LayerComparison) -> str:
    """State of the compiled export: "yes", "-" when it was not run, or where it first differs."""
    if comparison.identical is None:
        return "-"
    if comparison.identical or comparison.difference is None:
        return "yes" if comparison.identical else "no"
    d = comparison.difference
    return f"no: {d.place} {d.found:.9g} for {d.expected:.9g}"


def _two_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def comparison_text(comparisons: Sequence[LayerComparison], width: int | None = None) -> str:
    """One line per layer: SQNR in the network, alone and of the worst stimulus (dB), cosine, largest error, saturated
    values, unused part of the range, compiled equal to simulated; names are shortened to a `width`."""
    rows = [
        [
            " + ".join((c.layer, *c.merged)),
            f"{c.sqnr_db:.2f}",
            _two_digits(c.alone_db),
            _two_digits(c.worst_db),
            f"{c.cosine:.6f}",
            f"{c.max_error:.4g}",
            f"{100 * c.saturated:.4f}",
            f"{100 * c.unused:.1f}",
            identical_word(c),
        ]
        for c in comparisons
    ]
    return text_table(
        ["layer", "SQNR dB", "alone", "worst", "cosine", "max error", "clip %", "unused %", "identical"], rows, width=width
    )


def comparison_csv(comparisons: Sequence[LayerComparison]) -> str:
    """The same with full precision; `identical` is 1, 0 or empty, `worst_stimulus` the position of a compared
    stimulus, counted from 0."""
    header = """
        layer tensor sqnr_db cosine max_error saturated_percent identical alone_sqnr_db alone_max_error unused_percent
        worst_stimulus worst_sqnr_db
        """.split()
    return csv_text(
        header,
        (
            (
                c.layer,
                c.tensor,
                f"{c.sqnr_db:.9g}",
                f"{c.cosine:.12g}",
                f"{c.max_error:.9g}",
                f"{100 * c.saturated:.9g}",
                "" if c.identical is None else int(c.identical),
                decimal(c.alone_db, 9),
                decimal(c.alone_error, 9),
                f"{100 * c.unused:.9g}",
                "" if c.worst is None else c.worst,
                decimal(c.worst_db, 9),
            )
            for c in comparisons
        ),
    )


def levels_csv(comparisons: Sequence[LayerComparison]) -> str:
    """Float and stored values of every integer layer over the same steps: the ends of each bin, and both counts."""
    return csv_text(
        ["layer", "from", "to", "float_count", "integer_count"],
        (
            (c.layer, f"{low:.9g}", f"{high:.9g}", int(real), int(stored))
            for c in comparisons
            if c.levels is not None
            for (low, high), real, stored in zip(pairwise(c.levels.edges), c.levels.real, c.levels.stored, strict=True)
            if real or stored
        ),
    )


def worst_text(stimuli: Sequence[StimulusComparison]) -> str:
    """The stimuli whose outputs the integers hold worst; "" without any."""
    if not stimuli:
        return ""
    rows = [[shorten(s.name, 48), f"{s.error:.4g}", f"{s.sqnr_db:.2f}", _classes(s)] for s in stimuli[:_WORST_SHOWN]]
    return text_table(["worst stimuli", "error", "SQNR dB", "top-1"], rows)


def _classes(stimulus: StimulusComparison) -> str:
    if stimulus.expected < 0:
        return "-"
    same = stimulus.expected == stimulus.found
    return str(stimulus.found) if same else f"{stimulus.expected} became {stimulus.found}"


def worst_csv(stimuli: Sequence[StimulusComparison]) -> str:
    """All that are kept, with full precision; top-1 of floating point and of integers, label -1 for none."""
    return csv_text(
        ["position", "name", "mean_error", "sqnr_db", "float_top1", "integer_top1", "label"],
        ((s.position, s.name, f"{s.error:.9g}", f"{s.sqnr_db:.9g}", s.expected, s.found, s.label) for s in stimuli),
    )
