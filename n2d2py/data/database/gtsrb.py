"""GTSRB_DIR_Database: the German traffic signs, in the folders of the download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from n2d2py.data.database.base import Context, Database, FileItems, Items, data_path, fraction, register, train_and_test
from n2d2py.data.database.directory import FileSelection, list_directory
from n2d2py.data.database.selection import SlicedItems, Tile
from n2d2py.data.text import parse_lines, read_lines
from n2d2py.errors import Location, N2D2Error
from n2d2py.ini import Key, Kind, Values, keys

_TRAINING, _TEST = "Final_Training/Images", "Final_Test/Images"
_TABLE = "GT-final_test.csv"
_CORNERS = ("Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2")


def _class_id(name: str, folder: Path) -> int:
    number = name.removeprefix("/")
    if not (number.isascii() and number.isdigit() and len(number) < 7):
        what = f"{folder / _TRAINING} contains images in '{number or '.'}', which is not a class"
        raise N2D2Error("E402", what, remedy="keep only the folders 00000, 00001, ... there")
    return int(number)


def _header(table: Path, *names: str) -> list[str]:
    """Return the columns of a table. Raises: E401, E410 for a missing one."""
    header = next((line.split(";") for _, line in read_lines(table)), [])
    missing = [name for name in names if name not in header]
    if missing:
        what = f"{table} has no columns {' and '.join(missing)}"
        raise N2D2Error("E410", what, remedy="download the tables with classes from the site of the data set")
    return header


def _row(header: list[str], line: str) -> dict[str, str]:
    """Return the cells of a line by column; {} for another number of cells."""
    cells = line.split(";")
    return dict(zip(header, cells, strict=True)) if len(cells) == len(header) else {}


def _box(row: dict[str, str]) -> Tile | None:
    """Return x, y, width, height of a row; None if it has no box."""
    cells = [row.get(name, "") for name in _CORNERS]
    if not all(cell.isascii() and cell.isdigit() and len(cell) < 7 for cell in cells):
        return None
    left, top, right, bottom = map(int, cells)
    return (left, top, right - left + 1, bottom - top + 1) if left <= right and top <= bottom else None


def _training_boxes(signs: Path, files: list[str]) -> list[Tile]:
    """Return the box of the sign in each training image, from the tables in its folder.

    Raises: E401 a missing table, E410 an image without a line or a line without a box.
    """
    boxes: dict[str, Tile | None] = {}
    for folder in dict.fromkeys(file.rpartition("/")[0] for file in files):
        table = signs / _TRAINING / folder / f"GT-{folder}.csv"
        header = _header(table, "Filename", *_CORNERS)
        rows = [_row(header, line) for _, line in read_lines(table)][1:]
        boxes |= {f"{folder}/{row['Filename']}": _box(row) for row in rows if row}
    without = [file for file in files if boxes.get(file) is None]
    if without:
        what = f"{len(without)} training images have no bounding box, the first one is {without[0]}"
        raise N2D2Error("E410", what, remedy="unpack the tables GT-<class>.csv again, or set ExtractROIs=0")
    return [box for file in files if (box := boxes[file]) is not None]


def _read_test(table: Path, folder: Path, cut: bool) -> tuple[list[str], list[int], list[Tile]]:
    """Return files, classes and, if requested, boxes of the test images."""
    header = _header(table, "Filename", "ClassId", *(_CORNERS if cut else ()))

    def parse(line: str, where: Location) -> tuple[str, int, Tile]:
        row = _row(header, line)
        box = _box(row) if cut else (0, 0, 0, 0)
        if not row.get("ClassId", "").isdigit() or box is None:
            what = f"'{line}' is not a line of {len(header)} columns with a class" + (" and a box" if cut else "")
            raise N2D2Error("E410", what, where=where, remedy="unpack the data set again")
        if not (folder / _TEST / row["Filename"]).is_file():
            what = f"{row['Filename']} does not exist in {folder / _TEST}"
            raise N2D2Error("E401", what, where=where, remedy="unpack the data set again")
        return f"{_TEST}/{row['Filename']}", int(row["ClassId"]), box

    first = next((number for number, _ in read_lines(table)), 0)
    rows = parse_lines(table, parse, skip=first)
    return [file for file, _, _ in rows], [label for _, label, _ in rows], [box for _, _, box in rows]


_TEXTS = """
DataPath: Folder with Final_Training/Images/<class>/*.ppm and Final_Test/Images/*.ppm. Default: $N2D2_DATA/GTSRB.
LabelPath: Folder of GT-final_test.csv, and for ExtractROIs of Final_Training/Images/<class>/GT-<class>.csv. Default:
    DataPath.
"""


@register(
    "GTSRB_DIR_Database",
    fraction("Validation", 0.0, "Fraction of the training images of each class used for validation."),
    *keys(
        _TEXTS,
        Key("ExtractROIs", Kind.BOOL, False, "Crop the images to the sign with the boxes of the tables."),
        Key("DataPath", Kind.PATH, ""),
        Key("LabelPath", Kind.PATH, ""),
    ),
    doc="German traffic signs. The label id is the class.",
)
def _load(values: Values, context: Context) -> Database:
    folder = data_path(values, default="GTSRB", folder=True)
    tables = data_path(values, "LabelPath", folder=True) if values["LabelPath"] else folder
    cut = values["ExtractROIs"]
    known: dict[str, int] = {}
    listing = list_directory(folder / _TRAINING, known, FileSelection(valid_extensions=("ppm",)))
    if not listing.files:
        raise N2D2Error("E416", f"{folder / _TRAINING} contains no .ppm image", remedy="unpack the data set there")
    classes = {label: _class_id(name, folder) for name, label in known.items()}
    labels = [classes[label] for label in listing.labels]
    files, test_labels, boxes = _read_test(tables / _TABLE, folder, cut)
    names = tuple(str(number) for number in range(max((*labels, *test_labels)) + 1))
    all_labels = np.array(labels + test_labels)
    split = train_and_test(all_labels, len(labels), values, context.seed, equivalent=False)
    paths = [f"{_TRAINING}/{file}" for file in listing.files] + files
    items: Items = FileItems(folder, paths)
    if cut:
        items = SlicedItems(items, np.arange(len(paths)), np.array(_training_boxes(tables, listing.files) + boxes, np.int64))
    return Database(items, all_labels, names, split)
