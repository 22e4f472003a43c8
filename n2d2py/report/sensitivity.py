"""The layers ranked by what they cost, as text and CSV, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.quant.search.sensitivity import LayerLoss
from n2d2py.report.text import csv_text
from n2d2py.targets import text_table


def _share(losses: Sequence[LayerLoss]) -> float:
    return sum(loss.power for loss in losses) or 1.0


def sensitivity_text(losses: Sequence[LayerLoss]) -> str:
    """One line per layer, worst first: its share of all squared errors at the outputs, error, agreement, cause."""
    total = _share(losses)
    rows = [
        [
            loss.layer,
            loss.operator,
            f"{100 * loss.power / total:.1f}",
            f"{loss.error:.4g}",
            f"{100 * loss.agreement:.1f}",
            loss.cause,
            f"{100 * loss.saturated:.3f}",
        ]
        for loss in losses
    ]
    return text_table(
        ["layer in integers, alone", "operator", "share %", "error", "agreement %", "mostly its", "clipped %"], rows
    )


def sensitivity_csv(losses: Sequence[LayerLoss]) -> str:
    """The same with full precision."""
    header = """
        layer operator share_percent mean_error mean_square_error agreement_percent cause clipped_percent bits weight_bits
        """.split()
    total = _share(losses)
    return csv_text(
        header,
        (
            (
                loss.layer,
                loss.operator,
                f"{100 * loss.power / total:.6g}",
                f"{loss.error:.9g}",
                f"{loss.power:.9g}",
                f"{100 * loss.agreement:.6g}",
                loss.cause,
                f"{100 * loss.saturated:.6g}",
                loss.bits,
                loss.weight_bits,
            )
            for loss in losses
        ),
    )


def sensitivity_advice(losses: Sequence[LayerLoss], quality: str) -> str:
    """Suggestions for these layers: sections for the export parameters, and options for all."""
    total = sum(loss.power for loss in losses) or 1.0
    lines = ["The layers that cost most, each in integers alone:"]
    for loss in losses:
        clipped = f", {100 * loss.saturated:.2f} % of it clipped" if loss.saturated > 1e-3 else ""
        lines.append(
            f"  {loss.layer} ({loss.operator}): error {loss.error:.4g}, {100 * loss.power / total:.0f} % of these "
            f"{len(losses)}, mostly its {loss.cause}{clipped}"
        )
    remedies = [line for loss in losses if loss.remedy for line in (f"  [{loss.layer}]", f"  {loss.remedy}")]
    if remedies:
        lines += ["To try, in the file of -export-parameters:", *remedies]
    options = [] if quality == "best" else ["-quality best"]
    if any(loss.saturated > 1e-3 for loss in losses):
        options.append("-act-clipping-mode None")
    if any(loss.cause == "bias correction" for loss in losses):
        options.append("-no-bias-correction")
    lines.append(
        f"{'or' if remedies else 'To try,'} for all layers: " + ", ".join([*options, "more stimuli with -calib", "-nbbits 16"])
    )
    return "\n".join(lines) + "\n"
