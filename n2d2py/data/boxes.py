"""Labelled boxes of images: COCO annotations in JSON, or a folder of YOLO .txt files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py.data.decode import picture_size
from n2d2py.data.text import read_bytes, read_lines
from n2d2py.errors import Location, N2D2Error

Labelled = tuple[np.ndarray | None, ...]
"""Boxes (m, 6) float64 by image: class, 1 for a crowd, left, top, right, bottom, relative to the image; None without labels."""


def has_boxes(labels: Path) -> bool:
    """True if the labels are boxes."""
    return labels.suffix == ".json" or labels.is_dir()


def read_boxes(labels: Path, root: Path, files: Sequence[str], names: Sequence[str]) -> tuple[Labelled, tuple[str, ...]]:
    """Return the boxes of the images `files` of the folder `root`, and the class names: `names`, else those of the labels.

    `labels` is a file as COCO's instances_*.json, with categories numbered by `names`, else by ascending ids; or a folder with
    a file of lines `class x y width height` (centre, relative to the image) for each image with objects.

    Raises:
        N2D2Error: E401, E402 unreadable files, E410 invalid labels, or labels of other images or classes.
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
        for number, line in read_lines(places[0]) if places else ():
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
        data = json.loads(read_bytes(labels))
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
            size = picture_size(root / file, file) * 2
            own_rows = [[*row[:2], *(value / side for value, side in zip(row[2:], size, strict=True))] for row in own_rows]
        rows_found.append(own_rows)
    return rows_found, names or tuple(kinds.values())
