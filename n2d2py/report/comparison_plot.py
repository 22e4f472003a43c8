"""SQNR along the network as SVG bars, so that a weak layer stands out; float values and integers of one layer."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO

import numpy as np

from n2d2py.quant.compare import LayerComparison
from n2d2py.quant.level_counts import LevelCounts
from n2d2py.report.svg import Svg, number

_WIDTH, _HEIGHT = 1100.0, 190.0
_LEFT, _TOP, _BOTTOM = 38.0, 10.0, 14.0
_WEAK = 15.0
"""SQNR in dB below which a bar is marked."""


def draw_sqnr(comparisons: Sequence[LayerComparison]) -> str:
    """The SVG text, without its own colours; a layer without any error reaches the top.

    Bars are layers in the network; a stroke above one is the layer alone.
    """
    known = [value for c in comparisons for value in (c.sqnr_db, c.alone_db) if value is not None and math.isfinite(value)]
    top = max(10.0, 10 * math.ceil(max(known, default=10.0) / 10))
    foot = _HEIGHT - _BOTTOM
    svg = Svg(_WIDTH, _HEIGHT, "sqnr", standalone=False)
    lines = int(top // 10)
    for k in range(0, lines + 1, max(1, lines // 6)):
        y = foot - 10 * k / top * (foot - _TOP)
        svg.line(_LEFT, y, _WIDTH, y, "grid")
        svg.text(_LEFT - 5, y + 3.5, f"{10 * k} dB", "tick", anchor="end")
    step = (_WIDTH - _LEFT) / max(len(comparisons), 1)
    for k, c in enumerate(comparisons):
        share = min(max(c.sqnr_db, 0.0) / top, 1.0)
        height = max(share * (foot - _TOP), 1.0)
        style = "bars weak" if c.sqnr_db < _WEAK else "bars"
        svg.rect(
            _LEFT + k * step + 0.1 * step,
            foot - height,
            min(0.8 * step, 40.0),
            height,
            style,
            title=f"{c.layer}: {c.sqnr_db:.2f} dB" + (f", alone {c.alone_db:.2f} dB" if c.alone_db is not None else ""),
        )
        if c.alone_db is not None:
            y = foot - max(min(max(c.alone_db, 0.0) / top, 1.0) * (foot - _TOP), 1.0)
            svg.line(_LEFT + k * step + 0.1 * step, y, _LEFT + k * step + 0.1 * step + min(0.8 * step, 40.0), y, "alone")
    svg.line(_LEFT, foot, _WIDTH, foot, "axis")
    return svg.finish()


_LEVELS = (250.0, 84.0)


def draw_levels(levels: LevelCounts) -> str:
    """Counts of float values (filled) and of integers (line) over the same steps, logarithmic, without its own colours."""
    width, height = _LEVELS
    bottom, edges = height - 16, levels.edges
    span = float(edges[-1] - edges[0])
    peak = math.log10(1 + float(max(levels.real.max(), levels.stored.max(), 1)))
    svg = Svg(width, height, "levels", standalone=False)

    def outline(counts: np.ndarray) -> str:
        parts = [f"M3 {number(bottom)}"]
        for high, count in zip(edges[1:], counts, strict=True):
            level = bottom - (bottom - 4) * math.log10(1 + float(count)) / peak
            parts.append(f"V{number(level)}H{number(3 + float(high - edges[0]) / span * (width - 6))}")
        return "".join(parts) + f"V{number(bottom)}"

    svg.path(outline(levels.real) + "Z", "bars")
    svg.path(outline(levels.stored), "integers")
    svg.line(3, bottom, width - 3, bottom, "axis")
    svg.text(3, bottom + 11, f"{edges[0]:.3g}", "tick", anchor="start")
    svg.text(width - 3, bottom + 11, f"{edges[-1]:.3g}", "tick", anchor="end")
    return svg.finish()


def inline_picture(image: np.ndarray) -> str:
    """Bytes (H, W) or (H, W, 3) as the address of a PNG within the page."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(image).save(file, "PNG", optimize=False)
    return "data:image/png;base64," + b64encode(file.getvalue()).decode("ascii")
