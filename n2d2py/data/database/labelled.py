"""Databases with labels in tables or file names: of whole stimuli, or of boxes in images.

Actitracker_Database, CelebA_Database, ILSVRC2012_Database

The formats are documented by the distributors; folders and defaults are those of N2D2.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.database.annotated import REGION_KEYS, Points, box, region_maps
from n2d2py.data.database.base import Context, Database, Partition, array_items, data_path, file_items, fraction_keys, register
from n2d2py.data.database.directory import FileSelection, list_directory
from n2d2py.data.decode import PICTURES, parse_lines, read_lines, split_name_and_label
from n2d2py.errors import Location, N2D2Error
from n2d2py.ini import Ignored, Key, Kind, Values

Row = tuple[str, str, Points | None]
"""A file, its label, and the corners of the box with the label; None for the whole image."""


def _path_key(name: str, default: str) -> Key:
    return Key(name, Kind.PATH, "", f"Default: $N2D2_DATA/{default}.")


def _unreadable_error(path: Path, what: str) -> N2D2Error:
    return N2D2Error("E410", f"{path} cannot be read: {what}", remedy="unpack the data set again")


def _database(
    values: Values,
    context: Context,
    folder: Path,
    rows: Iterable[Row],
    how: Partition | dict[str, str],
    known: Sequence[str] = (),
) -> Database:
    """Return the database of rows with existing files. `how`: a partition, or the set of each file; `known`: first labels."""
    records = list(rows)
    present = [row for row in records if (folder / row[0]).is_file()]
    if not present:
        what = f"{folder} contains none of the files that are listed"
        raise N2D2Error("E416", what, remedy="set DataPath to the unpacked data set")
    if absent := len(records) - len(present):
        log.notice("%s: %d of %d files that are listed are absent", values["Type"].strip(), absent, len(records))
    default: str = values.as_dict().get("DefaultLabel", "")
    first = [default] if default else []
    ids = {label: index for index, label in enumerate([*first, *known])}
    labels = np.array([ids.setdefault(label, len(ids)) for _, label, _ in present])
    items = file_items(folder, [file for file, _, _ in present])
    maps = None
    if any(corners is not None for _, _, corners in present):
        regions = [[(ids[label], corners)] if corners is not None else [] for _, label, corners in present]
        maps = region_maps(folder, items.names, regions, 0 if default else -1, values["ROIsMargin"])
        labels = np.full(len(items), -1)
    if isinstance(how, Partition):
        sets = context.split(labels, how, values.section.location)
    else:
        sets = {one: np.flatnonzero([how.get(file) == one for file in items.names]) for one in set(how.values())}
    return Database(items, labels, tuple(ids), sets, maps)


_IDENTITIES, _BOXES, _PARTS = "identity_CelebA.txt", "list_bbox_celeba.txt", "Eval/list_eval_partition.txt"


@register(
    "CelebA_Database",
    *fraction_keys(1.0),
    Key("InTheWild", Kind.BOOL, True, f"1: img_celeba, whose faces are boxes of {_BOXES}. 0: img_align_celeba."),
    Key("WithPartitioning", Kind.BOOL, True, f"1: split as {_PARTS} next to LabelPath. 0: by Learn and Validation."),
    _path_key("DataPath", "CelebA/Img"),
    _path_key("LabelPath", "CelebA/Anno"),
    *REGION_KEYS,
    accepted=(Ignored("WithLandmarks", "keys of landmarks", "reads landmarks, which no layer uses", "remove it"),),
    doc=f"Faces of celebrities. Their identities in {_IDENTITIES} of LabelPath are the labels.",
)
def _celeba(values: Values, context: Context) -> Database:
    folder = data_path(values, default="CelebA/Img", folder=True)
    tables = data_path(values, "LabelPath", default="CelebA/Anno", folder=True)
    wild = values["InTheWild"]
    folder /= "img_celeba" if wild else "img_align_celeba"
    identities = dict(sorted(_cells(tables / _IDENTITIES, 2)))
    boxes: dict[str, Points] = {}
    for file, *numbers in _cells(tables / _BOXES, 5, header=2) if wild else ():
        x, y, width, height = _numbers(tables / _BOXES, numbers)
        boxes[file] = box(x, y, x + width - 1, y + height - 1)
    rows = [(file, label, boxes.get(file)) for file, label in identities.items()]
    names = sorted(set(identities.values()), key=float) if all(map(str.isdecimal, identities.values())) else ()
    if not values["WithPartitioning"]:
        return _database(values, context, folder, rows, Partition.read(values, not wild, False), names)
    parts = dict(_cells(tables.parent / _PARTS, 2))
    sets = {"0": "Learn", "1": "Validation", "2": "Test"}
    which = {file: sets[part] for file, part in parts.items() if part in sets}
    return _database(values, context, folder, rows, which, names)


def _cells(path: Path, count: int, header: int = 0) -> Iterator[list[str]]:
    """Yield the cells of each line of a table after its header, `count` of each."""
    for number, line in read_lines(path, comment="#"):
        cells = line.split()
        if number > header:
            if len(cells) < count:
                raise _unreadable_error(path, f"line {number} has {len(cells)} cells, not {count}")
            yield cells[:count]


def _numbers(path: Path, cells: Sequence[str]) -> list[float]:
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        numbers = [np.inf]
    if not np.isfinite(numbers).all() or np.abs(numbers).max() > 1e6:
        raise _unreadable_error(path, f"'{' '.join(cells)}' are not numbers")
    return numbers


_ACTIVITIES = ("Jogging", "LyingDown", "Sitting", "Stairs", "Standing", "Walking")


@register(
    "Actitracker_Database",
    *fraction_keys(0.6, 0.2),
    Key("WindowSize", Kind.UINT, 90, "Rows of the table in a stimulus.", minimum=1),
    Key("Overlapping", Kind.FLOAT, 0.5, "Share of WindowSize from a stimulus to the next.", minimum=0, maximum=1),
    Key(
        "UseUnlabeledForTest", Kind.BOOL, False, "1: test WISDM_at_v2.0_unlabeled_raw.txt. 0: what Learn and Validation leave."
    ),
    _path_key("DataPath", "WISDM_at_v2.0"),
    doc="Accelerations along three axes, of people in motion: stimuli of WindowSize rows and 3 columns. Their label is the activity of most rows.",
)
def _actitracker(values: Values, context: Context) -> Database:
    folder = data_path(values, default="WISDM_at_v2.0", folder=True)
    size = values["WindowSize"]
    step = int(size * values["Overlapping"] + 0.5)
    if step < 1:
        what = f"Overlapping={values['Overlapping']:g} leaves no row between stimuli"
        raise values.fail("E122", what, "give a larger one", "Overlapping")
    more = values["UseUnlabeledForTest"]
    how = replace(Partition.read(values, per_label=False), test=0.0 if more else None)
    tables = {"raw": how} | ({"unlabeled_raw": Partition(per_label=False)} if more else {})
    parts = []
    for name, split in tables.items():
        path = folder / f"WISDM_at_v2.0_{name}.txt"
        windows, labels = _windows(path, size, step)
        sets = context.split(labels, split, str(path))
        parts.append(Database(array_items(path.name, windows), labels, sets=sets))
    return Database.join(parts, _ACTIVITIES)


def _windows(path: Path, size: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return windows (N, size, 3) of lines user,activity,time,x,y,z, without those that have no activity, and their labels."""
    activities, values = [], []
    for number, line in read_lines(path):
        cells = [cell.strip() for cell in line.rstrip(";, \t").split(",")]
        if len(cells) < 3 or not cells[1]:
            continue
        if len(cells) != 6 or cells[1] not in _ACTIVITIES:
            raise _unreadable_error(path, f"line {number} is not user,activity,time,x,y,z;")
        activities.append(_ACTIVITIES.index(cells[1]))
        values.append(_numbers(path, cells[3:]))
    starts = range(0, (len(values) - size) // step * step, step)
    if not starts:
        raise N2D2Error("E416", f"{path} has {len(values)} rows, too few for two stimuli", remedy="set a smaller WindowSize")
    table, kinds = np.array(values, np.float32), np.array(activities)
    labels = [_most_frequent(kinds[start : start + size]) for start in starts]
    return np.stack([table[start : start + size] for start in starts]), np.array(labels)


def _most_frequent(kinds: np.ndarray) -> int:
    """Return the most frequent label; for a tie, the one that reaches the count first."""
    counts = np.bincount(kinds)
    return max(range(len(counts)), key=lambda kind: (counts[kind], -int(np.flatnonzero(kinds == kind).max(initial=-1))))


def _training_images(root: Path, ids: dict[str, int]) -> list[tuple[str, int]]:
    if not root.is_dir():
        log.notice("%s: the folder train is missing, so the learning set is empty", root.parent)
        return []
    files = list_directory(root, {}, FileSelection(valid_extensions=PICTURES)).files
    return [(f"train/{file}", ids[synset]) for file in files if (synset := file.partition("/")[0]) in ids]


def _validation_images(path: Path, count: int, shift: int) -> list[tuple[str, int]]:
    def parse(line: str, where: Location) -> tuple[str, int]:
        parts = split_name_and_label(line)
        if not parts or not (parts[1].isascii() and parts[1].isdigit() and int(parts[1]) < count):
            what = f"line '{line}' is not 'file label' with a label from 0 to {count - 1}"
            raise N2D2Error("E410", what, where=where, remedy="use the line numbers of the synsets as labels")
        return f"val/{parts[0]}", int(parts[1]) + shift

    return parse_lines(path, parse)


@register(
    "ILSVRC2012_Database",
    Key("Learn", Kind.FLOAT, 1.0, "Fraction of the training images used for learning.", minimum=0, maximum=1),
    Key("UseValidationForTest", Kind.BOOL, True, "Use the validation images as test set, too."),
    Key("BackgroundClass", Kind.BOOL, False, "Reserve label 0 for the background."),
    Key("DataPath", Kind.PATH, "", "Folder with train/<synset>/, val/ and val.txt. Default: $N2D2_DATA/ILSVRC2012."),
    Key("LabelPath", Kind.PATH, "", "File with the synsets, one per line. Default: $N2D2_DATA/ILSVRC2012/synsets.txt."),
    doc="ImageNet. The images of val/ are both the validation and the test set.",
)
def _ilsvrc(values: Values, context: Context) -> Database:
    """Return ImageNet: a label id is the line of the synset (first word) in LabelPath, from 0, plus 1 with BackgroundClass."""
    folder = data_path(values, default="ILSVRC2012", folder=True)
    synsets = data_path(values, "LabelPath", default="ILSVRC2012/synsets.txt", folder=False)
    learn, lines = values["Learn"], [line for _, line in read_lines(synsets)]
    shift = 1 if values["BackgroundClass"] else 0
    ids = {line.split()[0]: number + shift for number, line in enumerate(lines)}
    names = ("background",) * shift + tuple(lines)
    learned = _training_images(folder / "train", ids) if learn > 0 else []
    rows = learned + _validation_images(folder / "val.txt", len(lines), shift)
    labels = np.array([label for _, label in rows], np.int64)
    how = Partition(learn, 0.0, 0.0, values["RandomPartitioning"], equivalent=False)
    split = context.split(labels[: len(learned)], how, str(folder))
    split["Validation"] = np.arange(len(learned), len(rows))
    if values["UseValidationForTest"]:
        split["Test"] = split["Validation"]
    return Database(file_items(folder, [file for file, _ in rows]), labels, names, split)
