"""Random_Database: random bytes, which let a pipeline run without data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py import log
from n2d2py.data.database.base import PARTITION_KEYS, Context, Database, read_partition, register
from n2d2py.data.database.partition import partition
from n2d2py.ini import Key, Kind, Values


def random_bytes(shape: tuple[int, ...], seed: int, index: int) -> np.ndarray:
    """Return uniform bytes that depend on the seed and the index only."""
    return np.random.RandomState([seed % 2**32, index]).randint(0, 256, shape).astype(np.uint8)


@dataclass(frozen=True)
class RandomItems:
    """`count` random images (H, W, C), generated when read."""

    count: int
    shape: tuple[int, int, int]
    seed: int

    def __len__(self) -> int:
        return self.count

    def name(self, index: int) -> str:
        return f"random[{index}]"

    def read(self, index: int) -> np.ndarray:
        return random_bytes(self.shape, self.seed, index)


@register(
    "Random_Database",
    Key("Size", Kind.UINTS, (), "Size X Y C of the images. Default: the size of the network input.", minimum=1),
    Key("NbStimuli", Kind.UINT, 100, "Number of stimuli.", minimum=1, maximum=10_000_000),
    Key("NbLabels", Kind.UINT, 10, "Number of labels, assigned in turn.", minimum=1),
    *PARTITION_KEYS,
    doc="Extension of n2d2py: random bytes, generated from -seed. Use them to try an export, as scores are meaningless. "
    "By default, all stimuli are the test set.",
)
def _load(values: Values, context: Context) -> Database:
    size, count = values["Size"], values["NbStimuli"]
    if len(size) not in (0, 3):
        raise values.fail("E417", f"Size has {len(size)} numbers", "give X Y C", "Size")
    channels, height, width = (
        (size[2], size[1], size[0]) if size else context.shape if len(context.shape) == 3 else (1, 1, context.shape[0])
    )
    what = "the stimuli are random, so scores and calibration are meaningless"
    log.warning("W402", what, where=values.section.location, remedy="use real data for a real export")
    items = RandomItems(count, (height, width, channels), context.seed)
    names = tuple(map(str, range(values["NbLabels"])))
    labels = np.arange(count) % len(names)
    return Database(items, labels, names, partition(labels, read_partition(values), context.seed, values.section.location))
