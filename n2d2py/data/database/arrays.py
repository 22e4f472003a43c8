"""Databases in one file: arrays (Numpy_Database), a table (CSV_Database), a list of files (List_Database). Random_Database: random
bytes, which let a pipeline run without data."""

import csv
from array import array
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.database.base import PARTITION_KEYS, Context, Database, Items, array_items, data_path, file_items, register
from n2d2py.data.decode import check_type, number_labels, parse_lines, read_lines, split_name_and_label
from n2d2py.data.input_data import InputData
from n2d2py.errors import Location, N2D2Error
from n2d2py.ini import REQUIRED, Key, Kind, Values

_STIMULI = ("x", "X", "images", "image", "data", "inputs", "input", "x_test")
TARGETS = ("y", "Y", "targets", "target", "label", "y_test", "labels")
"""Names of label arrays in .npz files; numbers under "labels" are labels, texts are their names."""

_LARGEST_ID = 1_000_000
"""Limit of label ids: each id up to the largest one has a name."""


def check_axes(x: np.ndarray, path: Path) -> None:
    """Raise E414 unless x has images or vectors."""
    if not 2 <= x.ndim <= 4:
        raise N2D2Error("E414", f"{path}: x has {x.ndim} axes", remedy="store (N, C, H, W), (N, H, W) or (N, F)")


def read_arrays(data: InputData) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return x, label ids (-1 without y) and label names of given arrays, of an .npz, or of an .npy file with x alone.

    The stimuli are `x` or another usual key (images, data, inputs), else the only array without labels. The labels are `y` or
    another usual key (targets, labels of numbers), with ids (N, H, W) if pixel-wise; `labels` in addition to these has the
    label names.

    Raises: E401, E402 unreadable, E410 labels that are not ids, E414 arrays that do not fit.
    """
    path, arrays = data.path, data.read()
    others = [key for key in arrays if key not in TARGETS]
    usual = [key for key in _STIMULI if key in arrays]
    key = usual[0] if usual else others[0] if len(others) == 1 else None
    if key is None:
        what = f"{path} contains no array x, only {', '.join(arrays)}"
        raise N2D2Error("E414", what, remedy="store the stimuli as x and the labels as y")
    x = arrays[key]
    check_type(x, path.name)
    if not x.ndim:
        raise N2D2Error("E414", f"{path}: {key} is a single number", remedy="add a first axis for the stimuli")
    target = next(
        (key for key in TARGETS if key in arrays and not (key == "labels" and arrays[key].dtype.kind not in "biuf")), None
    )
    if target is None:
        return x, np.full(len(x), -1, np.int64), ()
    labels = label_ids(arrays[target], x, path)
    count = int(labels.max(initial=-1)) + 1
    ids = arrays["labels"] if target != "labels" and "labels" in arrays else np.arange(count)
    names = tuple(str(name) for name in ids.reshape(-1))
    if len(names) < count:
        what = f"{path}: labels contains {len(names)} names, but y contains label {count - 1}"
        raise N2D2Error("E410", what, remedy="add a name for every label, or remove labels")
    return x, labels, names


def label_ids(y: np.ndarray, x: np.ndarray, path: Path) -> np.ndarray:
    """Return label ids (N,), or (N, H, W) if y has one for each pixel of x."""
    count = len(x)
    pixels = x.ndim > 2 and y.shape in ((count, *x.shape[-2:]), (count, 1, *x.shape[-2:]))
    if len(y) != count or (y.size != count and not pixels):
        what = f"{path}: y has shape {'x'.join(map(str, y.shape))} for {count} stimuli"
        raise N2D2Error("E414", what, remedy="store one label id per stimulus, or one per pixel")
    wanted = y.reshape(-1) if y.size == count else y.reshape(count, *x.shape[-2:])
    with np.errstate(invalid="ignore"):
        ids = wanted.astype(np.int64) if y.dtype.kind in "biuf" else np.full(wanted.shape, -2)
    if not np.array_equal(ids, wanted) or ids.min(initial=0) < -1 or ids.max(initial=0) > _LARGEST_ID:
        what = f"{path}: y contains values that are not label ids up to {_LARGEST_ID:,}"
        raise N2D2Error("E410", what, remedy="store integers from 0, or -1 for unlabelled")
    if ids.ndim > 1 and y.dtype == np.uint8:
        ids[ids == 255] = -1
    return ids


@register(
    "Numpy_Database",
    Key("DataPath", Kind.PATH, REQUIRED, "An .npz file with the arrays x and y, or a .npy file with x alone."),
    *PARTITION_KEYS,
    doc="Extension of n2d2py: stimuli in an array, x of shape (N, C, H, W), (N, H, W) or (N, F) and y of shape (N,) or, for "
    "pixel-wise labels, (N, H, W) (-1 or, in bytes, 255: unlabelled). Color images have the channel order blue, green, red. Integers are "
    "divided by 255 unless a transformation converts them to float. By default, all stimuli are the test set.",
)
def _numpy(values: Values, context: Context) -> Database:
    path = data_path(values, folder=False)
    x, labels, names = read_arrays(InputData(path))
    check_axes(x, path)
    maps = None
    if labels.ndim > 1:
        pixels, labels = labels, np.full(len(x), -1)
        maps = pixels.__getitem__
    sets = context.split(labels, values, str(path))
    return Database(array_items(path.name, x), labels, names, sets, maps)


def random_bytes(shape: tuple[int, ...], seed: int, index: int) -> np.ndarray:
    """Return uniform bytes that depend on the seed and the index only."""
    return np.random.RandomState([seed % 2**32, index]).randint(0, 256, shape).astype(np.uint8)


@register(
    "Random_Database",
    Key("Size", Kind.UINTS, (), "Size X Y C of the images. Default: the size of the network input.", minimum=1),
    Key("NbStimuli", Kind.UINT, 100, "Number of stimuli.", minimum=1, maximum=10_000_000),
    Key("NbLabels", Kind.UINT, 10, "Number of labels, assigned in turn.", minimum=1),
    *PARTITION_KEYS,
    doc="Extension of n2d2py: random bytes, generated from -seed. Use them to try an export, as scores are meaningless. "
    "By default, all stimuli are the test set.",
)
def _random(values: Values, context: Context) -> Database:
    size, count = values["Size"], values["NbStimuli"]
    if len(size) not in (0, 3):
        raise values.fail("E417", f"Size has {len(size)} numbers", "give X Y C", "Size")
    channels, height, width = (
        (size[2], size[1], size[0]) if size else context.shape if len(context.shape) == 3 else (1, 1, context.shape[0])
    )
    what = "the stimuli are random, so scores and calibration are meaningless"
    log.warning("W402", what, where=values.section.location, remedy="use real data for a real export")
    shape = (height, width, channels)
    items = Items([f"random[{index}]" for index in range(count)], lambda index: random_bytes(shape, context.seed, index))
    names = tuple(map(str, range(values["NbLabels"])))
    labels = np.arange(count) % len(names)
    return Database(items, labels, names, context.split(labels, values))


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
    ids, names = number_labels([text for _, labels in tables for text in labels])
    parts = []
    for path, (rows, _), one in zip(paths, tables, chain, strict=True):
        own, ids = np.array(ids[: len(rows)]), ids[len(rows) :]
        sets = context.split(own, one, str(path))
        parts.append(Database(array_items(path.name, rows), own, sets=sets))
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
    ids, names = number_labels(texts + more_texts)
    if named is not None:
        given = tuple(line for _, line in read_lines(named))
        if len(given) < len(names):
            what = f"{named} contains {len(given)} names, but the lists contain label {len(names) - 1}"
            raise N2D2Error("E410", what, remedy="add a name for every label")
        names = given
    split = context.split(np.array(ids[: len(files)]), values, str(lists))
    split["Validation"] = np.concatenate([split["Validation"], np.arange(len(files), len(files) + len(more))])
    return Database(file_items(folder, files + more), np.array(ids), names, split)
