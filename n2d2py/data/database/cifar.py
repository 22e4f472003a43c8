"""CIFAR-10 and CIFAR-100 in their binary form: label bytes, then 3072 bytes of red, green, blue."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from n2d2py.data.database.base import ArrayItems, Context, Database, JoinedItems, data_path, fraction, register
from n2d2py.data.database.partition import Partition, partition
from n2d2py.data.text import read_lines
from n2d2py.errors import N2D2Error
from n2d2py.ini import Key, Kind, Values

_PIXELS = 3 * 32 * 32
_TO_BGR = (2, 1, 0)
_KEYS = (
    Key("DataPath", Kind.PATH, "", "Folder of the binary files. Default: a folder in $N2D2_DATA."),
    fraction("Validation", 0.0, "Fraction of the training images used for validation."),
    Key("UseTestForValidation", Kind.BOOL, False, "Use the test images for validation, too."),
)


def _load(default: str, learned: tuple[str, ...], tested: str, values: Values, context: Context) -> Database:
    """The images of binary batches; missing learning batches leave Learn and Validation smaller.

    Raises:
        N2D2Error: E401 the test batch or the names are missing, E402 a batch is damaged.
    """
    folder = data_path(values, context, default=default, folder=True)
    names_file, label_bytes, label_byte = "batches.meta.txt", 1, 0
    if "UseCoarse" in values:
        names_file, label_bytes = f"{'coarse' if values['UseCoarse'] else 'fine'}_label_names.txt", 2
        label_byte = 0 if values["UseCoarse"] else 1
    present = [file for file in learned if (folder / file).is_file()]
    batches = [_batch(folder / file, label_bytes, label_byte) for file in (*present, tested)]
    names = tuple(line for _, line in read_lines(folder / names_file))
    labels = np.concatenate([ids for _, ids in batches])
    if len(labels) and labels.max() >= len(names):
        raise N2D2Error(
            "E402",
            f"{folder} contains label {labels.max()}, but {names_file} has {len(names)} names",
            remedy="download the data set again",
        )
    count, validation = len(labels) - len(batches[-1][1]), values["Validation"]
    how = Partition(1 - validation, validation, 0.0, values["RandomPartitioning"], per_label=False)
    split = partition(labels[:count], how, context.seed)
    split["Test"] = np.arange(count, len(labels))
    if values["UseTestForValidation"]:
        split["Validation"] = np.concatenate([split["Validation"], split["Test"]])
    return Database(values["Type"].strip(), JoinedItems([items for items, _ in batches]), labels, names, split)


def _batch(path: Path, label_bytes: int, label_byte: int) -> tuple[ArrayItems, np.ndarray]:
    """The images of a batch and their labels, each in byte `label_byte` of the `label_bytes` before its image."""
    try:
        size = path.stat().st_size
        record = label_bytes + _PIXELS
        if size == 0 or size % record:
            raise N2D2Error(
                "E402",
                f"{path} has {size} bytes, which is not a multiple of {record}",
                remedy="download the binary version of the data set again",
            )
        data = np.memmap(path, np.uint8, "r", shape=(size // record, record))
    except OSError as error:
        raise N2D2Error(
            "E401", f"{path} cannot be read: {error.strerror}", remedy="set DataPath to the folder of the binary version"
        ) from None
    images = data[:, label_bytes:].reshape(-1, 3, 32, 32)
    return ArrayItems(path.name, images, _TO_BGR), data[:, label_byte].astype(np.int64)


_COARSE = Key("UseCoarse", Kind.BOOL, False, "Use the 20 coarse labels.")
_BATCHES = tuple(f"data_batch_{index}.bin" for index in range(1, 6))
register("CIFAR10_Database", *_KEYS, doc="CIFAR-10, binary version.")(
    partial(_load, "cifar-10-batches-bin", _BATCHES, "test_batch.bin")
)
register("CIFAR100_Database", *_KEYS, _COARSE, doc="CIFAR-100, binary version.")(
    partial(_load, "cifar-100-binary", ("train.bin",), "test.bin")
)
