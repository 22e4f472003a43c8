"""Plots of a score: confusion matrix, metrics by class, running rate, segmented images."""

from colorsys import hsv_to_rgb
from pathlib import Path

import numpy as np

from n2d2py.figures import Drawing, Svg
from n2d2py.naming import shorten
from n2d2py.targets.pixels import Pixels
from n2d2py.targets.score import Score, class_metrics

DRAWN_CLASSES = 200
"""Plots by class are drawn of so many at most."""
_NUMBERED = 20
_NAMED = 60
_NO_LABEL = (0, 0, 0)
_LEFT, _TOP, _FOOT, _WIDTH = 40.0, 12.0, 220.0, 560.0
"""Edges of a curve, in pixels."""
_POINTS = 500
"""Those of a curve, at most."""


def draw_confusion(score: Score, *, standalone: bool = True) -> Drawing:
    """Return the confusion matrix; cells above 0 only, right ones and wrong ones in two hues. `standalone` brings its own
    colours and what is counted, else the page has them.
    """
    confusion, classes = score.confusion, score.classes
    size = len(confusion)
    cell = float(np.clip(620 / size, 3.0, 34.0))
    named = size <= _NAMED
    names = [shorten(name, 16) for name in classes]
    room = 10.0 + (6.0 * max(map(len, names)) if named else 4.0)
    side = size * cell
    svg = Svg(room + side + 6, room + side + 6 + 16 * standalone, "confusion", standalone=standalone)
    svg.rect(room, room, side, side, "frame")
    totals = np.maximum(confusion.sum(axis=1), 1)
    for label, estimated in np.argwhere(confusion):
        count = int(confusion[label, estimated])
        step = int(np.ceil(5 * count / totals[label]))
        style = f"{'hit' if label == estimated else 'miss'} s{step}"
        x, y = room + estimated * cell, room + label * cell
        svg.rect(x, y, cell, cell, style, title=f"{classes[label]} taken for {classes[estimated]}: {count}")
        if size <= _NUMBERED:
            svg.text(x + cell / 2, y + cell / 2 + 4, str(count), f"count on{step}")
    if named:
        for k, name in enumerate(names):
            at = room + (k + 0.5) * cell
            svg.text(room - 5, at + 3.5, name, "tick", anchor="end")
            svg.upright(at + 3.5, room - 5, name, "tick")
    if standalone:
        text = f"{score.correct} of {int(confusion.sum())} right: {score.top1:.2f}%; rows: label, columns: estimated"
        svg.text(room + side, room + side + 16, text, "info", anchor="end")
    return svg.finish()


def draw_class_scores(score: Score) -> Drawing:
    """Return the sensitivity, precision and IU of each class as bars."""
    left, width, row = 120.0, 300.0, 22.0
    foot = 24 + row * len(score.classes)
    svg = Svg(left + width + 20, foot + 20, "chart", standalone=True)
    kinds = {"sensitivity": "k-conv", "precision": "k-pool", "iu": "k-dw"}
    for k, (what, style) in enumerate(kinds.items()):
        svg.rect(left + 90 * k, 5, 9, 9, style)
        svg.text(left + 90 * k + 14, 13, what.upper() if what == "iu" else what, "info", anchor="start")
    for percent in range(0, 101, 20):
        x = left + percent / 100 * width
        svg.line(x, 20, x, foot, "grid")
        svg.text(x, foot + 13, f"{percent}%", "tick")
    for k, (name, metrics) in enumerate(zip(score.classes, class_metrics(score.confusion), strict=True)):
        y = 24 + row * k
        svg.text(left - 6, y + 12, shorten(name, 18), "tick", anchor="end")
        for place, (what, style) in enumerate(kinds.items()):
            share = float(np.nan_to_num(getattr(metrics, what)))
            svg.rect(left, y + 6 * place, share * width, 5, style, title=f"{name}: {what} {100 * share:.2f}%")
    return svg.finish()


def draw_curve(rates: np.ndarray, what: str) -> Drawing:
    """Return percentages over the number of stimuli, of few points where there are many."""
    svg = Svg(_WIDTH + 10, _FOOT + 40, "chart", standalone=True)
    for percent in range(0, 101, 20):
        y = _FOOT - percent / 100 * (_FOOT - _TOP)
        svg.line(_LEFT, y, _WIDTH, y, "grid")
        svg.text(_LEFT - 5, y + 3.5, f"{percent}%", "tick", anchor="end")
    chosen = np.unique(np.linspace(0, len(rates) - 1, min(len(rates), _POINTS)).astype(int))
    xs = _LEFT + (_WIDTH - _LEFT) * chosen / max(len(rates) - 1, 1)
    ys = _FOOT - rates[chosen] / 100 * (_FOOT - _TOP)
    svg.polyline(zip(xs, ys, strict=True), "line")
    svg.text(_LEFT, _FOOT + 14, "1", "tick")
    svg.text(_WIDTH, _FOOT + 14, str(len(rates)), "tick", anchor="end")
    svg.text((_LEFT + _WIDTH) / 2, _FOOT + 30, f"{what} over the first stimuli", "info")
    return svg.finish()


def palette(classes: int, hue: float = 0) -> np.ndarray:
    """Return colours of the outputs, uint8 (K + 1, 3) red, green, blue: evenly spaced hues from `hue` (degrees); black for no
    label."""
    colours = [hsv_to_rgb((hue / 360 + k / classes) % 1, 1.0, 1.0 if k % 2 == 0 else 0.7) for k in range(classes)]
    return np.rint(255 * np.array([*colours, _NO_LABEL])).astype(np.uint8)


def write_segmentation(pixels: Pixels, folder: Path, hue: float = 0) -> None:
    """Write <index>_estimated.png and, with labels, <index>_label.png of the first samples."""
    from PIL import Image

    colours = palette(len(pixels.confusion), hue)
    for shown in pixels.shown:
        Image.fromarray(colours[shown.estimated]).save(folder / f"{shown.index}_estimated.png")
        if (shown.labels >= 0).any():
            Image.fromarray(colours[shown.labels]).save(folder / f"{shown.index}_label.png")
