"""The confusion matrix as SVG, for pages: cells shaded by their share of the label."""

from __future__ import annotations

import numpy as np

from n2d2py.report.svg import Svg
from n2d2py.report.text import shorten

_NUMBERED = 20
_NAMED = 60


def draw_confusion_svg(confusion: np.ndarray, classes: tuple[str, ...]) -> str:
    """The SVG text, without colours of its own; cells above 0 only, right ones and wrong ones in two hues."""
    size = len(confusion)
    cell = float(np.clip(620 / size, 3.0, 34.0))
    named = size <= _NAMED
    names = [shorten(name, 16) for name in classes]
    room = 10.0 + (6.0 * max(map(len, names)) if named else 4.0)
    side = size * cell
    svg = Svg(room + side + 6, room + side + 6, "confusion", standalone=False)
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
    return svg.finish()


def frequent_confusions(confusion: np.ndarray, classes: tuple[str, ...], most: int = 15) -> list[tuple[str, str, int, float]]:
    """(label, taken for, count, share of the label), most frequent first, then in the order of the classes."""
    totals = confusion.sum(axis=1)
    wrong = [(int(label), int(estimated)) for label, estimated in np.argwhere(confusion) if label != estimated]
    wrong.sort(key=lambda cell: -int(confusion[cell]))
    return [(classes[a], classes[b], int(confusion[a, b]), float(confusion[a, b] / totals[a])) for a, b in wrong[:most]]
