"""The record of a calibration: ranges, histograms, the thresholds chosen and those of the other modes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from n2d2py.arithmetic.histogram import BINS, CLIPPING_MODES, Histogram, activation_threshold
from n2d2py.concurrency import ordered_map
from n2d2py.figures import Drawing, Svg, outline
from n2d2py.files import write_text
from n2d2py.naming import shorten
from n2d2py.quant.types.choose import CALIBRATED
from n2d2py.report.data import ReportData
from n2d2py.report.text import file_stems

CANDIDATE_CLASSES = {"None": "c0", "MSE": "c1", "KL-Divergence": "c2", "Quantile": "c3"}
"""Style class of each clipping mode, for images and legends."""


@dataclass(frozen=True)
class TensorRange:
    """Observed range of one tensor and the type chosen from it.

    Attributes:
        layer: name to show; stem: file name without extension.
        edges, counts: folded histogram, ascending, K + 1 and K.
        threshold: largest magnitude that the exported type holds, None for float types.
        candidates: threshold of each clipping mode.
        clipped: share of the values beyond the threshold, 0..1.
        mode: the clipping mode that gave the threshold; "shared" where the type is another tensor's
            (concatenations), else the rule that decided (`n2d2py/quant/types/choose.py`).
    """

    layer: str
    tensor: str
    stem: str
    histogram: Histogram
    edges: np.ndarray
    counts: np.ndarray
    threshold: float | None
    candidates: dict[str, float]
    clipped: float
    mode: str


def draw_histogram(plot: TensorRange, *, width: int, height: int, title: str = "", standalone: bool = True) -> Drawing:
    """Return the SVG text, with the threshold on both sides where values are; `standalone` includes the colours."""
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
    svg.path(outline(map(x, plot.edges), (y(int(count)) for count in plot.counts), bottom) + "Z", "bars")
    svg.line(side, bottom, width - side, bottom, "axis")
    signs = (1, -1) if low < 0 else (1,)
    for mode, value in plot.candidates.items():
        for at in (sign * value for sign in signs if low <= sign * value <= reach):
            style = f"candidate {CANDIDATE_CLASSES[mode]}"
            svg.line(x(at), top, x(at), top + 0.3 * (bottom - top), style, title=f"{mode} {value:.4g}")
    for at in () if plot.threshold is None else (sign * plot.threshold for sign in signs):
        svg.line(x(at), top, x(at), bottom, "threshold", title=f"threshold {plot.threshold:.6g}")
    ticks = [(low, "start"), (reach, "end")] + ([(0.0, "middle")] if low < 0 else [])
    for value, anchor in ticks:
        svg.text(x(value), bottom + 11, f"{value:.3g}", "tick", anchor=anchor)
    if title:
        svg.text(side, 19, shorten(title, 60), "title", anchor="start")
        if plot.threshold is not None:
            svg.text(width - side, 19, f"threshold {plot.threshold:.6g}", "note", anchor="end")
        _draw_legend(svg, plot.candidates, float(side), height)
    return svg.finish()


def draw_histograms(ranges: Sequence[TensorRange], columns: int) -> Drawing:
    """Return the histograms, `columns` side by side."""
    width, height = 470, 230
    columns = max(1, min(columns, len(ranges)))
    svg = Svg(columns * width, -(-len(ranges) // columns) * height, "histogram", standalone=True)
    for place, one in enumerate(ranges):
        row, column = divmod(place, columns)
        drawing = draw_histogram(one, width=width, height=height, title=one.layer, standalone=False)
        svg.inset(column * width, row * height, drawing)
    return svg.finish()


def _draw_legend(svg: Svg, candidates: Mapping[str, float], x: float, height: int) -> None:
    for mode, value in candidates.items():
        svg.line(x, height - 9, x + 14, height - 9, f"candidate {CANDIDATE_CLASSES[mode]}")
        text = f"{mode} {value:.4g}"
        svg.text(x + 19, height - 5, text, "tick", anchor="start")
        x += 36 + 6.0 * len(text)


_SHOWN_BINS = 128
"""Largest number of bins shown on each side of zero."""


def folded(histogram: Histogram) -> tuple[np.ndarray, np.ndarray]:
    """(edges, counts) of at most 2 x 128 bins over the occupied range; exact zeros count as positive."""
    if histogram.largest == 0.0:
        return np.array([0.0, 1.0]), np.array([histogram.count], np.int64)
    positive = histogram.positive.copy()
    positive[0] += histogram.zeros
    used = [int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0 for counts in (positive, histogram.negative)]
    group = 1
    while -(-max(used) // group) > _SHOWN_BINS:
        group *= 2
    up, down = (
        counts.reshape(-1, group).sum(axis=1)[: -(-last // group)]
        for counts, last in ((positive, used[0]), (histogram.negative, used[1]))
    )
    step = histogram.limit / BINS * group
    return np.arange(-len(down), len(up) + 1) * step, np.concatenate([down[::-1], up])


def _beyond(histogram: Histogram, threshold: float) -> float:
    if histogram.largest <= threshold or not histogram.count:
        return 0.0
    first = int(np.ceil(threshold / histogram.limit * BINS))
    return float((histogram.positive[first:].sum() + histogram.negative[first:].sum()) / histogram.count)


def _threshold(data: ReportData, name: str, candidates: dict[str, float]) -> tuple[float | None, str]:
    """(threshold, mode) of a tensor; see `TensorRange`."""
    kind, chosen = data.typed.type(name), data.thresholds.get(name)
    if kind.is_float:
        return None, ""
    reach = kind.max_abs
    if chosen is None or not np.isclose(chosen, reach, rtol=1e-6, atol=0.0):
        return reach, "shared"
    rule, modes = data.rules.get(name, CALIBRATED), [data.quant.act_clipping] if data.quant is not None else []
    clipped = next((mode for mode in (*modes, "None") if candidates.get(mode) == chosen), CALIBRATED)
    return chosen, clipped if rule == CALIBRATED else rule


def tensor_ranges(data: ReportData) -> list[TensorRange]:
    """One entry per calibrated tensor of the typed network, in the order of the histograms."""
    names = [name for name in data.histograms if name in data.typed.tensors and data.histograms[name].count]
    layers = {name: data.layer_of(name) for name in names}
    stems = file_stems(layers.values())
    quantile = data.quant.quantile if data.quant is not None else 0.9999

    def one(name: str) -> TensorRange:
        histogram = data.histograms[name]
        kind = data.typed.type(name)
        modes = () if kind.is_float else CLIPPING_MODES
        by_mode = {mode: histogram.expected() if mode == "MSE" else histogram for mode in modes}
        candidates = {mode: activation_threshold(given, mode, kind.qmax, quantile) for mode, given in by_mode.items()}
        threshold, mode = _threshold(data, name, candidates)
        clipped, layer = _beyond(histogram, threshold) if threshold is not None else 0.0, layers[name]
        return TensorRange(layer, name, stems[layer], histogram, *folded(histogram), threshold, candidates, clipped, mode)

    return list(ordered_map(one, names))


def _histogram_lines(r: TensorRange) -> list[str]:
    chosen = "none" if r.threshold is None else f"{r.threshold:.9g} ({r.mode}), {100 * r.clipped:.6g}% beyond"
    lines = [f"# {r.layer}: {r.histogram.count} values, {r.histogram.zeros} exact zeros", f"# threshold {chosen}"]
    lines += [f"# candidate {mode} {value:.9g}" for mode, value in r.candidates.items()]
    lines.append("# from to count")
    return lines + [f"{low:.9g} {high:.9g} {count}" for (low, high), count in zip(pairwise(r.edges), r.counts, strict=True)]


def write_calibration(folder: Path, ranges: list[TensorRange]) -> None:
    """Write outputs_range.dat and outputs_histogram/<layer>.dat, .svg."""
    lines, home = ["# name min max mean std"], folder / "outputs_histogram"
    for r in ranges:
        h = r.histogram
        lines.append(f"{r.layer} {h.minimum:.9g} {h.maximum:.9g} {h.mean:.9g} {h.deviation:.9g}")
        write_text(home / f"{r.stem}.dat", "\n".join(_histogram_lines(r)) + "\n")
        draw_histogram(r, width=640, height=300, title=r.layer).save(home / f"{r.stem}.svg")
    write_text(folder / "outputs_range.dat", "\n".join(lines) + "\n")
