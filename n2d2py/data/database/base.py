"""Databases, the registry of their types, and the reading of [database]."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from n2d2py.data.decode import as_image, read_stimulus, to_sample_type
from n2d2py.errors import InternalError, Location, N2D2Error, suggest
from n2d2py.ini import CACHES, REQUIRED, Ignored, Key, Kind, Schema, Section, Values, resolve_path
from n2d2py.ini.document import read_environment_variable
from n2d2py.registry import Registry

SETS = ("Learn", "Validation", "Test")


@dataclass(frozen=True)
class Partition:
    """Split of a list of stimuli.

    Attributes:
        learn, validation, test: fractions if `per_label`, else counts (values up to 1 are fractions there too); `test` None is the rest.
        shuffle: draw at random, else in list order.
        per_label: split each label by these fractions.
        equivalent: with `per_label`, learn and validation have equally many stimuli of each label, the fraction of the rarest label;
            the rest tests.
    """

    learn: float = 0.0
    validation: float = 0.0
    test: float | None = None
    shuffle: bool = True
    per_label: bool = True
    equivalent: bool = True


def partition(labels: np.ndarray, how: Partition, seed: int, where: Location | str | None = None) -> dict[str, np.ndarray]:
    """Return the positions (int64) of the stimuli of each set, for the label ids of the list.

    A stimulus is in at most one set. A shuffled set is in random order of the whole list: its first stimuli have all labels.

    Raises: E409 for parts that are negative or exceed the list.
    """
    labels = np.asarray(labels, np.int64)
    _check_partition(how, len(labels), where)
    order = listing_order(len(labels), how.shuffle, seed)
    groups = [order[labels[order] == label] for label in np.unique(labels)] if how.per_label else [order]
    rarest = min((len(group) for group in groups), default=0)
    equal = how.per_label and how.equivalent
    members = {name: np.zeros(len(labels), bool) for name in SETS}
    for group in groups:
        bounds = _set_bounds(how, len(group), rarest if equal else len(group))
        for is_member, (start, stop) in zip(members.values(), pairwise(bounds), strict=True):
            is_member[group[start:stop]] = True
    return {name: order[is_member[order]] for name, is_member in members.items()}


def listing_order(count: int, shuffle: bool, seed: int) -> np.ndarray:
    """Return the positions 0 to count-1, permuted by the seed if `shuffle`."""
    if not shuffle:
        return np.arange(count, dtype=np.int64)
    # RandomState: the one generator whose stream NumPy guarantees across versions.
    return np.random.RandomState(seed % 2**32).permutation(count).astype(np.int64)


def _round_half_up(value: float) -> int:
    """Return the nearest integer, ties upwards, tolerating the error of sums of fractions."""
    return math.floor(value + 0.5 + 1e-9)


def _set_bounds(how: Partition, count: int, base: int) -> list[int]:
    """Return the start of each set and the end, in a group of `count`; `base` is the size of the rarest group."""

    def size(part: float) -> float:
        return part * base if how.per_label or part <= 1 else part

    learn = min(_round_half_up(size(how.learn)), count)
    used = min(_round_half_up(size(how.learn) + size(how.validation)), count)
    if how.test is None:
        nothing_left = how.per_label and how.learn + how.validation > 1 - 1e-9
        return [0, learn, used, used if nothing_left else count]
    whole = how.test * count if how.per_label or how.test <= 1 else how.test
    if base == count:
        end = _round_half_up(size(how.learn) + size(how.validation) + whole)
    else:
        end = used + _round_half_up(whole)
    return [0, learn, used, max(used, min(end, count))]


def _check_partition(how: Partition, count: int, where: Location | str | None) -> None:
    parts = {"Learn": how.learn, "Validation": how.validation, "Test": how.test or 0.0}
    for name, part in parts.items():
        if part < 0:
            raise N2D2Error("E409", f"{name}={part:g} is negative", where=where, remedy="give a fraction from 0 to 1")
    total = sum(parts.values())
    text = " + ".join(f"{name} ({part:g})" for name, part in parts.items() if part)
    if how.per_label and total > 1 + 1e-6:
        raise N2D2Error("E409", f"{text} exceeds 1", where=where, remedy="give fractions with a total of at most 1")
    numbers = sum(part * count if part <= 1 else part for part in parts.values())
    if not how.per_label and numbers > count + 1e-6:
        what = f"{text} exceeds the {count} stimuli"
        raise N2D2Error("E409", what, where=where, remedy=f"give numbers with a total of at most {count}, or fractions")


class Items(Protocol):
    """A list of stimuli, read on demand from several threads.

    `name`: in messages and result files, never an absolute path. `read`: (H, W, C), colours in the order blue, green, red.
    """

    def __len__(self) -> int: ...

    def name(self, index: int) -> str: ...

    def read(self, index: int) -> np.ndarray: ...


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
        self._parts = parts
        self._starts = list(accumulate(map(len, parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def _find(self, index: int) -> tuple[Items, int]:
        part = bisect_right(self._starts, index) - 1
        return self._parts[part], index - self._starts[part]

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
        labels: label id by item, -1 for none.
        sets: positions in `items` by set name; a stimulus may be in several sets or in none.
        maps: pixel-wise labels by position in `items`, or None.
        type: name of the type in INI files; "" for one that no INI file declares.
    """

    items: Items
    labels: np.ndarray
    label_names: tuple[str, ...] = ()
    sets: dict[str, np.ndarray] = field(default_factory=dict)
    maps: LabelMaps | None = None
    type: str = ""

    def __post_init__(self) -> None:
        self.labels = np.asarray(self.labels, np.int64)
        self.sets = {name: np.asarray(self.sets.get(name, ()), np.int64) for name in SETS}
        if len(self.labels) != len(self.items):
            raise InternalError(f"{len(self.items)} stimuli, {len(self.labels)} labels")

    def sizes(self) -> dict[str, int]:
        """Return the number of stimuli in each set."""
        return {name: len(positions) for name, positions in self.sets.items()}

    @staticmethod
    def join(parts: Sequence[Database], label_names: tuple[str, ...]) -> Database:
        """Return the stimuli and sets of several databases without pixel-wise labels, one after the other."""
        if len(parts) == 1:
            return replace(parts[0], label_names=label_names)
        starts = accumulate((len(part.items) for part in parts), initial=0)
        moved = [{name: each + start for name, each in part.sets.items()} for part, start in zip(parts, starts, strict=False)]
        sets = {name: np.concatenate([each[name] for each in moved]) for name in SETS}
        labels = np.concatenate([part.labels for part in parts])
        return Database(ConcatItems([part.items for part in parts]), labels, label_names, sets)


@dataclass(frozen=True)
class Context:
    """Inputs for reading a database other than its section: the seed of partitions, and the shape of the network input."""

    seed: int
    shape: tuple[int, ...]

    def split(
        self, labels: Sequence[int] | np.ndarray, how: Partition | Values, where: Location | str | None = None
    ) -> dict[str, np.ndarray]:
        """Return the sets of stimuli with these labels by a partition, or by the keys of a section. Raises E409."""
        if isinstance(how, Values):
            names = "Learn Validation Test RandomPartitioning PerLabelPartitioning EquivLabelPartitioning"
            where, how = where or how.section.location, Partition(*(how[name] for name in names.split()))
        return partition(np.asarray(labels), how, self.seed, where)

    def train_and_test(self, labels: np.ndarray, trained: int, values: Values, **how: bool) -> dict[str, np.ndarray]:
        """Return sets: the first `trained` stimuli learn and, by the key Validation, validate; the others test.

        `how`: fields of the partition of the first ones.
        """
        validation = values["Validation"]
        first = Partition(1 - validation, validation, 0.0, values["RandomPartitioning"], **how)
        return {**self.split(labels[:trained], first), "Test": np.arange(trained, len(labels))}

    @staticmethod
    def load_more(values: Values) -> list[Values]:
        """Return the values of a section, of the section named by its LoadMore, and so on, all with the keys of the first type.

        Raises: E119 a missing section, E419 a cyclic chain.
        """
        chain, visited = [values], {values.section.name}
        schema, _ = _TYPES[values["Type"].strip()]
        while chain[-1]["LoadMore"]:
            section = values.section.document.require(chain[-1]["LoadMore"], chain[-1].where("LoadMore"))
            if section.name in visited:
                what = f"LoadMore={section.name} names a section that is already loaded"
                raise chain[-1].fail("E419", what, "remove this LoadMore", "LoadMore")
            visited.add(section.name)
            chain.append(_read(schema, section))
        return chain


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

    Raises: InternalError if the type is registered.
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

    Raises: E404 an unknown type, E406 an unsupported key, and the errors of the type.
    """
    if type_name in _UNSUPPORTED:
        what = f"Type={type_name} is not supported: {_UNSUPPORTED[type_name][0]}"
        raise N2D2Error("E406", what, where=section.where("Type"), remedy=_UNSUPPORTED[type_name][1])
    if type_name not in _TYPES:
        known = [name.removesuffix(_SUFFIX) for name in sorted(_TYPES)]
        remedy = suggest(type_name.removesuffix(_SUFFIX), known, form=f"'{{}}{_SUFFIX}'")
        raise N2D2Error("E404", f"database type '{type_name}' is unknown", where=section.where("Type"), remedy=remedy)
    schema, loader = _TYPES[type_name]
    return replace(loader(_read(schema, section), context), type=type_name)


def _read(schema: Schema, section: Section) -> Values:
    values = schema.read(section)
    for key in _REFUSED:
        if schema.key(key.name) is key and values.is_given(key.name) and values[key.name] not in ("", ()):
            what = f"{key.name}={section.text(key.name)} is not supported"
            raise values.fail("E406", what, "remove it; stimuli have one set of channels and one label each", key.name)
    return values


def data_path(values: Values, key: str = "DataPath", *, default: str | None = None, folder: bool | None = None) -> Path:
    """Return the existing path of a key, by default `default` below $N2D2_DATA.

    `folder`: True or False requires a folder or a file.

    Raises: E401 if it does not exist.
    """
    text = values[key]
    if not text and default:
        root = read_environment_variable("N2D2_DATA")
        if not root:
            what = f"{key} is missing, and N2D2_DATA is not set"
            raise values.fail("E401", what, f"add {key}=<folder>, or set the environment variable N2D2_DATA")
        text = f"{root}/{default}"
    path = resolve_path(text, values.section.document.folder)
    if path is None:
        remedy = f"set {key} to the path of the data: absolute, or relative to the working directory or the INI file"
        raise values.fail("E401", f"{key}={text} does not exist", remedy, key)
    if folder is not None and path.is_dir() != folder:
        what = f"{key}={text} is {'not ' if folder else ''}a folder"
        raise values.fail("E401", what, f"set {key} to a {'folder' if folder else 'file'}", key)
    return path


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
        section = values.section.document.require(name, values.where("Databases"))
        kind = section.text("Type").strip() if section.has("Type") else ""
        if section.name == values.section.name or kind in ("", "CompositeDatabase"):
            what = f"Databases={name} does not name another database"
            raise values.fail("E419", what, "name sections with a Type", "Databases")
        parts.append(load(kind, section, context))
        if parts[-1].maps is not None:
            raise values.fail("E406", f"[{name}] has pixel-wise labels, which are not joined", "use one database", "Databases")
    known: dict[str, int] = {}
    for part in parts:
        ids = np.array([*(known.setdefault(name, len(known)) for name in part.label_names), -1])
        part.labels = ids[part.labels]
    return Database.join(parts, tuple(known))
