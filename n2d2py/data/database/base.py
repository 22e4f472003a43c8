"""Databases, the registry of their types, and the reading of [database]."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Protocol

import numpy as np

from n2d2py.data.arrays import to_sample_type
from n2d2py.data.database.partition import SETS, Partition, partition
from n2d2py.data.decode import as_image, read_stimulus
from n2d2py.errors import InternalError, Location, N2D2Error, suggest
from n2d2py.ini import CACHES, REQUIRED, Document, Ignored, Key, Kind, Schema, Section, Values, resolve_path
from n2d2py.registry import Registry


class Items(Protocol):
    """A list of stimuli, read on demand from several threads."""

    def __len__(self) -> int: ...

    def name(self, index: int) -> str:
        """Return the name of the stimulus in messages and result files: never an absolute path."""
        ...

    def read(self, index: int) -> np.ndarray:
        """Return the stimulus, (H, W, C); colours in the order blue, green, red."""
        ...


LabelMaps = Callable[[int], np.ndarray]
"""Return the label ids of the pixels of a stimulus, int64 (H, W), -1 for none; called from several threads."""


@dataclass(frozen=True)
class FileItems:
    """Stimuli in files of a folder; `files` are relative paths and also their names."""

    root: Path
    files: Sequence[str]

    def __len__(self) -> int:
        return len(self.files)

    def name(self, index: int) -> str:
        return self.files[index]

    def read(self, index: int) -> np.ndarray:
        return read_stimulus(self.root / self.files[index], self.files[index])


@dataclass(frozen=True)
class ArrayItems:
    """Stimuli along the first axis of an array: (N, C, H, W), (N, H, W) or (N, F).

    `order` permutes the channels (RGB to BGR: (2, 1, 0)).
    """

    title: str
    array: np.ndarray
    order: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.array)

    def name(self, index: int) -> str:
        return f"{self.title}[{index}]"

    def read(self, index: int) -> np.ndarray:
        sample = to_sample_type(self.array[index])
        return as_image(sample if self.order is None else sample[list(self.order)])


class ConcatItems:
    """Concatenation of several lists."""

    def __init__(self, parts: Sequence[Items]):
        self._parts = list(parts)
        self._ends = list(accumulate(len(part) for part in self._parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _find(self, index: int) -> tuple[Items, int]:
        part = bisect_right(self._ends, index)
        return self._parts[part], index - (self._ends[part - 1] if part else 0)

    def name(self, index: int) -> str:
        items, inner = self._find(index)
        return items.name(inner)

    def read(self, index: int) -> np.ndarray:
        items, inner = self._find(index)
        return items.read(inner)


@dataclass
class Database:
    """Stimuli with labels, split into sets.

    Attributes:
        type: name of the type in INI files; "" for the empty one.
        items: all stimuli.
        labels: label id by item, -1 for none.
        label_names: by label id.
        sets: positions in `items` by set name; a stimulus may be in several sets or in none.
        maps: pixel-wise labels by position in `items`, or None.
    """

    type: str
    items: Items
    labels: np.ndarray
    label_names: tuple[str, ...]
    sets: dict[str, np.ndarray] = field(default_factory=dict)
    maps: LabelMaps | None = None

    def __post_init__(self) -> None:
        self.labels = np.asarray(self.labels, np.int64)
        self.sets = {name: np.asarray(self.sets.get(name, ()), np.int64) for name in SETS}
        if len(self.labels) != len(self.items):
            raise InternalError(f"{len(self.items)} stimuli, {len(self.labels)} labels")

    def sizes(self) -> dict[str, int]:
        """Return the number of stimuli in each set."""
        return {name: len(positions) for name, positions in self.sets.items()}


@dataclass(frozen=True)
class Context:
    """Inputs for reading a database other than its section; `shape`: network input."""

    document: Document
    seed: int
    shape: tuple[int, ...]


Loader = Callable[[Values, Context], Database]
_SUFFIX = "_Database"
_TYPES: Registry[tuple[Schema, Loader]] = Registry("the database type")
_EVENTS = "events of spiking models are not read"
_UNSUPPORTED = {"AER_Database": (_EVENTS, "use a database of images"), "N_MNIST_Database": (_EVENTS, "use MNIST_IDX_Database")}
"""Known but unsupported types of N2D2, with the reason and an alternative."""

_REGIONS = Ignored("", "keys of image regions (ROIs)", "is for regions", "remove them: regions are not read")
_IGNORED = (
    *_REGIONS.for_keys("ROIsMargin", "ROIExtension"),
    *CACHES.for_keys("LoadInMemory"),
    Ignored("DefaultLabel", "labels", "is the label of pixels without one", "remove it", changes=True, same=("",)),
    Ignored("DataFileLabel", "labels", "decides whether files have labels", "remove it", changes=True, same=("1", "true")),
)
COMMON_KEYS = (
    Key(
        "CompositeLabel",
        Kind.ENUM,
        "Auto",
        "Combination of the labels of regions and files. Without effect, since regions are not read.",
        ("None", "Auto", "Default", "Disjoint", "Combine"),
        ignored=_REGIONS,
    ),
    Key("Type", Kind.STRING, "", "Type of the database."),
    Key("RandomPartitioning", Kind.BOOL, True, "1: draw the sets at random (by -seed). 0: take them in the order of the list."),
)
_REFUSED = (
    Key("TargetDataPath", Kind.PATH, "", "Not supported."),
    Key("MultiChannelMatch", Kind.STRING, "", "Not supported."),
    Key("MultiChannelReplace", Kind.STRINGS, (), "Not supported."),
)
_FRACTION = "fraction of the stimuli (a number of stimuli when PerLabelPartitioning=0)"


def fraction(name: str, default: object, doc: str) -> Key:
    """Return a key for a fraction of the stimuli, 0 to 1."""
    return Key(name, Kind.FLOAT, default, doc, minimum=0, maximum=1)


def flag(name: str, default: bool, doc: str) -> Key:
    """Return a key for 0 or 1."""
    return Key(name, Kind.BOOL, default, doc)


RAREST_KEYS = (
    fraction("Learn", REQUIRED, "Learning set: fraction of the images of the rarest label, which is taken of each label."),
    fraction("Validation", 0.0, "Validation set: defined like Learn. All other images are the test set."),
)
PARTITION_KEYS = (
    Key("Learn", Kind.FLOAT, 0.0, f"Learning set: {_FRACTION}."),
    Key("Validation", Kind.FLOAT, 0.0, f"Validation set: {_FRACTION}."),
    Key("Test", Kind.FLOAT, None, f"Test set: {_FRACTION}. By default, all remaining stimuli."),
    Key("PerLabelPartitioning", Kind.BOOL, True, "Apply the fractions to each label separately."),
    Key(
        "EquivLabelPartitioning",
        Kind.BOOL,
        True,
        "Take the same number of stimuli of each label for Learn and Validation, limited by the rarest label. The rest is "
        "Test.",
    ),
)


def register(name: str, *keys: Key, doc: str = "", accepted: tuple[Ignored, ...] = ()) -> Callable[[Loader], Loader]:
    """Decorate the function that loads databases of Type=`name`; `keys` are added to those of all types.

    Raises:
        InternalError: if the type is registered.
    """

    def add(loader: Loader) -> Loader:
        schema = Schema(name, (*COMMON_KEYS, *_REFUSED), _IGNORED) + Schema(name, keys, accepted, doc)
        _TYPES.add(name, (schema, loader))
        return loader

    return add


def database_schemas() -> list[Schema]:
    """Return the schemas of all types, ordered by name."""
    return [_TYPES[name][0] for name in sorted(_TYPES)]


def load(type_name: str, section: Section, context: Context) -> Database:
    """Return the database of a section of that type.

    Raises:
        N2D2Error: E404 an unknown type, E406 an unsupported key, and the errors of the type.
    """
    if type_name in _UNSUPPORTED:
        what = f"Type={type_name} is not supported: {_UNSUPPORTED[type_name][0]}"
        raise N2D2Error("E406", what, where=section.where("Type"), remedy=_UNSUPPORTED[type_name][1])
    if type_name not in _TYPES:
        known = [name.removesuffix(_SUFFIX) for name in sorted(_TYPES)]
        remedy = suggest(type_name.removesuffix(_SUFFIX), known, form=f"'{{}}{_SUFFIX}'")
        raise N2D2Error("E404", f"database type '{type_name}' is unknown", where=section.where("Type"), remedy=remedy)
    schema, loader = _TYPES[type_name]
    return loader(_read(schema, section), context)


def _read(schema: Schema, section: Section) -> Values:
    """Return the values of a section without unsupported keys."""
    values = schema.read(section)
    for key in _REFUSED:
        if schema.key(key.name) is key and values.is_given(key.name) and values[key.name] not in ("", ()):
            what = f"{key.name}={section.text(key.name)} is not supported"
            raise values.fail("E406", what, "remove it; stimuli have one set of channels and one label each", key.name)
    return values


def data_path(
    values: Values, context: Context, key: str = "DataPath", *, default: str | None = None, folder: bool | None = None
) -> Path:
    """Return the existing path of a key, by default `default` below $N2D2_DATA.

    `folder`: True or False requires a folder or a file.

    Raises:
        N2D2Error: E401 if it does not exist.
    """
    text = values[key] or (f"{_data_root(values, key)}/{default}" if default else "")
    path = resolve_path(text, context.document.folder)
    if path is None:
        remedy = f"set {key} to the path of the data: absolute, or relative to the working directory or the INI file"
        raise values.fail("E401", f"{key}={text} does not exist", remedy, key)
    if folder is not None and path.is_dir() != folder:
        what = f"{key}={text} is {'not ' if folder else ''}a folder"
        raise values.fail("E401", what, f"set {key} to a {'folder' if folder else 'file'}", key)
    return path


def _data_root(values: Values, key: str) -> str:
    from n2d2py.ini.document import read_environment_variable

    root = read_environment_variable("N2D2_DATA")
    if not root:
        what = f"{key} is missing, and N2D2_DATA is not set"
        raise values.fail("E401", what, f"add {key}=<folder>, or set the environment variable N2D2_DATA")
    return root


def load_more_chain(values: Values, context: Context) -> list[Values]:
    """Return the values of a section, of the section named by its LoadMore, and so on, all with the keys of the first type.

    Raises:
        N2D2Error: E119 a missing section, E419 a cyclic chain.
    """
    chain, visited = [values], {values.section.name}
    schema, _ = _TYPES[values["Type"].strip()]
    while chain[-1]["LoadMore"]:
        section = context.document.require(chain[-1]["LoadMore"], chain[-1].where("LoadMore"))
        if section.name in visited:
            what = f"LoadMore={section.name} names a section that is already loaded"
            raise chain[-1].fail("E419", what, "remove this LoadMore", "LoadMore")
        visited.add(section.name)
        chain.append(_read(schema, section))
    return chain


def read_partition(values: Values) -> Partition:
    """Return the partition from the keys of a section."""
    names = "Learn Validation Test RandomPartitioning PerLabelPartitioning EquivLabelPartitioning"
    return Partition(*(values[name] for name in names.split()))


def train_and_test(labels: np.ndarray, trained: int, values: Values, seed: int, **how: bool) -> dict[str, np.ndarray]:
    """Return sets: the first `trained` stimuli for learning and, by the key Validation, validation; the others for testing.

    `how`: fields of the partition of the first ones.

    Raises:
        N2D2Error: E409.
    """
    validation = values["Validation"]
    first = Partition(1 - validation, validation, 0.0, values["RandomPartitioning"], **how)
    return {**partition(labels[:trained], first, seed), "Test": np.arange(trained, len(labels))}


@dataclass(frozen=True)
class StimulusList:
    """A list of stimuli with their label ids and partition; `where`: place for messages."""

    items: Items
    labels: Sequence[int] | np.ndarray
    how: Partition
    where: Location | str | None = None


def partition_lists(
    type_name: str, parts: Sequence[StimulusList], label_names: tuple[str, ...], seed: int, maps: LabelMaps | None = None
) -> Database:
    """Return the database of concatenated lists of stimuli, each with its own partition.

    Raises:
        N2D2Error: E409.
    """
    labels = [np.asarray(part.labels, np.int64) for part in parts]
    splits = [partition(ids, part.how, seed, part.where) for ids, part in zip(labels, parts, strict=True)]
    items = parts[0].items if len(parts) == 1 else ConcatItems([part.items for part in parts])
    return Database(type_name, items, np.concatenate(labels), label_names, _concat_sets(splits, labels), maps)


def one_list(
    values: Values,
    context: Context,
    items: Items,
    labels: Sequence[int] | np.ndarray,
    names: tuple[str, ...],
    maps: LabelMaps | None = None,
    where: str | None = None,
) -> Database:
    """Return the database of stimuli that the keys of a section split; errors E409 as in `partition_lists`."""
    part = StimulusList(items, labels, read_partition(values), where or values.section.location)
    return partition_lists(values["Type"].strip(), [part], names, context.seed, maps)


def _concat_sets(splits: Sequence[Mapping[str, np.ndarray]], lists: Sequence[Sized]) -> dict[str, np.ndarray]:
    """Return the sets of concatenated lists of stimuli from the sets of each."""
    starts = list(accumulate(map(len, lists), initial=0))
    return {
        name: np.concatenate([split[name] + offset for split, offset in zip(splits, starts, strict=False)]) for name in SETS
    }


@register(
    "CompositeDatabase",
    Key(
        "Databases", Kind.STRINGS, REQUIRED, "Sections whose stimuli and sets are joined. Equal names of labels are one label."
    ),
    doc="Several databases, one after the other.",
)
def _composite(values: Values, context: Context) -> Database:
    parts: list[Database] = []
    for name in values["Databases"]:
        section = context.document.require(name, values.where("Databases"))
        kind = section.text("Type").strip() if section.has("Type") else ""
        if section.name == values.section.name or kind in ("", "CompositeDatabase"):
            what = f"Databases={name} does not name another database"
            raise values.fail("E419", what, "name sections with a Type", "Databases")
        parts.append(load(kind, section, context))
        if parts[-1].maps is not None:
            raise values.fail("E406", f"[{name}] has pixel-wise labels, which are not joined", "use one database", "Databases")
    known: dict[str, int] = {}
    labels = []
    for part in parts:
        ids = np.array([*(known.setdefault(name, len(known)) for name in part.label_names), -1])
        labels.append(ids[part.labels])
    sets = _concat_sets([part.sets for part in parts], labels)
    items = ConcatItems([part.items for part in parts])
    return Database(values["Type"].strip(), items, np.concatenate(labels), tuple(known), sets)
