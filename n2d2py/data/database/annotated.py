"""Databases of images with annotated regions in text, JSON or images: one table of formats.

GTSDB_DIR_Database, GTSRB_DIR_Database, KITTI_Database, KITTI_Object_Database, KITTI_Road_Database, FDDB_Database, DOTA_Database,
Cityscapes_Database, CaltechPedestrian_Database

A stimulus, except of GTSRB, has no label; its pixels have the labels of the regions, where later regions cover earlier ones. Label ids follow the
order of first appearance. The formats are documented by the distributors.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from n2d2py.data.database.base import Context, Database, Partition, data_path, file_items, fraction, fraction_keys, register
from n2d2py.data.database.directory import FileSelection, list_directory
from n2d2py.data.database.selection import Tile, sliced_items
from n2d2py.data.decode import parse_lines, picture_size, read_lines, read_stimulus
from n2d2py.errors import Location, N2D2Error
from n2d2py.files import read_regular
from n2d2py.ini import REQUIRED, Key, Kind, Values

Points = Sequence[tuple[float, float]]
"""Corners (x, y) of a region, with its boundary."""
Region = tuple[str, Points | Path]
"""A label, and its corners or an image with the region in magenta."""
_MAGENTA = (255, 0, 255)
_FAR = 1e6
"""Limit of the distance of a corner from the image, in pixels."""


def region_maps(
    folder: Path,
    files: Sequence[str],
    regions: Sequence[Sequence[tuple[int, Points | Path]]],
    outside: int = -1,
    margin: int = 0,
) -> Callable[[int], np.ndarray]:
    """Return the function of pixel-wise labels from regions of images.

    Args:
        regions: (label id, corners or image) of each stimulus.
        outside: label id of pixels outside of all regions, -1 for none.
        margin: width in pixels of the unlabelled border around regions.
    """
    from PIL import Image, ImageDraw, ImageFilter

    def read(index: int) -> np.ndarray:
        width, height = picture_size(folder / files[index], files[index])
        labels = np.full((height, width), outside, np.int64)
        covered = np.zeros((height, width), bool)
        for label, shape in regions[index]:
            if isinstance(shape, Path):
                mask = (read_stimulus(shape, shape.name) == _MAGENTA).all(axis=2)
            else:
                canvas = Image.new("L", (width, height))
                ImageDraw.Draw(canvas).polygon(list(shape), fill=255)
                mask = np.asarray(canvas) > 0
            if mask.shape != labels.shape:
                raise N2D2Error("E402", f"{shape} and {files[index]} differ in size", remedy="unpack the data set again")
            labels[mask], covered = label, covered | mask
        if margin:
            around = Image.fromarray(covered.astype(np.uint8) * 255).filter(ImageFilter.MaxFilter(2 * margin + 1))
            labels[(np.asarray(around) > 0) & ~covered] = -1
        return labels

    return read


# ---- annotations ------------------------------------------------------------------------------------
def _rows(path: Path, separator: str | None = None) -> list[list[str]]:
    return [line.split(separator) for _, line in read_lines(path)]


def _polygon(points: Points) -> Points:
    """Return the corners as numbers; raise ValueError for other text."""
    corners = [(float(x), float(y)) for x, y in points]
    if len(corners) < 3 or not all(math.isfinite(value) and abs(value) < _FAR for corner in corners for value in corner):
        raise ValueError("a region has corners that are not finite, or fewer than three")
    return corners


def box(*corners: str | float) -> Points:
    """Return the corners of a box from its left, top, right and bottom edges, in pixels."""
    x, y, u, v = map(float, corners)
    return ((x, y), (u, y), (u, v), (x, v))


@lru_cache(1)
def _boxes_by_file(path: Path, separator: str | None, key: int, kind: int, first: int) -> dict[str, list[Region]]:
    """Return the boxes of a table by the cell in column `key`; labels are in column `kind`, corners from column `first` on."""
    regions: dict[str, list[Region]] = {}
    for row in _rows(path, separator):
        if row[kind] != "DontCare":
            regions.setdefault(row[key], []).append((row[kind], box(*row[first : first + 4])))
    return regions


def _gtsdb(labels: Path, file: str, values: Values) -> Iterable[Region]:
    return _boxes_by_file(labels / "gt.txt", ";", 0, 5, 1).get(file, ())


def _kitti(labels: Path, file: str, values: Values) -> Iterable[Region]:
    part, _, sequence, name = file.split("/")
    table = labels / part / "label_02" / f"{sequence}.txt"
    return _boxes_by_file(table, None, 0, 2, 6).get(str(int(name.partition(".")[0])), ()) if part == "training" else ()


def _kitti_object(labels: Path, file: str, values: Values) -> Iterable[Region]:
    part, _, name = file.split("/")
    rows = _rows(labels / part / "label_2" / f"{Path(name).stem}.txt") if part == "training" else []
    return [(row[0], box(*row[4:8])) for row in rows if row[0] != "DontCare"]


def _kitti_road(labels: Path, file: str, values: Values) -> Iterable[Region]:
    *_, part, _, name = file.split("/")
    kind, _, number = name.partition("_")
    image = labels / file.rpartition("/")[0] / ".." / "gt_image_2" / f"{kind}_road_{number}"
    return [("road", image)] if part == "training" else ()


@lru_cache(1)
def _ellipses(folder: Path) -> dict[str, list[Region]]:
    """Parse records: a name, a count, then as many lines: both radii, the angle of the first in radians, the centre."""
    regions: dict[str, list[Region]] = {}
    for path in sorted(folder.glob("FDDB-folds/*ellipseList.txt")):
        lines = iter(_rows(path))
        for (name,) in lines:
            faces = regions.setdefault(name, [])
            for _ in range(int(next(lines)[0])):
                a, b, angle, x, y = map(float, next(lines)[:5])
                c, s = math.cos(angle), math.sin(angle)
                circle = [(math.cos(k * math.pi / 32), math.sin(k * math.pi / 32)) for k in range(64)]
                faces.append(("face", [(x + a * u * c - b * v * s, y + a * u * s + b * v * c) for u, v in circle]))
    return regions


def _fddb(labels: Path, file: str, values: Values) -> Iterable[Region]:
    return _ellipses(labels).get(file.rpartition(".")[0], ())


def _dota(labels: Path, file: str, values: Values) -> Iterator[Region]:
    part, _, name = file.split("/")
    for row in _rows(labels / part / "labelTxt" / f"{Path(name).stem}.txt") if part != "test" else ():
        if ":" not in row[0]:  # imagesource, gsd
            numbers = [float(cell) for cell in row[:8]]
            yield row[8], list(zip(numbers[::2], numbers[1::2], strict=True))


def _cityscapes(labels: Path, file: str, values: Values) -> Iterator[Region]:
    kind = "gtCoarse" if values["UseCoarse"] or file.startswith("train_extra") else "gtFine"
    folder = labels / kind if (labels / kind).is_dir() else labels
    objects = json.loads(read_regular(folder / f"{file.removesuffix('leftImg8bit.png')}{kind}_polygons.json"))["objects"]
    for one in objects:
        yield one["label"].removesuffix("group") if values["SingleInstanceLabels"] else one["label"], one["polygon"]


def _caltech(labels: Path, file: str, values: Values) -> Iterator[Region]:
    known = {"person": "person", "people": "person" if values["SingleLabel"] else "people"}
    known |= {"person?": "person"} if values["IncAmbiguous"] else {}
    for row in _rows(labels / f"{file.rpartition('.')[0]}.txt"):
        if row[0] in known:
            x, y, width, height = map(float, row[1:5])
            yield known[row[0]], box(x, y, x + width, y + height)


# ---- the table of formats ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Format:
    """Patterns of images by set; those of "" are split by the keys. `labels`: default of LabelPath, below DataPath."""

    path: str
    images: dict[str, tuple[str, ...]]
    regions: Callable[[Path, str, Values], Iterable[Region]]
    keys: tuple[Key, ...] = ()
    labels: str = "."


REGION_KEYS = (
    Key("DefaultLabel", Kind.STRING, "", "Label of the pixels outside of all regions."),
    Key("ROIsMargin", Kind.UINT, 0, "Width in pixels of the border around regions that has no label.", maximum=1000),
)


def _split_patterns(images: str) -> dict[str, tuple[str, ...]]:
    return {"": (f"training/{images}",), "Test": (f"testing/{images}",)}


_FORMATS = {
    "GTSDB_DIR_Database": _Format("FullIJCNN2013", {"": ("*.ppm",)}, _gtsdb, fraction_keys(REQUIRED)),
    "KITTI_Database": _Format("KITTI", _split_patterns("image_02/*/*.png"), _kitti, fraction_keys(0.8, 0.2)),
    "KITTI_Object_Database": _Format("KITTI_Object", _split_patterns("image_2/*.png"), _kitti_object, fraction_keys(0.8, 0.2)),
    "KITTI_Road_Database": _Format("KITTI/data_road", _split_patterns("image_2/*.png"), _kitti_road, fraction_keys(0.8, 0.2)),
    "FDDB_Database": _Format("FDDB", {"": ("*/*/*/big/*.jpg",)}, _fddb, fraction_keys(REQUIRED)),
    "DOTA_Database": _Format(
        "DOTA",
        {"": ("train/images/*.png",), "Validation": ("val/images/*.png",), "Test": ("test/images/*.png",)},
        _dota,
        (
            fraction_keys(REQUIRED)[0],
            Key("LabelPath", Kind.PATH, "", "File with the names of the labels, in the order of their ids."),
        ),
    ),
    "Cityscapes_Database": _Format(
        "Cityscapes/leftImg8bit",
        {"Learn": ("train/*/*.png", "train_extra/*/*.png"), "Validation": ("val/*/*.png",), "Test": ("test/*/*.png",)},
        _cityscapes,
        (
            Key("IncTrainExtra", Kind.BOOL, False, "Learn the images of train_extra too."),
            Key("UseCoarse", Kind.BOOL, False, "Read the coarse annotations, gtCoarse."),
            Key("SingleInstanceLabels", Kind.BOOL, True, "Groups have the label of their members: cargroup is car."),
        ),
        "..",
    ),
    "CaltechPedestrian_Database": _Format(
        "CaltechPedestrians/data-USA/images",
        {"": ("set0[0-5]/*/*.jpg",), "Test": ("set0[6-9]/*/*.jpg", "set10/*/*.jpg")},
        _caltech,
        (
            fraction_keys(0.0)[1],
            Key("SingleLabel", Kind.BOOL, True, "People have the label person."),
            Key("IncAmbiguous", Kind.BOOL, False, "Regions 'person?' have the label person."),
        ),
        "../annotations",
    ),
}


def _load_format(form: _Format, values: Values, context: Context) -> Database:
    folder = data_path(values, default=form.path, folder=True)
    source = data_path(values, "LabelPath") if values["LabelPath"] else None
    names = (
        {line: index for index, (_, line) in enumerate(read_lines(source))} if source is not None and source.is_file() else {}
    )
    labels = folder / form.labels if source is None or names else source
    files: list[str] = []
    sets: dict[str, np.ndarray] = {}
    for which, patterns in form.images.items():
        used_patterns = [one for one in patterns if "extra" not in one or values["IncTrainExtra"]]
        found = sorted(path.relative_to(folder).as_posix() for one in used_patterns for path in folder.glob(one))
        sets[which] = np.arange(len(files), len(files) + len(found))
        files += found
    if not files:
        first = next(iter(form.images.values()))[0]
        raise N2D2Error("E416", f"{folder} contains no {first}", remedy="set DataPath to the unpacked data set")
    regions = []
    _boxes_by_file.cache_clear()
    _ellipses.cache_clear()
    for file in files:
        try:
            source = [(label, each) for label, each in form.regions(labels, file, values)]
            found = [(label, each if isinstance(each, Path) else _polygon(each)) for label, each in source]
        except (RecursionError, ValueError, IndexError, KeyError, TypeError, AttributeError, StopIteration, OSError) as error:
            what, remedy = f"the annotation of {file} in {labels} cannot be read: {error}", "unpack the annotations there"
            raise N2D2Error("E410", what, remedy=remedy) from None
        regions.append([(names.setdefault(str(label), len(names)), shape) for label, shape in found])
    if "" in sets:
        split = context.split(np.full(len(sets[""]), -1), Partition.read(values, per_label=False), values.section.location)
        sets = {which: np.concatenate([split[which], sets.get(which, split[which][:0])]).astype(np.int64) for which in split}
    outside = names.setdefault(values["DefaultLabel"], len(names)) if values["DefaultLabel"] else -1
    maps = region_maps(folder, files, regions, outside, values["ROIsMargin"])
    return Database(file_items(folder, files), np.full(len(files), -1), tuple(names), sets, maps)


for _name, _form in _FORMATS.items():
    _images = "; ".join(f"{which or 'split by the keys'} `{'`, `'.join(each)}`" for which, each in _form.images.items())
    register(
        _name,
        Key("DataPath", Kind.PATH, "", f"Folder of the images. Default: $N2D2_DATA/{_form.path}."),
        Key("LabelPath", Kind.PATH, "", f"Folder of the annotations. Default: {_form.labels} of DataPath."),
        *REGION_KEYS,
        *_form.keys,
        doc=f"Images whose pixels have the labels of their regions. Images: {_images}.",
    )(partial(_load_format, _form))


_TRAINING, _TEST = "Final_Training/Images", "Final_Test/Images"
_TABLE = "GT-final_test.csv"
_CORNERS = ("Roi.X1", "Roi.Y1", "Roi.X2", "Roi.Y2")
_MOST = 1_000_000
"""Limit of classes and corners."""


def _class_id(name: str, folder: Path) -> int:
    number = name.removeprefix("/")
    if not (number.isascii() and number.isdigit() and int(number) < _MOST):
        what = f"{folder / _TRAINING} contains images in '{number or '.'}', which is not a class"
        raise N2D2Error("E402", what, remedy="keep only the folders 00000, 00001, ... there")
    return int(number)


def _read_signs(table: Path, cut: bool, required: Path | None = None) -> dict[str, tuple[int, Tile]]:
    """Return the class and, with `cut`, the box of each image of a table; without it, whole images.

    Raises: E401 for a missing table, or an image that is not in the folder `required`; E410 for a missing column, class or box.
    """
    first, head = next(read_lines(table), (0, ""))
    header, corners = head.split(";"), _CORNERS if cut else ()
    if missing := [name for name in ("Filename", "ClassId", *corners) if name not in header]:
        what = f"{table} has no columns {' and '.join(missing)}"
        raise N2D2Error("E410", what, remedy="download the tables with classes from the site of the data set")

    def parse(line: str, where: Location) -> tuple[str, tuple[int, Tile]]:
        row = dict(zip(header, line.split(";"), strict=False))
        try:
            label, *box = (int(row[name]) for name in ("ClassId", *corners))
            x, y, right, bottom = box or (0, 0, -1, -1)
            tile = (x, y, right - x + 1, bottom - y + 1)
            complete = line.count(";") == len(header) - 1 and min(tile[2:]) >= cut
            if not complete or not all(0 <= number < _MOST for number in (label, *box)):
                raise ValueError
        except (KeyError, ValueError):
            what = f"'{line}' is not a line of {len(header)} columns with a class" + (" and a box" if cut else "")
            raise N2D2Error("E410", what, where=where, remedy="unpack the data set again") from None
        if required is not None and not (required / row["Filename"]).is_file():
            what = f"{row['Filename']} does not exist in {required}"
            raise N2D2Error("E401", what, where=where, remedy="unpack the data set again")
        return row["Filename"], (label, tile)

    return dict(parse_lines(table, parse, skip=first))


def _training_boxes(signs: Path, files: list[str]) -> list[Tile]:
    """Return the box of the sign in each training image, from the tables in its folder.

    Raises: as `_read_signs`, and E410 for an image without a line.
    """
    boxes: dict[str, Tile] = {}
    for folder in dict.fromkeys(file.rpartition("/")[0] for file in files):
        table = signs / _TRAINING / folder / f"GT-{folder}.csv"
        boxes |= {f"{folder}/{file}": box for file, (_, box) in _read_signs(table, True).items()}
    if without := [file for file in files if file not in boxes]:
        what = f"{len(without)} training images have no bounding box, the first one is {without[0]}"
        raise N2D2Error("E410", what, remedy="unpack the tables GT-<class>.csv again, or set ExtractROIs=0")
    return [boxes[file] for file in files]


@register(
    "GTSRB_DIR_Database",
    fraction("Validation", 0.0, "Fraction of the training images of each class used for validation."),
    Key("ExtractROIs", Kind.BOOL, False, "Crop the images to the sign with the boxes of the tables."),
    Key("DataPath", Kind.PATH, "", f"Folder with {_TRAINING}/<class>/*.ppm and {_TEST}/*.ppm. Default: $N2D2_DATA/GTSRB."),
    Key("LabelPath", Kind.PATH, "", f"Folder of {_TABLE} and {_TRAINING}/<class>/GT-<class>.csv. Default: DataPath."),
    doc="German traffic signs. The label id is the class.",
)
def _gtsrb(values: Values, context: Context) -> Database:
    folder = data_path(values, default="GTSRB", folder=True)
    tables = data_path(values, "LabelPath", folder=True) if values["LabelPath"] else folder
    cut = values["ExtractROIs"]
    known: dict[str, int] = {}
    listing = list_directory(folder / _TRAINING, known, FileSelection(valid_extensions=("ppm",)))
    if not listing.files:
        raise N2D2Error("E416", f"{folder / _TRAINING} contains no .ppm image", remedy="unpack the data set there")
    classes = {label: _class_id(name, folder) for name, label in known.items()}
    labels = [classes[label] for label in listing.labels]
    tested = _read_signs(tables / _TABLE, cut, folder / _TEST)
    all_labels = np.array(labels + [label for label, _ in tested.values()])
    names = tuple(str(number) for number in range(all_labels.max() + 1))
    split = context.train_and_test(all_labels, len(labels), values, equivalent=False)
    paths = [f"{_TRAINING}/{file}" for file in listing.files] + [f"{_TEST}/{file}" for file in tested]
    items = file_items(folder, paths)
    if cut:
        boxes = _training_boxes(tables, listing.files) + [box for _, box in tested.values()]
        items = sliced_items(items, range(len(paths)), boxes)
    return Database(items, all_labels, names, split)
