"""CIFAR-10 and CIFAR-100 in their binary form: label bytes, then 3072 bytes of red, green, blue."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from n2d2py.data.database.base import ArrayItems, Context, Database, JoinedItems, data_path, register
from n2d2py.data.database.partition import Partition, partition
from n2d2py.data.text import read_lines
from n2d2py.errors import N2D2Error
from n2d2py.ini import Key, Kind, Schema, Values

_PIXELS = 3 * 32 * 32
_TO_BGR = (2, 1, 0)
_KEYS = (
    Key("DataPath", Kind.PATH, "", "Folder of the binary files. Default: a folder in $N2D2_DATA."),
    Key("Validation", Kind.FLOAT, 0.0, "Fraction of the training images used for validation.", minimum=0, maximum=1),
    Key("UseTestForValidation", Kind.BOOL, False, "Use the test images for validation, too."),
)


def cifar_database(
    folder: Path,
    *,
    learn_files: tuple[str, ...],
    test_file: str,
    names_file: str,
    label_bytes: int = 1,
    label_byte: int = 0,
    validation: float = 0.0,
    test_validates: bool = False,
    shuffle: bool = True,
    seed: int = 0,
    type_name: str = "CIFAR10_Database",
) -> Database:
    """The images of binary batches; missing learning batches leave Learn and Validation smaller.

    `label_byte` chooses among the `label_bytes` before each image.

    Raises:
        N2D2Error: E401 the test batch or the names are missing, E402 a batch is damaged.
    """
    learn = [_batch(folder / file, label_bytes, label_byte) for file in learn_files if (folder / file).is_file()]
    test = _batch(folder / test_file, label_bytes, label_byte)
    names = tuple(line for _, line in read_lines(folder / names_file))
    labels = np.concatenate([ids for _, ids in (*learn, test)])
    if len(labels) and labels.max() >= len(names):
        raise N2D2Error(
            "E402",
            f"{folder} contains label {labels.max()}, but {names_file} has {len(names)} names",
            remedy="download the data set again",
        )
    learned = len(labels) - len(test[1])
    split = partition(labels[:learned], Partition(1 - validation, validation, 0.0, shuffle, per_label=False), seed)
    split["Test"] = np.arange(learned, len(labels))
    if test_validates:
        split["Validation"] = np.concatenate([split["Validation"], split["Test"]])
    return Database(type_name, JoinedItems([items for items, _ in (*learn, test)]), labels, names, split)


def _batch(path: Path, label_bytes: int, label_byte: int) -> tuple[ArrayItems, np.ndarray]:
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


@register(Schema("CIFAR10_Database", _KEYS, doc="CIFAR-10, binary version."))
def _load_cifar10(values: Values, context: Context) -> Database:
    batches = tuple(f"data_batch_{index}.bin" for index in range(1, 6))
    return cifar_database(
        data_path(values, context, default="cifar-10-batches-bin", folder=True),
        learn_files=batches,
        test_file="test_batch.bin",
        names_file="batches.meta.txt",
        validation=values["Validation"],
        test_validates=values["UseTestForValidation"],
        shuffle=values["RandomPartitioning"],
        seed=context.seed,
    )


@register(
    Schema(
        "CIFAR100_Database",
        (*_KEYS, Key("UseCoarse", Kind.BOOL, False, "Use the 20 coarse labels.")),
        doc="CIFAR-100, binary version.",
    )
)
def _load_cifar100(values: Values, context: Context) -> Database:
    coarse = values["UseCoarse"]
    return cifar_database(
        data_path(values, context, default="cifar-100-binary", folder=True),
        learn_files=("train.bin",),
        test_file="test.bin",
        names_file="coarse_label_names.txt" if coarse else "fine_label_names.txt",
        label_bytes=2,
        label_byte=0 if coarse else 1,
        validation=values["Validation"],
        test_validates=values["UseTestForValidation"],
        shuffle=values["RandomPartitioning"],
        seed=context.seed,
        type_name="CIFAR100_Database",
    )
