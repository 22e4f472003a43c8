"""Labels of user data: from class folders, a list of images, or arrays; boxes as COCO annotations in JSON or YOLO .txt files.

The mapping from labels to outputs, the file of LabelsMapping: lines `label output`; `#` starts a comment; a label may be quoted or
contain blanks; output -1 is ignored. The label `*` means stimuli without label, `default` all labels without a line; in other
names, `*` matches any run of characters and `?` any one.
"""

import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.data import decode
from n2d2py.data.database.arrays import TARGETS, read_arrays
from n2d2py.data.database.directory import FileSelection, list_directory
from n2d2py.data.input_data import InputData, open_data
from n2d2py.errors import ErrorList, Location, N2D2Error, nearest, suggest
from n2d2py.ini import wildcard_match

_NAMES = ("file", "filename", "file_name", "path", "name", "image", "id")
_LABELS = ("label", "class", "target", "category", "y")


def read_class_names(path: Path) -> tuple[str, ...]:
    """Return the names of a network's outputs, one per line. Raises E401, E402 unreadable, E410 a duplicate name, E416 none."""
    lines: dict[str, int] = {}
    for number, line in decode.read_lines(path):
        if line in lines:
            what = f"class '{line}' is already named in line {lines[line]}"
            raise N2D2Error("E410", what, where=Location(str(path), number), remedy="name each class once")
        lines[line] = number
    if not lines:
        raise N2D2Error("E416", f"{path} contains no class name", remedy="write one name per line")
    return tuple(lines)


def labelled_data(
    data: InputData | Path | str | np.ndarray | Mapping[str, np.ndarray],
    labels: np.ndarray | Path | str | None,
    class_names: Sequence[str] = (),
    extensions: Sequence[str] = decode.PICTURES,
) -> tuple[InputData, tuple[str, ...]]:
    """Return the data with label ids, if any, and the class names.

    A folder of images, or of files with other `extensions`, is labelled by `labels`, a list of lines `name label` or boxes, or
    by its sub-folders, if all images are in two or more. Labels that are not numbers are numbered by `class_names`, else in
    sorted order.

    Raises: E401, E402 unreadable files, E410 labels that do not match, E414 arrays that do not fit.
    """
    file = Path(labels) if isinstance(labels, (str, Path)) else None
    if file is not None and file.suffix == ".npz":
        labels, file = _read_label_array(file), None
    elif file is not None and file.suffix == ".npy":
        labels, file = decode.open_npy(file), None
    source = open_data(data, None if isinstance(labels, (str, Path)) else labels)
    if source.is_folder:
        files = list_directory(source.path, {}, FileSelection(-1, label_depth=-1, valid_extensions=extensions)).files
        if source.labels is not None or not files:
            return source, tuple(class_names)
        if file is None:
            found = _labels_by_folder(files, class_names)
            return (replace(source, labels=found[0]), found[1]) if found else (source, tuple(class_names))
        if file.suffix == ".json" or file.is_dir():
            boxes, names = read_boxes(file, source.path, files, class_names)
            return replace(source, boxes=boxes), names
        labels, names = _labels_by_list(file, source.path, files, class_names)
        return replace(source, labels=labels), names
    if file is not None:
        raise N2D2Error("E410", f"{file} is not a label file for arrays", remedy="store the label ids as .npy or .npz")
    if not class_names and source.arrays is None and source.path.suffix == ".npz" and source.path.is_file():
        named = decode.open_npz(source.path).get("labels")
        if named is not None and named.dtype.kind == "U":
            return source, read_arrays(source)[2]
    return source, tuple(class_names)


def _read_label_array(path: Path) -> np.ndarray:
    arrays = decode.open_npz(path)
    keys = [key for key in TARGETS if key in arrays and arrays[key].dtype.kind != "U"]
    if not keys:
        what = f"{path} contains no labels, only {', '.join(arrays)}"
        raise N2D2Error("E410", what, remedy=f"store them as one of {', '.join(TARGETS)}")
    return arrays[keys[0]]


def _labels_by_folder(files: list[str], class_names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]] | None:
    """Return ids by the first folder of each file; None if the folders are not classes."""
    folders = [name.partition("/")[0] if "/" in name else "" for name in files]
    names_found = sorted(set(folders))
    if len(names_found) < 2:
        return None
    if not names_found[0]:
        log.notice("images next to the sub-folders, such as %s: the folders are not used as classes", files[folders.index("")])
        return None
    known = set(class_names) & set(names_found)
    if not known and all(name.isdecimal() for name in names_found):
        _warn_about_numeric_names(names_found)
    if missing := sorted(set(names_found) - known) if known else []:
        remedy = "add the name of every folder to -class-names, or rename the folder"
        raise N2D2Error("E410", _not_a_class(f"folder '{missing[0]}'", missing[0], class_names), remedy=remedy)
    if known:
        how = "folder names by the class names"
    else:
        how = "folders in sorted order, named by the class names" if class_names else "sorted folder names"
    names = tuple(class_names or names_found)
    ids = {name: names.index(name) if known else number for number, name in enumerate(names_found)}
    shown = ", ".join(f"{ids[name]} = {name}" for name in names_found[:10])
    log.notice("classes: %s%s (%s)", shown, f", ... {len(names_found)} in all" if len(names_found) > 10 else "", how)
    return np.array([ids[folder] for folder in folders], np.int64), names


def _not_a_class(what: str, name: str, class_names: Sequence[str]) -> str:
    like = nearest(name, class_names)
    return f"{what} is not in -class-names" + (f", but '{like}' is" if like else "")


def _warn_about_numeric_names(names: list[str]) -> None:
    """Warn W412 if names in text order, as torchvision's ImageFolder and Keras sort them, are not in numeric order."""
    moved = [name for name, number in zip(names, sorted(names, key=int), strict=True) if name != number]
    if moved:
        place = f"'{moved[0]}' becomes class {names.index(moved[0])}"
        what = f"the class folders have numbers as names and are sorted as text: {place}"
        remedy = "keep this order for models from torchvision or Keras; otherwise give -class-names with the numbers in the order of the outputs"
        log.warning("W412", what, remedy=remedy)


def _labels_by_list(path: Path, root: Path, files: list[str], class_names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return ids by the lines of a list; -1 for images not in the list."""
    known = _index_files(files)
    rows = _read_rows(path, known)
    if not rows:
        raise N2D2Error("E416", f"{path} lists no image", remedy="write lines 'name label'")
    texts: dict[str, tuple[int, str]] = {}
    errors: list[N2D2Error] = []
    for number, name, label in rows:
        where = Location(str(path), number)
        found = known.get(name.removeprefix("./")) or known.get(Path(name).name)
        if found is None:
            what = f"image '{name}' is missing in {root}"
            errors.append(N2D2Error("E401", what, where=where, remedy="correct the list or the folder"))
        elif texts.get(found, (number, label))[1] != label:
            what = f"{found} has label {texts[found][1]} in line {texts[found][0]}, but {label} here"
            errors.append(N2D2Error("E410", what, where=where, remedy="remove one of the lines"))
        else:
            texts[found] = (number, label)
        if len(errors) == 10:
            break
    ErrorList.raise_if(errors)
    ids, names = _assign_ids(path, texts, class_names)
    left = [name for name in files if name not in ids]
    if left:
        text = "%s: %d images have no label, the first one is %s; they are used for calibration only"
        log.notice(text, path.name, len(left), left[0])
    return np.array([ids.get(name, -1) for name in files], np.int64), names


def _read_rows(path: Path, known: Mapping[str, str]) -> list[tuple[int, str, str]]:
    """Return line number, name and label of each line; a header is skipped and determines the columns."""
    lines = list(decode.read_lines(path, comment="#"))
    if not lines:
        return []
    mark = max(",;\t", key=lines[0][1].count)

    def cells(line: str) -> Sequence[str]:
        if mark not in lines[0][1]:
            return decode.split_name_and_label(line) or ()
        return [cell.strip() for cell in next(csv.reader([line], delimiter=mark))]

    rows = [(number, line, cells(line)) for number, line in lines]
    number, _, head = rows[0]
    name, label = 0, 1
    if len(head) > 1 and _is_header(head[0], head[-1], known):
        head = [cell.lower() for cell in head]
        name, label = (next((head.index(one) for one in usual if one in head), k) for k, usual in enumerate((_NAMES, _LABELS)))
        if len(head) > 2 and not (set(head) & set(_LABELS)):
            what = f"no label column among {', '.join(head)}"
            raise N2D2Error("E410", what, where=Location(str(path), number), remedy="name the column label")
        del rows[0]
    for number, line, row in rows:
        if len(row) <= max(name, label) or not row[label]:
            what = f"line '{line}' is not 'name label'"
            raise N2D2Error("E410", what, where=Location(str(path), number), remedy="write an image, a blank and a label")
    return [(number, row[name], row[label]) for number, _, row in rows]


def _is_header(name: str, label: str, known: Mapping[str, str]) -> bool:
    return not label.isdigit() and Path(name).suffix.lower() not in decode.PICTURES + decode.SOUNDS and name not in known


def _index_files(files: list[str]) -> dict[str, str]:
    """Return each file by its path, and by its name or stem if that is unique."""
    by_name: dict[str, str] = {}
    for short in (lambda name: Path(name).name, lambda name: Path(name).stem):
        counts = Counter(map(short, files))
        by_name |= {short(name): name for name in files if counts[short(name)] == 1}
    return by_name | {name: name for name in files}


def _assign_ids(
    path: Path, texts: dict[str, tuple[int, str]], class_names: Sequence[str]
) -> tuple[dict[str, int], tuple[str, ...]]:
    labels = {label for _, label in texts.values()}
    if all(label.isascii() and label.isdigit() and len(label) < 7 for label in labels):
        return {name: int(label) for name, (_, label) in texts.items()}, tuple(class_names)
    names = tuple(class_names) or tuple(sorted(labels))
    for number, label in texts.values():
        if label not in names:
            what, where = _not_a_class(f"label '{label}'", label, names), Location(str(path), number)
            raise N2D2Error("E410", what, where=where, remedy="correct the list or -class-names")
    if not class_names:
        text = "classes: %s (sorted labels of %s)"
        log.notice(text, ", ".join(f"{k} = {name}" for k, name in enumerate(names[:10])), path.name)
    return {name: names.index(label) for name, (_, label) in texts.items()}, names


Labelled = tuple[np.ndarray | None, ...]
"""Boxes (m, 6) float64 by image: class, 1 for a crowd, left, top, right, bottom, relative to the image; None without labels."""


def read_boxes(labels: Path, root: Path, files: Sequence[str], names: Sequence[str]) -> tuple[Labelled, tuple[str, ...]]:
    """Return the boxes of the images `files` of the folder `root`, and the class names: `names`, else those of the labels.

    `labels` is a file as COCO's instances_*.json, with categories numbered by `names`, else by ascending ids; or a folder with
    a file of lines `class x y width height` (centre, relative to the image) for each image with objects.

    Raises: E401, E402 unreadable files, E410 invalid labels, or labels of other images or classes.
    """
    found, names = (_yolo if labels.is_dir() else _coco)(labels, root, files, tuple(names))
    if not any(found):
        what = f"{labels} has no label of an image in {root}"
        raise N2D2Error("E410", what, remedy="give the labels of these images")
    boxes = [np.array(rows, np.float64).reshape(-1, 6) if rows is not None else None for rows in found]
    for file, each in zip(files, boxes, strict=True):
        if each is not None and (not np.isfinite(each).all() or (names and (each[:, 0] >= len(names)).any())):
            what = f"a box of {file} is not finite, or of a class that has no name"
            raise N2D2Error("E410", what, where=str(labels), remedy="correct the labels, or -class-names")
    return tuple(boxes), names


Rows = list[list[list[float]] | None]


def _yolo(labels: Path, root: Path, files: Sequence[str], names: tuple[str, ...]) -> tuple[Rows, tuple[str, ...]]:
    found: Rows = []
    for file in files:
        places = [path for name in (file, Path(file).name) if (path := (labels / name).with_suffix(".txt")).is_file()]
        rows = []
        for number, line in decode.read_lines(places[0]) if places else ():
            try:
                label, x, y, width, height = map(float, line.split()[:5])
                rows.append([int(label), 0, x - width / 2, y - height / 2, x + width / 2, y + height / 2])
            except ValueError:
                where = Location(str(places[0]), number)
                remedy = "write the class, the centre and the size, relative to the image"
                raise N2D2Error("E410", f"line '{line}' is not 'class x y width height'", where=where, remedy=remedy) from None
        found.append(rows)
    return found, names


def _coco(labels: Path, root: Path, files: Sequence[str], names: tuple[str, ...]) -> tuple[Rows, tuple[str, ...]]:
    try:
        data = json.loads(decode.read_bytes(labels))
        kinds: dict[Any, str] = {one["id"]: str(one["name"]) for one in sorted(data["categories"], key=lambda one: one["id"])}
        numbers = {
            kind: names.index(name) if names else index
            for index, (kind, name) in enumerate(kinds.items())
            if not names or name in names
        }
        images = {one["id"]: str(one["file_name"]) for one in data["images"]}
        rows: dict[str, list[list[float]]] = {name: [] for name in images.values()}
        for one in data["annotations"]:
            x, y, width, height = map(float, one["bbox"])
            if one["category_id"] not in kinds:
                raise ValueError(f"the category {one['category_id']} is unknown")
            if one["category_id"] in numbers:
                row = [numbers[one["category_id"]], int(one.get("iscrowd", 0)), x, y, x + width, y + height]
                rows[images[one["image_id"]]].append(row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "give images, annotations and categories, as COCO's instances_*.json has them"
        raise N2D2Error("E410", f"{labels} is not a file of boxes: {error!r}", remedy=remedy) from None
    rows_found: Rows = []
    for file in files:
        own_rows = rows.get(file, rows.get(Path(file).name))
        if own_rows:
            size = decode.picture_size(root / file, file) * 2
            own_rows = [[*row[:2], *(value / side for value, side in zip(row[2:], size, strict=True))] for row in own_rows]
        rows_found.append(own_rows)
    return rows_found, names or tuple(kinds.values())


IGNORED = -1
_UNMAPPED = -2


@dataclass(frozen=True)
class LabelsMapping:
    """Output of each label id.

    Attributes:
        outputs: output by label id, -1 ignored, -2 without mapping.
        unlabelled: output of stimuli without label, -2 without mapping.
    """

    outputs: tuple[int, ...]
    unlabelled: int
    label_names: tuple[str, ...]
    file: str | None = None

    def targets(self, labels: np.ndarray) -> np.ndarray:
        """Return the output of each label id of an array (-1: no label); -1 if ignored.

        Raises: E413 if a label in the array has no output.
        """
        labels = np.asarray(labels, np.int64)
        table = np.array([*self.outputs, self.unlabelled], np.int64)
        inside = (labels >= -1) & (labels < len(self.outputs))
        targets = np.where(inside, table[np.where(inside, labels, -1)], _UNMAPPED)
        if (targets == _UNMAPPED).any():
            label = int(labels[targets == _UNMAPPED].reshape(-1)[0])
            what = f"{self._called(label)} has no output in the LabelsMapping"
            raise N2D2Error("E413", what, where=self.file, remedy="add a line for it, or a line 'default -1'")
        return targets

    def names(self, count: int) -> list[str]:
        """Return a name for each of `count` outputs: its first label and the number of others, or its number."""
        names_by_output: list[list[str]] = [[] for _ in range(count)]
        for name, output in zip(self.label_names, self.outputs, strict=True):
            if 0 <= output < count:
                names_by_output[output].append(name)
        groups = (names or [str(output)] for output, names in enumerate(names_by_output))
        return [names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "") for names in groups]

    def _called(self, label: int) -> str:
        if label < 0:
            return "a stimulus without label"
        known = label < len(self.label_names)
        return f"label '{self.label_names[label]}'" if known else f"label {label}"


def read_labels_mapping(path: Path, label_names: Sequence[str]) -> LabelsMapping:
    """Return the mapping of a file for the labels of a database (names by id).

    Raises: E401 unreadable, E412 a malformed line or a label mapped twice (an ErrorList for several).
    """
    outputs = [_UNMAPPED] * len(label_names)
    given: dict[str, int] = {}

    def parse(line: str, where: Location) -> None:
        label, output = _parse(line, where)
        _refuse_duplicate(label in given, label, where)
        given[label] = output
        if label in ("*", "default"):
            return
        matched = [id for id, name in enumerate(label_names) if name == label or wildcard_match(label, name)]
        if not matched:
            what = f"label '{label}' is not in the database"
            log.warning("W405", what, where=where, remedy=suggest(label, label_names, "remove the line"))
        for id in matched:
            _refuse_duplicate(outputs[id] != _UNMAPPED, label_names[id], where)
            outputs[id] = output

    decode.parse_lines(path, parse, comment="#")
    default = given.get("default", _UNMAPPED)
    mapped = tuple(default if one == _UNMAPPED else one for one in outputs)
    return LabelsMapping(mapped, given.get("*", _UNMAPPED), tuple(label_names), str(path))


def _parse(line: str, where: Location) -> tuple[str, int]:
    parts = line.rsplit(None, 1)
    label = parts[0].strip() if len(parts) == 2 else ""
    if len(label) > 1 and label[0] == label[-1] == '"':
        label = label[1:-1]
    if not label or '"' in label:
        what = f"line '{line}' is not 'label output'"
        raise N2D2Error("E412", what, where=where, remedy="write a label, a blank and the index of an output")
    try:
        output = int(parts[1])
    except ValueError:
        output = _UNMAPPED
    if output < IGNORED:
        what = f"'{parts[1]}' is not the index of an output"
        raise N2D2Error("E412", what, where=where, remedy="give 0 or more, or -1 to ignore the label")
    return label, output


def _refuse_duplicate(is_mapped: bool, label: str, where: Location) -> None:
    if is_mapped:
        raise N2D2Error("E412", f"label '{label}' is mapped twice", where=where, remedy="remove one of the lines")
