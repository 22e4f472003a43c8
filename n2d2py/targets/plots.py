"""Plots of a score: confusion matrix, metrics by class, running rate, segmented images."""

from __future__ import annotations

from colorsys import hsv_to_rgb
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from n2d2py.figures import new_figure
from n2d2py.files import plain_text
from n2d2py.targets.metrics import class_metrics
from n2d2py.targets.pixels import Pixels
from n2d2py.targets.score import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NUMBERED_CLASSES = 20
_NAMED_CLASSES = 50
_NO_LABEL = (0, 0, 0)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a matplotlib figure that needs no display, and its axes. Raise E454 without matplotlib."""
    figure = new_figure(width, height, what="the plot of a score")
    return figure, figure.add_subplot()


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})


def _short(names: tuple[str, ...]) -> list[str]:
    texts = [name if len(name) <= 18 else name[:17] + "…" for name in names]
    return [text.replace("$", r"\$") for text in texts]


@plain_text()
def draw_confusion(score: Score, path: Path) -> None:
    """Write the PNG of `confusion_figure`. Raise E454 without matplotlib."""
    _save(confusion_figure(score), path)


@plain_text()
def confusion_figure(score: Score) -> Figure:
    """Return the plot of the confusion matrix as shares of each label, with colours by share^0.45 to make rare errors visible.

    Raises:
        N2D2Error: E454 without matplotlib.
    """
    size = len(score.classes)
    side = float(np.clip(3.5 + 0.32 * size, 5.0, 14.0))
    figure, axes = _figure(side + 0.8, side)
    from matplotlib.colors import PowerNorm

    shares = score.confusion / np.maximum(score.confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.45, 0, 1), interpolation="nearest")
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, label="share of the label")
    if size <= _NAMED_CLASSES:
        texts = _short(score.classes)
        axes.set_xticks(range(size), texts, rotation=90 if max(map(len, texts)) > 2 else 0, fontsize=8)
        axes.set_yticks(range(size), texts, fontsize=8)
    if size <= _NUMBERED_CLASSES:
        for label, estimated in np.argwhere(score.confusion):
            axes.text(
                estimated,
                label,
                str(score.confusion[label, estimated]),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if shares[label, estimated] > 0.3 else "black",
            )
    axes.set_xlabel("estimated")
    axes.set_ylabel("label")
    axes.set_title(f"{score.correct} of {int(score.confusion.sum())} right: {score.top1:.2f}%", fontsize=10)
    return figure


@plain_text()
def draw_class_scores(score: Score, path: Path) -> None:
    """Write a PNG of the sensitivity, precision and IU of each class. Raise E454 without matplotlib."""
    size, metrics = len(score.classes), class_metrics(score.confusion)
    figure, axes = _figure(4.5, float(np.clip(1.2 + 0.32 * size, 2.5, 30.0)))
    for row, what in enumerate(("sensitivity", "precision", "iu")):
        values = np.nan_to_num([100 * getattr(one, what) for one in metrics])
        axes.barh(np.arange(size) + 0.27 * (row - 1), values, 0.25, label=what.upper() if what == "iu" else what)
    if size <= _NAMED_CLASSES:
        axes.set_yticks(range(size), _short(score.classes), fontsize=8)
    axes.set_ylim(size - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("percent")
    axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.4 / max(1.0, 0.2 * size)), ncols=3)
    _save(figure, path)


@plain_text()
def draw_curve(rates: np.ndarray, what: str, path: Path) -> None:
    """Write a PNG of percentages over the number of samples. Raise E454 without matplotlib."""
    figure, axes = _figure(5.0, 3.0)
    axes.plot(np.arange(1, len(rates) + 1), rates, linewidth=1.2, marker="." if len(rates) < 30 else None)
    axes.set_ylim(0, 101)
    axes.set_xlabel("stimuli")
    axes.set_ylabel(f"{what} so far (%)")
    axes.grid(alpha=0.3)
    _save(figure, path)


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
