"""Numpy_Database: the arrays x and y of an .npz file. Random_Database: random bytes, which let a pipeline run without data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.data.database.base import PARTITION_KEYS, ArrayItems, Context, Database, data_path, register
from n2d2py.data.decode import check_type
from n2d2py.data.input_data import InputData
from n2d2py.errors import N2D2Error
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
    if y.dtype.kind not in "biuf":
        raise N2D2Error("E410", f"{path}: y has type {y.dtype}", remedy="store integer label ids")
    wanted = y.reshape(-1) if y.size == count else y.reshape(count, *x.shape[-2:])
    with np.errstate(invalid="ignore"):
        ids = wanted.astype(np.int64)
    if not np.array_equal(ids, wanted) or ids.min(initial=0) < -1:
        what = f"{path}: y contains values that are not label ids"
        raise N2D2Error("E410", what, remedy="store integers from 0, or -1 for unlabelled")
    if ids.max(initial=0) > _LARGEST_ID:
        what = f"{path}: y contains label id {ids.max()}, above the limit of {_LARGEST_ID:,}"
        raise N2D2Error("E410", what, remedy="number the labels from 0")
    if ids.ndim > 1 and y.dtype == np.uint8:
        ids[ids == 255] = -1
    return ids


@register(
    "Numpy_Database",
    Key(
        "DataPath",
        Kind.PATH,
        REQUIRED,
        "An .npz file with x of shape (N, C, H, W), (N, H, W) or (N, F) and y of shape (N,) or, for pixel-wise "
        "labels, (N, H, W) (-1 or, in bytes, 255: unlabelled). Or a .npy file with x alone.",
    ),
    *PARTITION_KEYS,
    doc="Extension of n2d2py: stimuli in an array. Color images have the channel order blue, green, red. Integers are "
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
    return Database(ArrayItems(path.name, x), labels, names, sets, maps)


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
def _random(values: Values, context: Context) -> Database:
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
    return Database(items, labels, names, context.split(labels, values))
