"""GTSRB_DIR_Database: the German traffic signs, as they are distributed."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from n2d2py.data.database.base import Context, Database, FileItems, data_path, register
from n2d2py.data.database.directory import list_directory
from n2d2py.data.database.partition import Partition, partition
from n2d2py.data.text import read_lines
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.ini import Key, Kind, Schema, Values

__all__ = ["gtsrb_database"]

_TRAINING, _TEST = "Final_Training/Images", "Final_Test/Images"
_TABLE = "GT-final_test.csv"


def gtsrb_database(folder: Path, table: Path, *, validation: float = 0.0, shuffle: bool = True,
                   seed: int = 0) -> Database:
    """The pictures of Final_Training/Images/<class>/ and those of Final_Test/Images.

    A label's id is the number of the class. `table` (GT-final_test.csv) has the classes of the test
    pictures in its column ClassId, the files in Filename.

    Raises:
        N2D2Error: E401 a folder or the table is missing, E402 a folder that is no class, E410 for
            lines of the table that cannot be read, E416 without training pictures.
    """
    known: dict[str, int] = {}
    found = list_directory(folder / _TRAINING, known, valid_extensions=("ppm",))
    if not found.files:
        raise N2D2Error("E416", f"{folder / _TRAINING} holds no .ppm picture",
                        remedy="unpack the data set there")
    classes = {label: _class(name, folder) for name, label in known.items()}
    labels = [classes[label] for label in found.labels]
    files, test_labels = _test(table, folder)
    names = tuple(str(number) for number in range(max((*labels, *test_labels)) + 1))
    split = partition(np.array(labels), Partition(1 - validation, validation, 0.0, shuffle,
                                                  equivalent=False), seed, str(folder))
    split["Test"] = np.arange(len(labels), len(labels) + len(files))
    paths = [f"{_TRAINING}/{file}" for file in found.files] + files
    return Database("GTSRB_DIR_Database", FileItems(folder, paths), np.array(labels + test_labels),
                    names, split)


def _class(name: str, folder: Path) -> int:
    number = name.removeprefix("/")
    if not (number.isascii() and number.isdigit() and len(number) < 7):
        raise N2D2Error("E402", f"{folder / _TRAINING} has pictures in '{number or '.'}', which is "
                        "no class", remedy="keep only the folders 00000, 00001, ... there")
    return int(number)


def _test(table: Path, folder: Path) -> tuple[list[str], list[int]]:
    lines = list(read_lines(table))
    header = lines[0][1].split(";") if lines else []
    if "Filename" not in header or "ClassId" not in header:
        raise N2D2Error("E410", f"{table} has no columns Filename and ClassId",
                        remedy="take GT-final_test.csv, with classes, from the data set's site")
    file_at, class_at = header.index("Filename"), header.index("ClassId")
    files: list[str] = []
    labels: list[int] = []
    errors: list[N2D2Error] = []
    for number, line in lines[1:]:
        cells = line.split(";")
        whole = len(cells) == len(header) and cells[class_at].isdigit()
        if whole and (folder / _TEST / cells[file_at]).is_file():
            files.append(f"{_TEST}/{cells[file_at]}")
            labels.append(int(cells[class_at]))
        elif len(errors) < 10:
            what = (f"{cells[file_at]} does not exist in {folder / _TEST}" if whole else
                    f"'{line}' is not a line of {len(header)} columns with a class")
            errors.append(N2D2Error("E401" if whole else "E410", what,
                                    where=Location(str(table), number),
                                    remedy="unpack the data set again"))
    ErrorList.raise_if(errors)
    return files, labels


@register(Schema("GTSRB_DIR_Database", (
    Key("Validation", Kind.FLOAT, 0.0, "Fraction of the training pictures of each class that "
        "validates.", minimum=0, maximum=1),
    Key("ExtractROIs", Kind.BOOL, False, "1 (pictures cropped to the sign) is not supported."),
    Key("DataPath", Kind.PATH, "", "Folder with Final_Training/Images/<class>/*.ppm and "
        "Final_Test/Images/*.ppm; by default $N2D2_DATA/GTSRB."),
    Key("LabelPath", Kind.PATH, "", "Folder of GT-final_test.csv; by default DataPath."),
), doc="German traffic signs; label id = class."))
def _load(values: Values, context: Context) -> Database:
    if values["ExtractROIs"]:
        raise N2D2Error("E406", "ExtractROIs=1 is not supported", where=values.where("ExtractROIs"),
                        remedy="remove it, or crop the pictures and use DIR_Database")
    folder = data_path(values, context, default="GTSRB", folder=True)
    labels = data_path(values, context, "LabelPath", folder=True) if values["LabelPath"] else folder
    return gtsrb_database(folder, labels / _TABLE, validation=values["Validation"],
                          shuffle=values["RandomPartitioning"], seed=context.seed)
