"""Files of a target: confusion matrix, misclassified stimuli, running success, log of all stimuli."""

import re
from dataclasses import astuple
from pathlib import Path

import numpy as np

from n2d2py.files import file_names, json_text, write_text
from n2d2py.targets.detections import Boxes, Words
from n2d2py.targets.plots import DRAWN_CLASSES, draw_class_scores, draw_confusion, draw_curve, write_segmentation
from n2d2py.targets.score import Score, class_metrics
from n2d2py.targets.table import score_lines


def target_folder_name(target: str) -> str:
    """Return the target's name as a safe path component: letters, digits, _ . - and, for all others, _; cut if long."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", target)
    return next(iter(file_names([name]).values()))


def write_target_files(folder: Path, score: Score, tag: str, hue: float = 0, as_json: bool = False) -> Path:
    """Write the files of a score into `folder`/<target>/ and return that folder.

    ConfusionMatrix_<tag>.dat (nonzero cells: label, estimated, count, share of the label) and ConfusionMatrix_<tag>_score.dat
    (sensitivity, ..., IU of each class), both with a plot, .svg (up to 200 classes); Success_<tag>.dat
    (stimulus, hit, rate so far) and .svg, also SuccessTopN_<tag>; Misclassified_<tag>.dat; <tag>/classif.log (best outputs and
    their values of every stimulus). A segmentation has images of the first stimuli in <tag>/ instead of the last two; colours
    start at the angle `hue`. An auto-encoder has only Errors_<tag>.dat (stimulus, label, mean squared error); detections have
    Detections_<tag>.dat, words Words_<tag>.dat. With `as_json`, <tag>/classif.json has an object for each stimulus.
    """
    home = folder / target_folder_name(score.target)
    home.mkdir(parents=True, exist_ok=True)
    if as_json:
        (home / tag).mkdir(exist_ok=True)
        _write_lines(home / tag / "classif.json", [json_text(_sample_records(score)).rstrip()])
    if score.errors is not None:
        lines = [*_heading(score), "# stimulus label mse name"]
        lines += [
            f"{index} {label} {error:.9g} {_quoted(name)}"
            for index, label, error, name in zip(score.indices, score.labels, score.errors, score.names, strict=True)
        ]
        _write_lines(home / f"Errors_{tag}.dat", lines)
        return home
    if isinstance(score.detections, Words):
        _write_lines(home / f"Words_{tag}.dat", _word_lines(score, score.detections))
        return home
    if score.detections is not None:
        _write_lines(home / f"Detections_{tag}.dat", _detection_lines(score, score.detections))
        return home
    log = home / tag
    log.mkdir(exist_ok=True)
    if score.pixels is None:
        _write_lines(log / "classif.log", _classification_lines(score))
    else:
        write_segmentation(score.pixels, log, hue)
    if score.count:
        _write_lines(home / f"ConfusionMatrix_{tag}.dat", _confusion_lines(score))
        _write_lines(home / f"ConfusionMatrix_{tag}_score.dat", _class_lines(score))
        if score.pixels is None:
            _write_lines(home / f"Misclassified_{tag}.dat", _misclassified_lines(score))
        _write_success(home / f"Success_{tag}", score, 1, "recognition rate")
        if score.topn is not None:
            _write_success(home / f"SuccessTopN_{tag}", score, score.top_n, f"top-{score.top_n} recognition rate")
        if len(score.classes) <= DRAWN_CLASSES:
            draw_confusion(score).save(home / f"ConfusionMatrix_{tag}.svg")
            draw_class_scores(score).save(home / f"ConfusionMatrix_{tag}_score.svg")
    return home


def _write_success(path: Path, score: Score, top: int, what: str) -> None:
    """Write hits (for a segmentation, shares of correct pixels) and running rate of the counted samples, .dat and .svg."""
    if score.pixels is not None:
        counted = np.flatnonzero(score.pixels.counted)
        hits, sizes = score.pixels.hits[counted], score.pixels.counted[counted]
    else:
        counted = np.flatnonzero(score.ranks >= 0)
        hits, sizes = (score.ranks[counted] < top).astype(np.int64), np.ones(len(counted), np.int64)
    rates = np.cumsum(hits) / np.cumsum(sizes)
    rows = zip(score.indices[counted], hits / sizes, rates, strict=True)
    _write_lines(
        path.with_name(f"{path.name}.dat"), ["# stimulus hit rate", *(f"{i} {hit:.6g} {rate:.6f}" for i, hit, rate in rows)]
    )
    draw_curve(100 * rates, what).save(path.with_name(f"{path.name}.svg"))


def _sample_records(score: Score) -> list[dict]:
    records = []
    for i, name in enumerate(score.names):
        one: dict = {"stimulus": int(score.indices[i]), "name": name}
        if score.errors is not None:
            one["mse"] = float(score.errors[i])
        elif score.pixels is not None:
            one.update(pixels=int(score.pixels.counted[i]), hits=int(score.pixels.hits[i]))
        else:
            one.update(label=int(score.labels[i]), estimated=score.best[i].tolist(), values=score.values[i].tolist())
        records.append(one)
    return records


def _write_lines(path: Path, lines: list[str]) -> None:
    write_text(path, "\n".join(lines) + "\n")


def _heading(score: Score) -> list[str]:
    return [f"# {line.strip()}" for line in score_lines(score)]


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _classification_lines(score: Score) -> list[str]:
    lines = ['# stimulus "name" label, then estimated and value, best first']
    for i, name in enumerate(score.names):
        best = " ".join(f"{k} {v:.7g}" for k, v in zip(score.best[i], score.values[i], strict=True))
        lines.append(f"{score.indices[i]} {_quoted(name)} {score.labels[i]} {best}")
    return lines


def _confusion_lines(score: Score) -> list[str]:
    lines = _heading(score) + [f"# class {k} {_quoted(name)}" for k, name in enumerate(score.classes)]
    lines.append("# label estimated count share")
    totals = score.confusion.sum(axis=1)
    for label, estimated in np.argwhere(score.confusion):
        count = score.confusion[label, estimated]
        lines.append(f"{label} {estimated} {count} {count / totals[label]:.6f}")
    return lines


def _detection_lines(score: Score, boxes: Boxes) -> list[str]:
    lines = _heading(score)
    for label, each in boxes.precisions.items():
        name = _quoted(score.classes[label]) if label < len(score.classes) else str(label)
        lines.append(f"# class {label} {name}: AP {each.mean():.4f}, at an IoU of 0.5 {each[0]:.4f}")
    lines.append("# stimulus class score left top right bottom name")
    for index, name, detections in zip(score.indices, score.names, boxes.detections, strict=True):
        lines += [
            f"{index} {int(row[0])} " + " ".join(f"{value:.6g}" for value in row[1:]) + f" {_quoted(name)}"
            for row in detections
        ]
    return lines


def _word_lines(score: Score, words: Words) -> list[str]:
    lines = [*_heading(score), "# spoken words, decided words, name"]
    for name, *each in zip(score.names, words.spoken, words.detected, strict=True):
        spoken, detected = (_quoted(" ".join(score.classes[label] for label in labels)) for labels in each)
        lines.append(f"{spoken} {detected} {_quoted(name)}")
    return lines


def _misclassified_lines(score: Score) -> list[str]:
    missed = score.misclassified
    rows = (f"{one.index} {one.label} {one.estimated} {one.value:.7g} {_quoted(one.name)}" for one in missed)
    return ["# stimulus label estimated value name", *rows]


def _class_lines(score: Score) -> list[str]:
    lines = ["# class sensitivity specificity precision accuracy f1 informedness iu name"]
    for index, metrics in enumerate(class_metrics(score.confusion)):
        figures = " ".join(f"{value:.6f}" for value in astuple(metrics))
        lines.append(f"{index} {figures} {_quoted(score.classes[index])}")
    return lines
