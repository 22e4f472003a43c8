"""List_Database: files of a folder that a text file lists with their labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from n2d2py.data.database.base import PARTITION_KEYS, Context, Database, FileItems, data_path, partition_of, register
from n2d2py.data.database.partition import partition
from n2d2py.data.text import label_ids, name_and_label, read_lines
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.ini import REQUIRED, Key, Kind, Values


def _read(path: Path, folder: Path) -> tuple[list[str], list[str]]:
    files: list[str] = []
    texts: list[str] = []
    errors: list[N2D2Error] = []
    for number, line in read_lines(path, comment="#"):
        where = Location(str(path), number)
        parts = name_and_label(line)
        if parts is None:
            errors.append(
                N2D2Error("E410", f"line '{line}' is not 'file label'", where=where, remedy="write a file, a blank and a label")
            )
        elif not (folder / parts[0]).is_file():
            errors.append(
                N2D2Error("E401", f"{parts[0]} does not exist in {folder}", where=where, remedy="correct DataPath or the list")
            )
        else:
            files.append(parts[0])
            texts.append(parts[1])
        if len(errors) == 10:
            break
    ErrorList.raise_if(errors)
    if not files:
        raise N2D2Error("E416", f"{path} lists no stimulus", remedy="add lines 'file label'")
    return files, texts


@register(
    "List_Database",
    Key("DataPath", Kind.PATH, REQUIRED, "Base folder of the listed files."),
    Key("LabelPath", Kind.PATH, REQUIRED, "List of lines 'file label', partitioned by the keys below."),
    Key("ValidationPath", Kind.PATH, "", "Another such list that forms the validation set."),
    Key("LabelNamesPath", Kind.PATH, "", "File with the names of the labels 0, 1, ..., one per line."),
    *PARTITION_KEYS,
    doc="Extension of n2d2py: the files named in a list. If all labels are integers, they are label ids. Otherwise, ids "
    "follow the order of first appearance. By default, all stimuli are the test set.",
)
def _load(values: Values, context: Context) -> Database:
    """The files of LabelPath, split by the keys; those of ValidationPath validate, in its order.

    Raises:
        N2D2Error: E401 a listed file is missing (an ErrorList for several), E409, E410, E416.
    """
    folder = data_path(values, context, folder=True)
    lists, named, validating = (
        data_path(values, context, key, folder=False) if values[key] else None
        for key in ("LabelPath", "LabelNamesPath", "ValidationPath")
    )
    assert lists is not None
    files, texts = _read(lists, folder)
    more, more_texts = _read(validating, folder) if validating else ([], [])
    ids, names = label_ids(texts + more_texts)
    if named is not None:
        given = tuple(line for _, line in read_lines(named))
        if len(given) < len(names):
            raise N2D2Error(
                "E410",
                f"{named} contains {len(given)} names, but the lists contain label {len(names) - 1}",
                remedy="add a name for every label",
            )
        names = given
    split = partition(np.array(ids[: len(files)]), partition_of(values), context.seed, str(lists))
    split["Validation"] = np.concatenate([split["Validation"], np.arange(len(files), len(files) + len(more))])
    return Database("List_Database", FileItems(folder, files + more), np.array(ids), names, split)
