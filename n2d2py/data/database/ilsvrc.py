"""ILSVRC2012_Database: ImageNet's folders train/<synset>/ and val/ with val.txt."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.database.base import Context, Database, FileItems, data_path, fraction, register
from n2d2py.data.database.partition import Partition, partition
from n2d2py.data.decode import PICTURES
from n2d2py.data.text import parse_lines, read_lines, split_name_and_label
from n2d2py.errors import Location, N2D2Error
from n2d2py.ini import Key, Kind, Values


def _read_train(root: Path, ids: dict[str, int]) -> tuple[list[str], list[int]]:
    if not root.is_dir():
        log.notice("%s: the folder train is missing, so the learning set is empty", root.parent)
        return [], []
    files: list[str] = []
    labels: list[int] = []
    for synset in sorted(os.listdir(root)):
        if synset not in ids or not (root / synset).is_dir():
            continue
        for name in sorted(os.listdir(root / synset)):
            if os.path.splitext(name)[1].lower() in PICTURES:
                files.append(f"train/{synset}/{name}")
                labels.append(ids[synset])
    return files, labels


def _read_validation(path: Path, count: int, shift: int) -> tuple[list[str], list[int]]:
    def parse(line: str, where: Location) -> tuple[str, int]:
        parts = split_name_and_label(line)
        if not parts or not (parts[1].isascii() and parts[1].isdigit() and int(parts[1]) < count):
            what = f"line '{line}' is not 'file label' with a label from 0 to {count - 1}"
            raise N2D2Error("E410", what, where=where, remedy="use the line numbers of the synsets as labels")
        return f"val/{parts[0]}", int(parts[1]) + shift

    rows = parse_lines(path, parse)
    return [file for file, _ in rows], [label for _, label in rows]


@register(
    "ILSVRC2012_Database",
    fraction("Learn", 1.0, "Fraction of the training images used for learning."),
    Key("UseValidationForTest", Kind.BOOL, True, "Use the validation images as test set, too."),
    Key("BackgroundClass", Kind.BOOL, False, "Reserve label 0 for the background."),
    Key("DataPath", Kind.PATH, "", "Folder with train/<synset>/, val/ and val.txt. Default: $N2D2_DATA/ILSVRC2012."),
    Key("LabelPath", Kind.PATH, "", "File with the synsets, one per line. Default: $N2D2_DATA/ILSVRC2012/synsets.txt."),
    doc="ImageNet. The images of val/ are both the validation and the test set.",
)
def _load(values: Values, context: Context) -> Database:
    """Return the images of a folder; those of val/ validate, and with UseValidationForTest also test.

    The label id is the line of the synset (first word) in LabelPath, from 0, plus one with BackgroundClass, whose label 0 is
    "background". Without train/, the Learn set is empty.

    Raises:
        N2D2Error: E401 missing val.txt or synsets, E410 unreadable lines.
    """
    folder = data_path(values, default="ILSVRC2012", folder=True)
    synsets = data_path(values, "LabelPath", default="ILSVRC2012/synsets.txt", folder=False)
    learn, lines = values["Learn"], [line for _, line in read_lines(synsets)]
    shift = 1 if values["BackgroundClass"] else 0
    ids = {line.split()[0]: number + shift for number, line in enumerate(lines)}
    names = ("background",) * shift + tuple(lines)
    learned, learn_labels = _read_train(folder / "train", ids) if learn > 0 else ([], [])
    files, labels = _read_validation(folder / "val.txt", len(lines), shift)
    how = Partition(learn, 0.0, 0.0, values["RandomPartitioning"], equivalent=False)
    split = partition(np.array(learn_labels, np.int64), how, context.seed, str(folder))
    split["Validation"] = np.arange(len(learned), len(learned) + len(files))
    split["Test"] = split["Validation"] if values["UseValidationForTest"] else np.zeros(0, np.int64)
    all_labels = np.array(learn_labels + labels, np.int64)
    return Database(FileItems(folder, learned + files), all_labels, names, split)
