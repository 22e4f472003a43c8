"""A histogram with its thresholds as SVG: logarithmic counts, the chosen threshold, the candidates."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from n2d2py.report.svg import Svg, number
from n2d2py.report.text import shorten

CANDIDATE_CLASSES = {"None": "c0", "MSE": "c1", "KL-Divergence": "c2", "Quantile": "c3"}
"""Style class of each clipping mode, for images and legends."""


@dataclass(frozen=True)
class HistogramPlot:
    """edges (K + 1) ascending, counts (K); `threshold` is a magnitude, drawn on both sides where values are."""

    edges: np.ndarray
    counts: np.ndarray
    threshold: float | None = None
    candidates: dict[str, float] = field(default_factory=dict)


def _steps(plot: HistogramPlot, x, y, bottom: float) -> str:
    """The outline of the bars; runs of equal height are one segment."""
    parts = [f"M{number(x(plot.edges[0]))} {number(bottom)}"]
    last = None
    for high, count in zip(plot.edges[1:], plot.counts, strict=True):
        level = number(y(int(count)))
        if level != last:
            parts.append(f"V{level}")
            last = level
        end = f"H{number(x(high))}"
        if parts[-1].startswith("H"):
            parts[-1] = end
        else:
            parts.append(end)
    return "".join(parts) + f"V{number(bottom)}Z"


def draw_histogram(plot: HistogramPlot, *, width: int, height: int, title: str = "", standalone: bool = True) -> str:
    """The SVG text; `standalone` brings its own colours, else the page's style sheet gives them."""
    top, side = (30 if title else 4), (14 if title else 3)
    legend = 22 if title and plot.candidates else 0
    bottom = height - 16 - legend
    low, high = float(plot.edges[0]), float(plot.edges[-1])
    reach = high if plot.threshold is None else max(high, plot.threshold)
    low = min(low, -reach) if low < 0 else low
    span = (reach - low) or 1.0
    peak = np.log10(1 + float(plot.counts.max(initial=1)))

    def x(value: float) -> float:
        return side + (value - low) / span * (width - 2 * side)

    def y(count: int) -> float:
        return bottom - (bottom - top) * np.log10(1 + count) / peak

    svg = Svg(width, height, "histogram", standalone=standalone)
    if plot.threshold is not None:
        left = x(max(-plot.threshold, low)) if low < 0 else x(0.0)
        svg.rect(left, top, x(min(plot.threshold, reach)) - left, bottom - top, "kept")
    svg.path(_steps(plot, x, y, bottom), "bars")
    svg.line(side, bottom, width - side, bottom, "axis")
    for mode, value in plot.candidates.items():
        for at in (value, -value) if low < 0 else (value,):
            if low <= at <= reach:
                svg.line(
                    x(at),
                    top,
                    x(at),
                    top + 0.3 * (bottom - top),
                    f"candidate {CANDIDATE_CLASSES[mode]}",
                    title=f"{mode} {value:.4g}",
                )
    if plot.threshold is not None:
        for at in (plot.threshold, -plot.threshold) if low < 0 else (plot.threshold,):
            svg.line(x(at), top, x(at), bottom, "threshold", title=f"threshold {plot.threshold:.6g}")
    ticks = [(low, "start"), (reach, "end")] + ([(0.0, "middle")] if low < 0 else [])
    for value, anchor in ticks:
        svg.text(x(value), bottom + 11, f"{value:.3g}", "tick", anchor=anchor)
    if title:
        svg.text(side, 19, shorten(title, 60), "title", anchor="start")
        if plot.threshold is not None:
            svg.text(width - side, 19, f"threshold {plot.threshold:.6g}", "note", anchor="end")
        at = float(side)
        for mode, value in plot.candidates.items():
            svg.line(at, height - 9, at + 14, height - 9, f"candidate {CANDIDATE_CLASSES[mode]}")
            text = f"{mode} {value:.4g}"
            svg.text(at + 19, height - 5, text, "tick", anchor="start")
            at += 36 + 6.0 * len(text)
    return svg.finish()
