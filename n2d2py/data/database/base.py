"""Databases, the registry of their types, and the reading of [database]."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from pathlib import Path

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

    @staticmethod
    def read(values: Values, per_label: bool = True, equivalent: bool = True) -> Partition:
        """Return the partition by the keys of a section; without the key Learn, all that does not validate learns."""
        given = {"Validation": 0.0, "Test": None, "PerLabelPartitioning": per_label, "EquivLabelPartitioning": equivalent}
        given |= values.as_dict()
        learn = given.get("Learn", 1 - given["Validation"])
        names = "Validation Test RandomPartitioning PerLabelPartitioning EquivLabelPartitioning"
        return Partition(learn, *(given[name] for name in names.split()))


def partition(labels: np.ndarray, how: Partition, seed: int, where: Location | str | None = None) -> dict[str, np.ndarray]:
    """Return the positions (int64) of the stimuli of each set, for the label ids of the list.

    A stimulus is in at most one set. A shuffled set is in random order of the whole list: its first stimuli have all labels.

    Raises: E409 for parts that are negative or exceed the list.
    """
    labels = np.asarray(labels, np.int64)
    fractions = _fractions(how, len(labels), where)
    order = listing_order(len(labels), how.shuffle, seed)
    groups = [order[labels[order] == label] for label in np.unique(labels)] if how.per_label else [order]
    rarest = min((len(group) for group in groups), default=0)
    members = {name: np.zeros(len(labels), bool) for name in SETS}
    for group in groups:
        bounds = _set_bounds(*fractions, len(group), rarest if how.per_label and how.equivalent else len(group))
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


def _set_bounds(learn: float, validation: float, test: float | None, count: int, base: int) -> list[int]:
    """Return the start of each set and the end, in a group of `count`; `base` is the size of the rarest group."""
    ends = [min(_round_half_up(part * base), count) for part in (learn, learn + validation)]
    if test is None:
        last = count if learn + validation < 1 - 1e-9 else ends[1]
    elif base == count:
        last = _round_half_up((learn + validation + test) * count)
    else:
        last = ends[1] + _round_half_up(test * count)
    return [0, *ends, max(ends[1], min(last, count))]


def _fractions(how: Partition, count: int, where: Location | str | None) -> tuple[float, float, float | None]:
    """Return the fractions that learn, validate and test, None for the rest. Raises E409."""
    parts = {"Learn": how.learn, "Validation": how.validation, "Test": how.test or 0.0}
    for name, part in parts.items():
        if part < 0:
            raise N2D2Error("E409", f"{name}={part:g} is negative", where=where, remedy="give a fraction from 0 to 1")
    learn, validation, test = (part if how.per_label or part <= 1 else part / max(count, 1) for part in parts.values())
    if learn + validation + test > 1 + 1e-6:
        text = " + ".join(f"{name} ({part:g})" for name, part in parts.items() if part)
        remedy = "give fractions with a total of at most 1" + ("" if how.per_label else f", or numbers of at most {count}")
        raise N2D2Error("E409", f"{text} exceeds {1 if how.per_label else f'the {count} stimuli'}", where=where, remedy=remedy)
    return learn, validation, None if how.test is None else test


@dataclass(frozen=True, eq=False)
class Items:
    """A list of stimuli, read on demand from several threads.

    Attributes:
        names: in messages and result files, never absolute paths.
        read: returns the stimulus at a position, (H, W, C), colours in the order blue, green, red.
        root: folder of the files that have these names; None if they are not files.
    """

    names: Sequence[str]
    read: Callable[[int], np.ndarray]
    root: Path | None = None

    def __len__(self) -> int:
        return len(self.names)

    def name(self, index: int) -> str:
        """Return the name of the stimulus at a position."""
        return self.names[index]


def file_items(root: Path, files: Sequence[str]) -> Items:
    """Return the stimuli in files, relative paths from a folder."""
    return Items(files, lambda index: read_stimulus(root / files[index], files[index]), root)


def array_items(title: str, array: np.ndarray, order: Sequence[int] = ()) -> Items:
    """Return the stimuli along the first axis of an array: (N, C, H, W), (N, H, W) or (N, F).

    `order` permutes the channels (RGB to BGR: (2, 1, 0)).
    """

    def read(index: int) -> np.ndarray:
        sample = to_sample_type(array[index])
        return as_image(sample[list(order)] if order else sample)

    return Items([f"{title}[{index}]" for index in range(len(array))], read)


def concat_items(parts: Sequence[Items]) -> Items:
    """Return the stimuli of several lists, one after the other."""
    starts = list(accumulate(map(len, parts), initial=0))

    def read(index: int) -> np.ndarray:
        part = bisect_right(starts, index) - 1
        return parts[part].read(index - starts[part])

    return Items([name for part in parts for name in part.names], read)


LabelMaps = Callable[[int], np.ndarray]
"""Return the label ids of the pixels of a stimulus, int64 (H, W), -1 for none; called from several threads."""


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
        return Database(concat_items([part.items for part in parts]), labels, label_names, sets)


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
            where, how = where or how.section.location, Partition.read(how)
        return partition(np.asarray(labels), how, self.seed, where)

    def train_and_test(self, labels: np.ndarray, trained: int, values: Values, **how: bool) -> dict[str, np.ndarray]:
        """Return sets: the first `trained` stimuli learn and, by the key Validation, validate; the others test.

        `how`: fields of the partition of the first ones.
        """
        return {**self.split(labels[:trained], Partition.read(values, **how)), "Test": np.arange(trained, len(labels))}

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
_TABLES = "its tables are not read", "use DIR_Database or List_Database"
_UNSUPPORTED = {
    "AER_Database": (_EVENTS, "use a database of images"),
    "N_MNIST_Database": (_EVENTS, "use MNIST_IDX_Database"),
    **{f"{name}_Database": _TABLES for name in ("CKP", "Daimler", "IMDBWIKI", "LITISRouen")},
}
"""Known but unsupported types of N2D2, with the reason and an alternative."""

_REGIONS = Ignored("", "keys of image regions (ROIs)", "is for regions", "remove them: regions are not read")
_IGNORED = (
    *_REGIONS.for_keys("ROIsMargin", "ROIExtension"),
    *CACHES.for_keys("LoadInMemory"),
    Ignored("DefaultLabel", "labels", "is the label of pixels without one", "remove it", changes=True, same=("",)),
    Ignored("DataFileLabel", "labels", "decides whether files have labels", "remove it", changes=True, same=("1", "true")),
)
_COMPOSITES = ("None", "Auto", "Default", "Disjoint", "Combine")
COMMON_KEYS = (
    Key("CompositeLabel", Kind.ENUM, "Auto", "Without effect: regions are not read.", _COMPOSITES, ignored=_REGIONS),
    Key("Type", Kind.STRING, "", "Type of the database."),
    Key("RandomPartitioning", Kind.BOOL, True, "1: draw the sets at random (by -seed). 0: take them in the order of the list."),
)
_REFUSED = (
    Key("TargetDataPath", Kind.PATH, "", "Not supported."),
    Key("MultiChannelMatch", Kind.STRING, "", "Not supported."),
    Key("MultiChannelReplace", Kind.STRINGS, (), "Not supported."),
    Key("ROIFile", Kind.PATH, "", "Not supported."),
    Key("ROIDir", Kind.PATH, "", "Not supported."),
)
_FRACTION = "fraction of the stimuli (a number of stimuli when PerLabelPartitioning=0)"


def fraction(name: str, default: object, doc: str) -> Key:
    """Return a key for a fraction of the stimuli, 0 to 1."""
    return Key(name, Kind.FLOAT, default, doc, minimum=0, maximum=1)


def fraction_keys(learn: object, validation: float = 0.0) -> tuple[Key, Key]:
    """Return the keys Learn and Validation, with these defaults."""
    doc = "set: fraction of the stimuli."
    return fraction("Learn", learn, f"Learning {doc}"), fraction("Validation", validation, f"Validation {doc}")


RAREST_KEYS = (
    fraction("Learn", REQUIRED, "Learning set: fraction of the images of the rarest label, which is taken of each label."),
    fraction("Validation", 0.0, "Validation set: defined like Learn. All other images are the test set."),
)
PARTITION_KEYS = (
    Key("Learn", Kind.FLOAT, 0.0, f"Learning set: {_FRACTION}."),
    Key("Validation", Kind.FLOAT, 0.0, f"Validation set: {_FRACTION}."),
    Key("Test", Kind.FLOAT, None, f"Test set: {_FRACTION}. By default, all remaining stimuli."),
    Key("PerLabelPartitioning", Kind.BOOL, True, "Apply the fractions to each label separately."),
    Key("EquivLabelPartitioning", Kind.BOOL, True, "Learn and validate equally many stimuli of each label, as the rarest has."),
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
    Key("Databases", Kind.STRINGS, REQUIRED, "Sections whose stimuli are joined. Equal names of labels are one label."),
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
