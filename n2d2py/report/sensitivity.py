"""The layers ranked by what they cost, as text and CSV, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from n2d2py.quant.search.sensitivity import LayerLoss
from n2d2py.report.text import Figures, column_csv, column_text


def _share(losses: Sequence[LayerLoss]) -> float:
    return sum(loss.power for loss in losses) or 1.0


def _columns(losses: Sequence[LayerLoss]) -> list[Figures[LayerLoss]]:
    total = _share(losses)
    return [
        Figures(lambda loss: loss.layer, "layer", "layer in integers, alone"),
        Figures(lambda loss: loss.operator, "operator", "operator"),
        Figures(lambda loss: 100 * loss.power / total, "share_percent", "share %", ".6g", ".1f"),
        Figures(lambda loss: loss.error, "mean_error", "error"),
        Figures(lambda loss: loss.power, "mean_square_error"),
        Figures(lambda loss: 100 * loss.agreement, "agreement_percent", "agreement %", ".6g", ".1f"),
        Figures(lambda loss: loss.cause, "cause", "mostly its"),
        Figures(lambda loss: 100 * loss.saturated, "clipped_percent", "clipped %", ".6g", ".3f"),
        Figures(lambda loss: loss.bits, "bits"),
        Figures(lambda loss: loss.weight_bits, "weight_bits"),
    ]


def sensitivity_text(losses: Sequence[LayerLoss]) -> str:
    """One line per layer, worst first: its share of all squared errors at the outputs, error, agreement, cause."""
    return column_text(_columns(losses), losses)


def sensitivity_csv(losses: Sequence[LayerLoss]) -> str:
    """The same with full precision."""
    return column_csv(_columns(losses), losses)


def sensitivity_advice(losses: Sequence[LayerLoss], quality: str) -> str:
    """Suggestions for these layers: sections for the export parameters, and options for all."""
    total = _share(losses)
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
