"""Steps on a database: [database.filterROIs] and [database.sortAndDropLabels] select labels, [database.slicing] cuts images
into tiles.

A tile is a stimulus with the label of its image.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.data.database.base import SETS, Database, Items, listing_order
from n2d2py.data.decode import PICTURES, picture_size
from n2d2py.data.transformations.base import APPLY_TO, reported
from n2d2py.data.transformations.values import label_id
from n2d2py.ini import Key, Kind, Schema, Values

_FILTER_ROIS = Schema(
    "database.filterROIs",
    (
        Key("Labels", Kind.STRINGS, doc="Names of database labels."),
        Key("FilterKeep", Kind.BOOL, True, "1: keep these labels. 0: leave them out."),
        Key("RemoveStimuli", Kind.BOOL, True, "1: remove the stimuli of the other labels. 0: keep them without a label."),
    ),
    doc="Select stimuli by label. A stimulus is a whole image, or a region cropped by ExtractROIs.",
)

_SORT_AND_DROP = Schema(
    "database.sortAndDropLabels",
    (
        Key("NbKeep", Kind.UINT, doc="Number of labels to keep.", minimum=1),
        Key("Ascending", Kind.BOOL, True, "1: keep the labels with the fewest stimuli. 0: keep those with the most."),
    ),
    doc="Sort the labels by their number of stimuli and keep the first ones, with ids from 0 in that order. The stimuli of "
    "the other labels are removed.",
)


def filter_labels(database: Database, values: Values, seed: int) -> Database:
    """Return the database with the stimuli selected by [database.filterROIs]; label ids stay.

    Raises: E410 for a label that the database does not have.
    """
    with reported("", values.where("Labels"), "E410"):
        matches = np.isin(database.labels, [label_id(name, database.label_names) for name in values["Labels"]])
    mask = matches == values["FilterKeep"]
    done = "kept" if values["RemoveStimuli"] else "labelled"
    log.notice("%s: %d of %d stimuli are %s", values.section.name, int(mask.sum()), len(mask), done)
    if values["RemoveStimuli"]:
        return _keep_stimuli(database, mask)
    return replace(database, labels=np.where(mask, database.labels, -1))


def sort_and_drop_labels(database: Database, values: Values, seed: int) -> Database:
    """Return the database with the labels selected by [database.sortAndDropLabels]."""
    used = np.unique(np.concatenate([database.labels[positions] for positions in database.sets.values()]))
    count = max(int(used.max(initial=-1)) + 1, len(database.label_names))
    sizes = np.bincount(database.labels[database.labels >= 0], minlength=count)
    order = np.argsort(sizes if values["Ascending"] else -sizes, kind="stable")
    order_kept = np.sort(order[: values["NbKeep"]])
    new_ids = np.full(count + 1, -1, np.int64)  # the last entry is that of label -1
    new_ids[order_kept] = np.arange(len(order_kept))
    names = tuple(database.label_names[old] if old < len(database.label_names) else str(old) for old in order_kept)
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    log.notice("%s: %d of %d labels are kept: %s", values.section.name, len(order_kept), count, shown)
    labels = new_ids[database.labels]
    return _keep_stimuli(replace(database, labels=labels, label_names=names), labels >= 0)


def _keep_stimuli(database: Database, mask: np.ndarray) -> Database:
    """Return the database with sets of the kept stimuli only; the list of stimuli stays."""
    return replace(database, sets={name: positions[mask[positions]] for name, positions in database.sets.items()})


_SLICING = Schema(
    "database.slicing",
    (
        Key("Width", Kind.UINT, doc="Width of a tile.", minimum=1),
        Key("Height", Kind.UINT, doc="Height of a tile.", minimum=1),
        Key("StrideX", Kind.UINT, doc="Horizontal step between tiles.", minimum=1),
        Key("StrideY", Kind.UINT, doc="Vertical step between tiles.", minimum=1),
        Key("ApplyTo", Kind.ENUM, "All", "Sets whose images are cut.", tuple(APPLY_TO)),
        Key("RandomShuffle", Kind.BOOL, True, "Shuffle the tiles of a set (by -seed)."),
        Key("Overlapping", Kind.BOOL, False, "1: shift tiles at the right and bottom border into the image. 0: crop them."),
    ),
    doc="Cut images into tiles. Each tile is a stimulus with the label of its image.",
)

Tile = tuple[int, int, int, int]


def tiles(
    width: int, height: int, tile_width: int, tile_height: int, stride_x: int, stride_y: int, overlapping: bool = False
) -> list[Tile]:
    """Return x, y, width and height of the tiles of an image, column by column from the left."""
    boxes = []
    for x in range(0, width, stride_x):
        for y in range(0, height, stride_y):
            left, top = x, y
            if overlapping:
                left, top = min(x, max(width - tile_width, 0)), min(y, max(height - tile_height, 0))
            boxes.append((left, top, min(tile_width, width - left), min(tile_height, height - top)))
    return boxes


def sliced_items(items: Items, sources: Sequence[int], boxes: Sequence[Tile]) -> Items:
    """Return parts of stimuli: `sources` are their positions, `boxes` the parts; a box of width 0 is the whole stimulus."""
    names = [
        f"{items.name(source)}[{x},{y}]" if width else items.name(source)
        for source, (x, y, width, _) in zip(sources, boxes, strict=True)
    ]
    return Items(names, _cut(items.read, sources, boxes))


def _cut(read: Callable[[int], np.ndarray], sources: Sequence[int], boxes: Sequence[Tile]) -> Callable[[int], np.ndarray]:
    """Return a function that returns parts of what `read` returns: of pixels, or of their labels."""

    def part(index: int) -> np.ndarray:
        x, y, width, height = boxes[index]
        whole = read(sources[index])
        return np.ascontiguousarray(whole[y : y + height, x : x + width]) if width else whole

    return part


def slice_database(database: Database, values: Values, seed: int) -> Database:
    """Return the database with the images of selected sets cut into tiles.

    A set has the tiles of its first image, then those of the second, and so on, unless shuffled.

    Raises: E401, E402, E403 for an image whose size cannot be read, and the errors of reading.
    """
    chosen = APPLY_TO[values["ApplyTo"]]
    how = (values["Width"], values["Height"], values["StrideX"], values["StrideY"], values["Overlapping"])
    used = np.unique(np.concatenate([database.sets[name] for name in chosen]))
    progress = log.progress(used, "sizes of the images", len(used))
    found = ordered_map(lambda index: _stimulus_size(database.items, int(index)), progress)
    sizes = dict(zip(used.tolist(), found, strict=True))
    sources: list[int] = []
    boxes: list[Tile] = []
    sets = {}
    for name in SETS:
        start = len(sources)
        for index in database.sets[name].tolist():
            parts = tiles(*sizes[index], *how) if name in chosen else [(0, 0, 0, 0)]
            sources += [index] * len(parts)
            boxes += parts
        positions = np.arange(start, len(sources))
        shuffled = name in chosen and values["RandomShuffle"]
        sets[name] = positions[listing_order(len(positions), shuffled, seed)]
    log.notice("%s: %d images give %d tiles", values.section.name, len(used), sum(1 for box in boxes if box[2]))
    items = sliced_items(database.items, sources, boxes)
    maps = None if database.maps is None else _cut(database.maps, sources, boxes)
    labels = database.labels[np.array(sources, np.int64)]
    return replace(database, items=items, labels=labels, sets=sets, maps=maps)


def _stimulus_size(items: Items, index: int) -> tuple[int, int]:
    name = items.name(index)
    if items.root is not None and name.lower().endswith(PICTURES):
        return picture_size(items.root / name, name)
    height, width = items.read(index).shape[:2]
    return width, height


STEPS = ((_FILTER_ROIS, filter_labels), (_SORT_AND_DROP, sort_and_drop_labels), (_SLICING, slice_database))
"""Sections of steps on a database, in their order: the schema, and the function of the database, the values and the seed."""
