"""CSV_Database: one row of numbers and a label for each stimulus."""

from __future__ import annotations

import csv
from array import array
from pathlib import Path

import numpy as np

from n2d2py.data.database.base import (
    PARTITION_KEYS,
    ArrayItems,
    Context,
    Database,
    JoinedItems,
    data_path,
    load_more,
    partition_of,
    register,
)
from n2d2py.data.database.partition import SETS, Partition, partition
from n2d2py.data.text import label_ids, read_lines
from n2d2py.errors import ErrorList, Location, N2D2Error
from n2d2py.ini import REQUIRED, Key, Kind, Schema, Values

_SEPARATORS = ",;\t"


def read_table(path: Path, *, label_column: int = -1, header_lines: int = 0) -> tuple[np.ndarray, list[str]]:
    """The values of a table, float32 (rows, columns without the label's), and the labels' texts.

    The separator is the comma, semicolon or tab that the first row has, else blanks.

    Raises:
        N2D2Error: E401, E402 unreadable, E410 for rows of another length or values that are no
            numbers, E416 without rows.
    """
    values = array("f")
    labels: list[str] = []
    errors: list[N2D2Error] = []
    separator = None
    columns = 0
    for number, line in read_lines(path):
        if number <= header_lines:
            continue
        where = Location(str(path), number)
        if separator is None:
            separator = next((one for one in _SEPARATORS if one in line), "")
        cells = next(csv.reader([line], delimiter=separator)) if separator else line.split()
        columns = columns or len(cells)
        if not -columns <= label_column < columns:
            raise N2D2Error(
                "E410",
                f"LabelColumn={label_column} is outside rows of {columns} columns",
                where=where,
                remedy="set LabelColumn to 0, 1, ..., or to -1 for the last column",
            )
        try:
            if len(cells) != columns:
                raise ValueError(f"a row of {len(cells)} columns, the first one has {columns}")
            labels.append(cells.pop(label_column).strip())
            values.extend(float(cell) for cell in cells)
        except ValueError as error:
            errors.append(N2D2Error("E410", str(error), where=where, remedy="correct NbHeaderLines, LabelColumn or this row"))
            if len(errors) == 10:
                break
    ErrorList.raise_if(errors)
    if not labels:
        raise N2D2Error("E416", f"{path} contains no row", remedy="correct the file or NbHeaderLines")
    return np.frombuffer(values, np.float32).reshape(len(labels), columns - 1), labels


def csv_database(
    paths: list[Path], how: list[Partition], *, label_column: list[int], header_lines: list[int], seed: int = 0
) -> Database:
    """The rows of one or more tables, each split in its way, as vectors."""
    tables = [
        read_table(path, label_column=column, header_lines=lines)
        for path, column, lines in zip(paths, label_column, header_lines, strict=True)
    ]
    ids, names = label_ids([text for _, labels in tables for text in labels])
    sets: dict[str, list[np.ndarray]] = {name: [] for name in SETS}
    start = 0
    for path, (_, labels), one in zip(paths, tables, how, strict=True):
        split = partition(np.array(ids[start : start + len(labels)]), one, seed, str(path))
        for name in SETS:
            sets[name].append(split[name] + start)
        start += len(labels)
    items = JoinedItems([ArrayItems(path.name, values) for path, (values, _) in zip(paths, tables, strict=True)])
    return Database("CSV_Database", items, np.array(ids), names, {name: np.concatenate(found) for name, found in sets.items()})


_SCHEMA = Schema(
    "CSV_Database",
    (
        Key("DataPath", Kind.PATH, REQUIRED, "The table in CSV format."),
        *PARTITION_KEYS,
        Key("Learn", Kind.FLOAT, 0.6, "Learning set: fraction of the rows."),
        Key("Validation", Kind.FLOAT, 0.2, "Validation set: fraction of the rows."),
        Key("LabelColumn", Kind.INT, -1, "Column of the label, counted from 0; negative values count from the last column."),
        Key("NbHeaderLines", Kind.UINT, 0, "Number of lines before the first row."),
        Key("LoadMore", Kind.STRING, "", "Another section with such keys whose rows are added."),
    ),
    doc="A table in which each row is a stimulus, a vector. If all labels are integers, they are label ids. Otherwise, ids "
    "follow the order of first appearance.",
)


@register(_SCHEMA)
def _load(values: Values, context: Context) -> Database:
    chain = load_more(values, _SCHEMA, context)
    return csv_database(
        [data_path(one, context, folder=False) for one in chain],
        [partition_of(one) for one in chain],
        label_column=[one["LabelColumn"] for one in chain],
        header_lines=[one["NbHeaderLines"] for one in chain],
        seed=context.seed,
    )
