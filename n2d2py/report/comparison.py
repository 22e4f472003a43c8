"""The comparison of float and integers, layer by layer, as text and CSV."""
from __future__ import annotations

import csv
import io
from typing import Sequence

from n2d2py.quant.compare import LayerComparison
from n2d2py.targets import text_table

__all__ = ["comparison_text", "comparison_csv", "identical_word"]


def identical_word(comparison: LayerComparison) -> str:
    """What is known of the compiled export: "yes", "-" when it was not run, or where it first differs."""
    if comparison.identical is None:
        return "-"
    if comparison.identical or comparison.difference is None:
        return "yes" if comparison.identical else "no"
    d = comparison.difference
    return f"no: [{', '.join(map(str, d.index))}] {d.found:.9g} for {d.expected:.9g}"


def comparison_text(comparisons: Sequence[LayerComparison]) -> str:
    """One line per layer: SQNR in dB, cosine, largest error, saturated values, compiled equal to simulated."""
    rows = [[c.layer, f"{c.sqnr_db:.2f}", f"{c.cosine:.6f}", f"{c.max_error:.6g}", f"{100 * c.saturated:.4f}",
             identical_word(c)] for c in comparisons]
    return text_table(["layer", "SQNR dB", "cosine", "max error", "saturated %", "identical"], rows)


def comparison_csv(comparisons: Sequence[LayerComparison]) -> str:
    """The same with full precision; `identical` is 1, 0 or empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["layer", "tensor", "sqnr_db", "cosine", "max_error", "saturated_percent", "identical"])
    for c in comparisons:
        writer.writerow([c.layer, c.tensor, f"{c.sqnr_db:.9g}", f"{c.cosine:.12g}", f"{c.max_error:.9g}",
                         f"{100 * c.saturated:.9g}", "" if c.identical is None else int(c.identical)])
    return text.getvalue()
