"""CSV_Database: one row of numbers and a label per stimulus. List_Database: files listed in a text file with their labels."""

from __future__ import annotations

import csv
from array import array
from pathlib import Path

import numpy as np

from n2d2py.data.database.base import PARTITION_KEYS, ArrayItems, Context, Database, FileItems, data_path, register
from n2d2py.data.text import label_ids, parse_lines, read_lines, split_name_and_label
from n2d2py.errors import Location, N2D2Error
from n2d2py.ini import REQUIRED, Key, Kind, Values

_SEPARATORS = ",;\t"


def read_table(path: Path, *, label_column: int = -1, header_lines: int = 0) -> tuple[np.ndarray, list[str]]:
    """Return the values of a table, float32 (rows, columns without the label), and the label texts.

    The separator is the comma, semicolon or tab of the first row, else blanks.

    Raises: E401, E402 unreadable, E410 rows of different length or values that are not numbers, E416 no rows.
    """
    values = array("f")
    separator, columns = None, 0

    def parse(line: str, where: Location) -> str:
        nonlocal separator, columns
        if separator is None:
            separator = next((one for one in _SEPARATORS if one in line), "")
        cells = next(csv.reader([line], delimiter=separator)) if separator else line.split()
        columns = columns or len(cells)
        if not -columns <= label_column < columns:
            what = f"LabelColumn={label_column} is outside rows of {columns} columns"
            remedy = "set LabelColumn to 0, 1, ..., or to -1 for the last column"
            raise N2D2Error("E410", what, where=where, remedy=remedy)
        try:
            if len(cells) != columns:
                raise ValueError(f"a row of {len(cells)} columns, the first one has {columns}")
            label = cells.pop(label_column).strip()
            values.extend(float(cell) for cell in cells)
        except ValueError as error:
            remedy = "correct NbHeaderLines, LabelColumn or this row"
            raise N2D2Error("E410", str(error), where=where, remedy=remedy) from None
        return label

    labels = parse_lines(path, parse, skip=header_lines)
    if not labels:
        raise N2D2Error("E416", f"{path} contains no row", remedy="correct the file or NbHeaderLines")
    return np.frombuffer(values, np.float32).reshape(len(labels), columns - 1), labels


@register(
    "CSV_Database",
    Key("DataPath", Kind.PATH, REQUIRED, "The table in CSV format."),
    *PARTITION_KEYS,
    Key("LabelColumn", Kind.INT, -1, "Column of the label, counted from 0; negative values count from the last column."),
    Key("NbHeaderLines", Kind.UINT, 0, "Number of lines before the first row."),
    Key("LoadMore", Kind.STRING, "", "Another section with such keys whose rows are added."),
    Key("Learn", Kind.FLOAT, 0.6, "Learning set: fraction of the rows."),
    Key("Validation", Kind.FLOAT, 0.2, "Validation set: fraction of the rows."),
    doc="A table in which each row is a stimulus, a vector. If all labels are integers, they are label ids. Otherwise, ids "
    "follow the order of first appearance.",
)
def _load(values: Values, context: Context) -> Database:
    chain = context.load_more(values)
    paths = [data_path(one, folder=False) for one in chain]
    tables = [
        read_table(path, label_column=one["LabelColumn"], header_lines=one["NbHeaderLines"])
        for path, one in zip(paths, chain, strict=True)
    ]
    ids, names = label_ids([text for _, labels in tables for text in labels])
    parts = []
    for path, (rows, _), one in zip(paths, tables, chain, strict=True):
        own, ids = np.array(ids[: len(rows)]), ids[len(rows) :]
        sets = context.split(own, one, str(path))
        parts.append(Database(ArrayItems(path.name, rows), own, sets=sets))
    return Database.join(parts, names)


def _read_list(path: Path, folder: Path) -> tuple[list[str], list[str]]:
    def parse(line: str, where: Location) -> tuple[str, str]:
        parts = split_name_and_label(line)
        if parts is None:
            what = f"line '{line}' is not 'file label'"
            raise N2D2Error("E410", what, where=where, remedy="write a file, a blank and a label")
        if not (folder / parts[0]).is_file():
            what = f"{parts[0]} does not exist in {folder}"
            raise N2D2Error("E401", what, where=where, remedy="correct DataPath or the list")
        return parts

    rows = parse_lines(path, parse, comment="#")
    if not rows:
        raise N2D2Error("E416", f"{path} lists no stimulus", remedy="add lines 'file label'")
    return [file for file, _ in rows], [text for _, text in rows]


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
def _load_listed(values: Values, context: Context) -> Database:
    folder = data_path(values, folder=True)
    lists, named, validating = (
        data_path(values, key, folder=False) if values[key] else None
        for key in ("LabelPath", "LabelNamesPath", "ValidationPath")
    )
    assert lists is not None
    files, texts = _read_list(lists, folder)
    more, more_texts = _read_list(validating, folder) if validating else ([], [])
    ids, names = label_ids(texts + more_texts)
    if named is not None:
        given = tuple(line for _, line in read_lines(named))
        if len(given) < len(names):
            what = f"{named} contains {len(given)} names, but the lists contain label {len(names) - 1}"
            raise N2D2Error("E410", what, remedy="add a name for every label")
        names = given
    split = context.split(np.array(ids[: len(files)]), values, str(lists))
    split["Validation"] = np.concatenate([split["Validation"], np.arange(len(files), len(files) + len(more))])
    return Database(FileItems(folder, files + more), np.array(ids), names, split)
