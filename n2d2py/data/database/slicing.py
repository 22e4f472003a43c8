"""[database.slicing]: images cut into tiles, each a stimulus with the label of its image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.data.database.base import Database, FileItems, Items, LabelMaps
from n2d2py.data.database.partition import SETS, listing_order
from n2d2py.data.decode import PICTURES, picture_size
from n2d2py.data.transformations import APPLY_TO
from n2d2py.ini import Key, Kind, Schema, Section

SLICING = Schema(
    "database.slicing",
    (
        Key("Width", Kind.UINT, doc="Width of a tile.", minimum=1),
        Key("Height", Kind.UINT, doc="Height of a tile.", minimum=1),
        Key("StrideX", Kind.UINT, doc="Horizontal step between tiles.", minimum=1),
        Key("StrideY", Kind.UINT, doc="Vertical step between tiles.", minimum=1),
        Key("ApplyTo", Kind.ENUM, "All", "Sets whose images are cut.", tuple(APPLY_TO)),
        Key("RandomShuffle", Kind.BOOL, True, "Shuffle the tiles of a set (by -seed)."),
        Key(
            "Overlapping",
            Kind.BOOL,
            False,
            "1: shift tiles at the right and bottom border inside the image. 0: crop them at the border.",
        ),
    ),
    doc="Cut images into tiles. Each tile is a stimulus with the label of its image.",
)

Tile = tuple[int, int, int, int]


def tiles(
    width: int, height: int, tile_width: int, tile_height: int, stride_x: int, stride_y: int, overlapping: bool = False
) -> list[Tile]:
    """x, y, width and height of the tiles of an image, column by column from the left."""
    found = []
    for x in range(0, width, stride_x):
        for y in range(0, height, stride_y):
            left, top = x, y
            if overlapping:
                left, top = min(x, max(width - tile_width, 0)), min(y, max(height - tile_height, 0))
            found.append((left, top, min(tile_width, width - left), min(tile_height, height - top)))
    return found


@dataclass(frozen=True)
class SlicedItems:
    """Parts of other stimuli: `sources` are their positions, `boxes` (N, 4) x, y, width, height.

    A box of width 0 is the whole stimulus.
    """

    items: Items
    sources: np.ndarray
    boxes: np.ndarray

    def __len__(self) -> int:
        return len(self.sources)

    def name(self, index: int) -> str:
        x, y, width, _ = self.boxes[index]
        name = self.items.name(int(self.sources[index]))
        return f"{name}[{x},{y}]" if width else name

    def read(self, index: int) -> np.ndarray:
        x, y, width, height = self.boxes[index]
        image = self.items.read(int(self.sources[index]))
        return np.ascontiguousarray(image[y : y + height, x : x + width]) if width else image


@dataclass(frozen=True)
class SlicedMaps:
    """The same parts of pixel-wise labels."""

    maps: LabelMaps
    sources: np.ndarray
    boxes: np.ndarray

    def read(self, index: int) -> np.ndarray:
        x, y, width, height = self.boxes[index]
        labels = self.maps.read(int(self.sources[index]))
        return labels[y : y + height, x : x + width] if width else labels


def slice_database(database: Database, section: Section, seed: int) -> Database:
    """The database with the images of the chosen sets cut into tiles.

    A set holds the tiles of its first image, then those of the second, and so on, unless shuffled.

    Raises:
        N2D2Error: E401, E402, E403 for an image whose size cannot be read, and what reading raises.
    """
    values = SLICING.read(section)
    chosen = APPLY_TO[values["ApplyTo"]]
    how = (values["Width"], values["Height"], values["StrideX"], values["StrideY"], values["Overlapping"])
    used = np.unique(np.concatenate([database.sets[name] for name in chosen]))
    sizes = dict(
        zip(
            used.tolist(),
            ordered_map(lambda index: _size(database.items, int(index)), log.progress(used, "sizes of the images", len(used))),
            strict=True,
        )
    )
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
    log.notice("%s: %d images give %d tiles", section.name, len(used), sum(1 for box in boxes if box[2]))
    items = SlicedItems(database.items, np.array(sources, np.int64), np.array(boxes, np.int64).reshape(-1, 4))
    maps = None if database.maps is None else SlicedMaps(database.maps, items.sources, items.boxes)
    return Database(database.type, items, database.labels[items.sources], database.label_names, sets, maps)


def _size(items: Items, index: int) -> tuple[int, int]:
    """Width and height of a stimulus; of images in files without decoding them."""
    if isinstance(items, FileItems):
        path = items.root / items.files[index]
        if path.suffix.lower() in PICTURES:
            return picture_size(path, items.files[index])
    height, width = items.read(index).shape[:2]
    return width, height
