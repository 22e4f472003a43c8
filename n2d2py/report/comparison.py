"""The comparison of float and integers, layer by layer and stimulus by stimulus, and what layers cost, as text, CSV and SVG."""

import math
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise

import numpy as np

from n2d2py.figures import Drawing, Svg, outline
from n2d2py.naming import shorten
from n2d2py.quant.observe.compare import LayerComparison, LevelCounts
from n2d2py.quant.observe.worst import StimulusComparison
from n2d2py.quant.search.sensitivity import LayerLoss
from n2d2py.report.text import Figures, column_csv, column_text, csv_text

WEAK_DB = 15.0
"""SQNR below which a layer is marked."""


def loss_shares(losses: Sequence[LayerLoss]) -> dict[str, float]:
    """Return the share of each layer in all squared errors at the outputs, in percent."""
    total = sum(loss.power for loss in losses) or 1.0
    return {loss.layer: 100 * loss.power / total for loss in losses}


def _columns(losses: Sequence[LayerLoss]) -> list[Figures[LayerLoss]]:
    shares = loss_shares(losses)
    return [
        Figures(lambda loss: loss.layer, "layer", "layer in integers, alone"),
        Figures(lambda loss: loss.operator, "operator", "operator"),
        Figures(lambda loss: shares[loss.layer], "share_percent", "share %", ".6g", ".1f"),
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
    """Return the same with full precision."""
    return column_csv(_columns(losses), losses)


def sensitivity_advice(losses: Sequence[LayerLoss], quality: str) -> str:
    """Return the suggestions for these layers: sections for the export parameters, and options for all."""
    shares = loss_shares(losses)
    lines = ["The layers that cost most, each in integers alone:"]
    for loss in losses:
        clipped = f", {100 * loss.saturated:.2f} % of it clipped" if loss.saturated > 1e-3 else ""
        lines.append(
            f"  {loss.layer} ({loss.operator}): error {loss.error:.4g}, {shares[loss.layer]:.0f} % of these "
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


_WORST_SHOWN = 5


def identical_word(comparison: LayerComparison) -> str:
    """State of the compiled export: "yes", "-" when it was not run, or where it first differs."""
    if comparison.identical is None:
        return "-"
    if comparison.identical or comparison.difference is None:
        return "yes" if comparison.identical else "no"
    d = comparison.difference
    return f"no: {d.place} {d.found:.9g} for {d.expected:.9g}"


_COLUMNS: tuple[Figures[LayerComparison], ...] = (
    Figures(lambda c: " + ".join((c.layer, *c.merged)), title="layer"),
    Figures(lambda c: c.layer, "layer"),
    Figures(lambda c: c.tensor, "tensor"),
    Figures(lambda c: c.sqnr_db, "sqnr_db", "SQNR dB", short=".2f"),
    Figures(lambda c: c.alone_db, "alone_sqnr_db", "alone", short=".2f"),
    Figures(lambda c: c.worst_db, "worst_sqnr_db", "worst", short=".2f"),
    Figures(lambda c: c.cosine, "cosine", "cosine", ".12g", ".6f"),
    Figures(lambda c: c.max_error, "max_error", "max error"),
    Figures(lambda c: c.alone_error, "alone_max_error"),
    Figures(lambda c: 100 * c.saturated, "saturated_percent", "clip %", short=".4f"),
    Figures(lambda c: 100 * c.unused, "unused_percent", "unused %", short=".1f"),
    Figures(lambda c: c.worst, "worst_stimulus"),
    Figures(lambda c: identical_word(c), title="identical"),
    Figures(lambda c: None if c.identical is None else int(c.identical), "identical"),
)


def comparison_text(comparisons: Sequence[LayerComparison], width: int | None = None) -> str:
    """One line per layer: SQNR in the network, alone and of the worst stimulus (dB), cosine, largest error, saturated
    values, unused part of the range, compiled equal to simulated; names are shortened to a `width`."""
    return column_text(_COLUMNS, comparisons, width=width)


def comparison_csv(comparisons: Sequence[LayerComparison]) -> str:
    """Return the CSV with full precision; `identical` is 1, 0 or empty, `worst_stimulus` a position, counted from 0."""
    order = "layer tensor sqnr_db cosine max_error saturated_percent identical alone_sqnr_db alone_max_error unused_percent "
    return column_csv(_COLUMNS, comparisons, order + "worst_stimulus worst_sqnr_db")


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


def _classes(stimulus: StimulusComparison) -> str:
    if stimulus.expected < 0:
        return "-"
    same = stimulus.expected == stimulus.found
    return str(stimulus.found) if same else f"{stimulus.expected} became {stimulus.found}"


_STIMULI: tuple[Figures[StimulusComparison], ...] = (
    Figures(lambda s: s.position, "position"),
    Figures(lambda s: shorten(s.name, 48), title="worst stimuli"),
    Figures(lambda s: s.name, "name"),
    Figures(lambda s: s.error, "mean_error", "error"),
    Figures(lambda s: s.sqnr_db, "sqnr_db", "SQNR dB", short=".2f"),
    Figures(_classes, title="top-1"),
    Figures(lambda s: s.expected, "float_top1"),
    Figures(lambda s: s.found, "integer_top1"),
    Figures(lambda s: s.label, "label"),
)


def worst_text(stimuli: Sequence[StimulusComparison]) -> str:
    """Return the stimuli whose outputs the integers hold worst; "" without any."""
    return column_text(_STIMULI, stimuli[:_WORST_SHOWN]) if stimuli else ""


def worst_csv(stimuli: Sequence[StimulusComparison]) -> str:
    """All that are kept, with full precision; top-1 of floating point and of integers, label -1 for none."""
    return column_csv(_STIMULI, stimuli)


_WIDTH, _HEIGHT = 1100.0, 190.0
_LEFT, _TOP, _BOTTOM = 38.0, 10.0, 14.0
_NAMES = 140.0
"""Room of the names of layers below."""


def draw_sqnr(comparisons: Sequence[LayerComparison], *, standalone: bool = False) -> Drawing:
    """Return the SVG text: bars are layers in the network, strokes layers alone. `standalone` includes colours and names."""
    known = [value for c in comparisons for value in (c.sqnr_db, c.alone_db) if value is not None and math.isfinite(value)]
    top = max(10.0, 10 * math.ceil(max(known, default=10.0) / 10))
    foot = _HEIGHT - _BOTTOM
    svg = Svg(_WIDTH, _HEIGHT + _NAMES * standalone, "sqnr", standalone=standalone)
    lines = int(top // 10)
    for k in range(0, lines + 1, max(1, lines // 6)):
        y = foot - 10 * k / top * (foot - _TOP)
        svg.line(_LEFT, y, _WIDTH, y, "grid")
        svg.text(_LEFT - 5, y + 3.5, f"{10 * k} dB", "tick", anchor="end")
    step = (_WIDTH - _LEFT) / max(len(comparisons), 1)
    for k, c in enumerate(comparisons):
        share = min(max(c.sqnr_db, 0.0) / top, 1.0)
        height = max(share * (foot - _TOP), 1.0)
        style = "bars weak" if c.sqnr_db < WEAK_DB else "bars"
        left, wide = _LEFT + k * step + 0.1 * step, min(0.8 * step, 40.0)
        title = f"{c.layer}: {c.sqnr_db:.2f} dB" + (f", alone {c.alone_db:.2f} dB" if c.alone_db is not None else "")
        svg.rect(left, foot - height, wide, height, style, title=title)
        if c.alone_db is not None:
            y = foot - max(min(max(c.alone_db, 0.0) / top, 1.0) * (foot - _TOP), 1.0)
            svg.line(left, y, left + wide, y, "alone")
        if standalone:
            svg.upright(left + wide / 2 + 3.5, foot + 6, shorten(c.layer, 24), "tick", anchor="end")
    svg.line(_LEFT, foot, _WIDTH, foot, "axis")
    return svg.finish()


_LEVELS = (250.0, 84.0)


def draw_levels(levels: LevelCounts) -> Drawing:
    """Return a figure of the counts of float values (filled) and of integers (line) over the same steps, logarithmic."""
    width, height = _LEVELS
    bottom, edges = height - 16, levels.edges
    span = float(edges[-1] - edges[0])
    peak = math.log10(1 + float(max(levels.real.max(), levels.stored.max(), 1)))
    svg = Svg(width, height, "levels", standalone=False)

    places = 3 + (edges - edges[0]) / span * (width - 6)
    for counts, close, style in ((levels.real, "Z", "bars"), (levels.stored, "", "integers")):
        heights = bottom - (bottom - 4) * np.log10(1 + counts.astype(float)) / peak
        svg.path(outline(places, heights, bottom) + close, style)
    svg.line(3, bottom, width - 3, bottom, "axis")
    svg.text(3, bottom + 11, f"{edges[0]:.3g}", "tick", anchor="start")
    svg.text(width - 3, bottom + 11, f"{edges[-1]:.3g}", "tick", anchor="end")
    return svg.finish()


def inline_picture(image: np.ndarray) -> str:
    """Return the bytes (H, W) or (H, W, 3) as the address of a PNG within the page."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(image).save(file, "PNG", optimize=False)
    return "data:image/png;base64," + b64encode(file.getvalue()).decode("ascii")
