"""The folder of a target: confusion matrix, misclassified stimuli, running success, log of all stimuli."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.targets.score import Score
from n2d2py.targets.table import score_lines

__all__ = ["target_folder_name", "write_target_files", "draw_confusion"]

_PICTURE_CLASSES = 200
_NUMBERED_CLASSES = 20
_NAMED_CLASSES = 50


def target_folder_name(target: str) -> str:
    """The target's name as one safe path component: other characters than letters, digits, _ . - become _."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", target)
    return name if name.strip(".") else "_" * max(len(name), 1)


def write_target_files(folder: Path, score: Score, tag: str) -> Path:
    """Writes the files of a score into `folder`/<target>/ and returns that folder.

    ConfusionMatrix_<tag>.dat (cells above 0: label, estimated, count, share of the label),
    ConfusionMatrix_<tag>.png (up to 200 classes), Misclassified_<tag>.dat, Success_<tag>.dat (stimulus,
    hit, rate so far), <tag>/classif.log (every stimulus with its best outputs and their values). For an
    auto-encoder: Errors_<tag>.dat (stimulus, label, mean squared error) instead.
    """
    home = folder / target_folder_name(score.target)
    home.mkdir(parents=True, exist_ok=True)
    if score.errors is not None:
        lines = [f"# {line}" for line in score_lines(score)] + ["# stimulus label mse name"]
        lines += [f"{index} {label} {error:.9g} {_quoted(name)}" for index, label, error, name in
                  zip(score.indices, score.labels, score.errors, score.names)]
        _write(home / f"Errors_{tag}.dat", lines)
        return home
    log = home / tag
    log.mkdir(exist_ok=True)
    _write(log / "classif.log", _classification_lines(score))
    if score.count:
        _write(home / f"ConfusionMatrix_{tag}.dat", _confusion_lines(score))
        _write(home / f"Misclassified_{tag}.dat", _misclassified_lines(score))
        _write(home / f"Success_{tag}.dat", _success_lines(score))
        if len(score.classes) <= _PICTURE_CLASSES:
            draw_confusion(score, home / f"ConfusionMatrix_{tag}.png")
    return home


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _classification_lines(score: Score) -> list[str]:
    lines = ["# stimulus \"name\" label, then estimated and value, best first"]
    for i, name in enumerate(score.names):
        found = " ".join(f"{k} {v:.7g}" for k, v in zip(score.best[i], score.values[i]))
        lines.append(f"{score.indices[i]} {_quoted(name)} {score.labels[i]} {found}")
    return lines


def _confusion_lines(score: Score) -> list[str]:
    lines = [f"# {line.strip()}" for line in score_lines(score)]
    lines += [f"# class {k} {_quoted(name)}" for k, name in enumerate(score.classes)]
    lines.append("# label estimated count share")
    totals = score.confusion.sum(axis=1)
    for label, estimated in np.argwhere(score.confusion):
        count = score.confusion[label, estimated]
        lines.append(f"{label} {estimated} {count} {count / totals[label]:.6f}")
    return lines


def _misclassified_lines(score: Score) -> list[str]:
    return ["# stimulus label estimated value name"] + [
        f"{miss.index} {miss.label} {miss.estimated} {miss.value:.7g} {_quoted(miss.name)}"
        for miss in score.misclassified]


def _success_lines(score: Score) -> list[str]:
    counted = np.flatnonzero(score.ranks >= 0)
    hits = (score.ranks[counted] == 0).astype(np.int64)
    rates = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return ["# stimulus hit rate"] + [f"{score.indices[i]} {hit} {rate:.6f}"
                                      for i, hit, rate in zip(counted, hits, rates)]


def draw_confusion(score: Score, path: Path) -> None:
    """Writes a PNG of the confusion matrix: shares of each label, colours by share^0.45 so that rare errors show.

    Raises:
        N2D2Error: E454 without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import PowerNorm
        from matplotlib.figure import Figure
    except ImportError as error:
        raise N2D2Error("E454", "the picture of the confusion matrix needs matplotlib",
                        remedy="pip install matplotlib") from error
    size = len(score.classes)
    side = float(np.clip(3.5 + 0.32 * size, 5.0, 14.0))
    figure = Figure(figsize=(side + 0.8, side), dpi=100)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shares = score.confusion / np.maximum(score.confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.45, 0, 1), interpolation="nearest")
    figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, label="share of the label")
    if size <= _NAMED_CLASSES:
        texts = [name if len(name) <= 18 else name[:17] + "…" for name in score.classes]
        texts = [text.replace("$", r"\$") for text in texts]
        axes.set_xticks(range(size), texts, rotation=90 if max(map(len, texts)) > 2 else 0, fontsize=8)
        axes.set_yticks(range(size), texts, fontsize=8)
    if size <= _NUMBERED_CLASSES:
        for label, estimated in np.argwhere(score.confusion):
            axes.text(estimated, label, str(score.confusion[label, estimated]), ha="center", va="center", fontsize=7,
                      color="white" if shares[label, estimated] > 0.3 else "black")
    axes.set_xlabel("estimated")
    axes.set_ylabel("label")
    axes.set_title(f"{score.correct} of {score.count} right: {score.top1:.2f}%", fontsize=10)
    figure.savefig(path, bbox_inches="tight", metadata={"Software": None})
