"""SQNR along the network as SVG bars, so that a weak layer stands out."""
from __future__ import annotations

import math
from typing import Sequence

from n2d2py.quant.compare import LayerComparison
from n2d2py.report.svg import Svg

__all__ = ["draw_sqnr"]

_WIDTH, _HEIGHT = 1100.0, 190.0
_LEFT, _TOP, _BOTTOM = 38.0, 10.0, 14.0
_WEAK = 15.0
"""SQNR in dB below which a bar is marked."""


def draw_sqnr(comparisons: Sequence[LayerComparison]) -> str:
    """The SVG text, without colours of its own; a layer without any error reaches the top."""
    known = [c.sqnr_db for c in comparisons if math.isfinite(c.sqnr_db)]
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
        svg.rect(_LEFT + k * step + 0.1 * step, foot - height, min(0.8 * step, 40.0), height, style,
                 title=f"{c.layer}: {c.sqnr_db:.2f} dB")
    svg.line(_LEFT, foot, _WIDTH, foot, "axis")
    return svg.finish()
