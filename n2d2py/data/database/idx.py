"""Images in binary files: MNIST in IDX files, plain or gzipped; CIFAR-10 and CIFAR-100.

A CIFAR record has label bytes, then 3072 bytes of red, green, blue.
"""

import gzip
import zlib
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np

from n2d2py.data.database.base import PARTITION_KEYS, Context, Database, array_items, data_path, fraction, register
from n2d2py.data.decode import read_lines, unreadable_error
from n2d2py.errors import N2D2Error
from n2d2py.files import open_regular
from n2d2py.files.arrays import MAX_BYTES
from n2d2py.ini import REQUIRED, Key, Kind, Values

_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_UNSIGNED_BYTE = 8
_BLOCK = 1 << 16
"""Number of bytes read past the declared end of a compressed file, to detect excess data."""
_KEYS = (
    Key("DataPath", Kind.PATH, "", "Folder of the four IDX files, plain or .gz. Default: a folder in $N2D2_DATA."),
    fraction("Validation", 0.0, "Fraction of the training images used for validation."),
)


def _damaged_error(what: str) -> N2D2Error:
    return N2D2Error("E402", what, remedy="download it again, and check DataPath and LabelPath")


def read_idx(path: Path, axes: int | None) -> np.ndarray:
    """Return the unsigned bytes of an IDX file with `axes` axes, None for 2 to 4; plain files are memory-mapped.

    Raises: E401 unreadable, E402 not an IDX file, or of another length than declared.
    """
    packed = path.suffix == ".gz"
    try:
        with open_regular(path) as stored, gzip.open(stored) if packed else stored as file:
            shape = _read_shape(file, path, axes)
            count, header = prod(shape), 4 + 4 * len(shape)
            content = file.read(count) if packed else b""
            payload = len(content) + len(file.read(_BLOCK)) if packed else path.stat().st_size - header
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _damaged_error(f"{path} is a damaged gzip file: {error}") from None
    except OSError as error:
        raise unreadable_error(path, error) from None
    if payload != count:
        raise _damaged_error(f"{path} declares {'x'.join(map(str, shape))} = {count} bytes but contains {payload}")
    if packed or not count:
        return np.frombuffer(content, np.uint8).reshape(shape)
    return np.memmap(path, np.uint8, "r", header, shape)


def _read_shape(file: BinaryIO | gzip.GzipFile, path: Path, axes: int | None) -> tuple[int, ...]:
    start = file.read(4)
    known = len(start) == 4 and start[:3] == bytes((0, 0, _UNSIGNED_BYTE)) and start[3] in ((axes,) if axes else (2, 3, 4))
    sizes = file.read(4 * start[3]) if known else b""
    if not known or len(sizes) < 4 * start[3]:
        raise _damaged_error(f"{path} is not an IDX file of bytes with {axes or '2 to 4'} axes")
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    if prod(shape) > MAX_BYTES:
        raise _damaged_error(f"{path} declares {'x'.join(map(str, shape))} bytes, more than the limit of {MAX_BYTES:,}")
    return shape


def _load(default: str, label_names: tuple[str, ...] | None, values: Values, context: Context) -> Database:
    folder = data_path(values, default=default, folder=True)
    images, labels, tested, test_labels = (_require_file(folder, name) for name in _FILES)
    parts = [_read_pair(images, labels, 3), _read_pair(tested, test_labels, 3)]
    whole = Database.join(parts, ())
    count = int(whole.labels.max(initial=-1)) + 1
    names = label_names or tuple(str(digit) for digit in range(max(count, 10)))
    if count > len(names):
        raise _damaged_error(f"{folder} contains label {count - 1}, but there are {len(names)} labels")
    split = context.train_and_test(whole.labels, len(parts[0].items), values, per_label=False)
    return replace(whole, label_names=names, sets=split)


def _read_pair(stimuli: Path, labels: Path, axes: int | None) -> Database:
    items, ids = read_idx(stimuli, axes), read_idx(labels, 1)
    if len(items) != len(ids):
        raise _damaged_error(f"{stimuli} contains {len(items)} stimuli, but {labels} {len(ids)} labels")
    return Database(array_items(stimuli.name.removesuffix(".gz"), items), ids)


def _require_file(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    what = f"{folder} contains neither {name} nor {name}.gz"
    raise N2D2Error("E401", what, remedy=f"put {', '.join(_FILES)} there, plain or .gz")


register("MNIST_IDX_Database", *_KEYS, doc="The IDX files of MNIST, or others of the same names; label id = digit.")(
    partial(_load, "mnist", None)
)
register("Fashion_MNIST_IDX_Database", *_KEYS, doc="The IDX files of Fashion-MNIST.")(
    partial(_load, "fashion-mnist/data/fashion", _FASHION)
)


@register(
    "IDX_Database",
    Key("DataPath", Kind.PATH, REQUIRED, "IDX file of bytes with an axis of stimuli first: images or vectors; plain or .gz."),
    Key("LabelPath", Kind.PATH, REQUIRED, "IDX file with the label id of each stimulus."),
    *PARTITION_KEYS,
    doc="The stimuli of an IDX file. By default, all are the test set.",
)
def _load_one(values: Values, context: Context) -> Database:
    whole = _read_pair(data_path(values, folder=False), data_path(values, "LabelPath", folder=False), None)
    names = tuple(map(str, range(int(whole.labels.max(initial=-1)) + 1)))
    return replace(whole, label_names=names, sets=context.split(whole.labels, values))


_PIXELS = 3 * 32 * 32
_TO_BGR = (2, 1, 0)
_CIFAR_KEYS = (
    Key("DataPath", Kind.PATH, "", "Folder of the binary files. Default: a folder in $N2D2_DATA."),
    fraction("Validation", 0.0, "Fraction of the training images used for validation."),
    Key("UseTestForValidation", Kind.BOOL, False, "Use the test images for validation, too."),
)


def _load_cifar(default: str, learned: tuple[str, ...], tested: str, values: Values, context: Context) -> Database:
    folder = data_path(values, default=default, folder=True)
    names_file, label_bytes, label_byte = "batches.meta.txt", 1, 0
    if "UseCoarse" in values:
        names_file, label_bytes = f"{'coarse' if values['UseCoarse'] else 'fine'}_label_names.txt", 2
        label_byte = 0 if values["UseCoarse"] else 1
    present = [file for file in learned if (folder / file).is_file()]
    parts = [_read_batch(folder / file, label_bytes, label_byte) for file in (*present, tested)]
    whole = Database.join(parts, tuple(line for _, line in read_lines(folder / names_file)))
    if (most := whole.labels.max(initial=-1)) >= len(whole.label_names):
        raise _damaged_error(f"{folder} contains label {most}, but {names_file} has {len(whole.label_names)} names")
    split = context.train_and_test(whole.labels, len(whole.items) - len(parts[-1].items), values, per_label=False)
    if values["UseTestForValidation"]:
        split["Validation"] = np.concatenate([split["Validation"], split["Test"]])
    return replace(whole, sets=split)


def _read_batch(path: Path, label_bytes: int, label_byte: int) -> Database:
    """Return the images of a batch and their labels, each in byte `label_byte` of the `label_bytes` before its image."""
    record = label_bytes + _PIXELS
    try:
        size = path.stat().st_size
        if size == 0 or size % record:
            raise _damaged_error(f"{path} has {size} bytes, which is not a multiple of {record}")
        data = np.memmap(path, np.uint8, "r", shape=(size // record, record))
    except OSError as error:
        raise unreadable_error(path, error) from None
    images = data[:, label_bytes:].reshape(-1, 3, 32, 32)
    return Database(array_items(path.name, images, _TO_BGR), data[:, label_byte])


_COARSE = Key("UseCoarse", Kind.BOOL, False, "Use the 20 coarse labels.")
_BATCHES = tuple(f"data_batch_{index}.bin" for index in range(1, 6))
register("CIFAR10_Database", *_CIFAR_KEYS, doc="CIFAR-10, binary version.")(
    partial(_load_cifar, "cifar-10-batches-bin", _BATCHES, "test_batch.bin")
)
register("CIFAR100_Database", *_CIFAR_KEYS, _COARSE, doc="CIFAR-100, binary version.")(
    partial(_load_cifar, "cifar-100-binary", ("train.bin",), "test.bin")
)
