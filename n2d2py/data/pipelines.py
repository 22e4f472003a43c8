"""Sub-sections of [sp]: transformations become pipelines, StimuliData gives statistics, cached for many files."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.data.database import Database
from n2d2py.data.database.base import SETS, Items
from n2d2py.data.environment import Environment
from n2d2py.data.pipeline import Pipeline, PipelineStep
from n2d2py.data.transformations.base import APPLY_TO, read_common, read_transformation
from n2d2py.errors import ErrorList, N2D2Error, suggest
from n2d2py.files import DamagedArray, read_npz
from n2d2py.ini import Document, Ignored, Key, Kind, Schema, Section, Values

Size = Sequence[int]
MIN_CACHED = 1000
"""Number of stimuli from which on the statistics are cached."""


@dataclass(frozen=True)
class ImageStatistics:
    """Statistics of `count` images; deviations are of the whole population.

    Attributes:
        smallest, largest: width, height, channels.
        minimum, maximum, mean, deviation: of all values of all images.
        mean_data, deviation_data: of each position over the images, float64 (H, W, C); None if not requested or if sizes differ.
    """

    count: int
    smallest: Size
    largest: Size
    minimum: float
    maximum: float
    mean: float
    deviation: float
    mean_data: np.ndarray | None = None
    deviation_data: np.ndarray | None = None

    def __str__(self) -> str:
        sides = " to ".join("x".join(map(str, size)) for size in dict.fromkeys((tuple(self.smallest), tuple(self.largest))))
        values = f"values {self.minimum:g} to {self.maximum:g}, mean {self.mean:g}, standard deviation {self.deviation:g}"
        return f"{self.count} stimuli, {sides} (width, height, channels), {values}"


def compute_statistics(
    images: Iterable[np.ndarray], mean_data: bool = False, deviation_data: bool = False
) -> ImageStatistics | None:
    """Return the statistics of images (H, W, C), in one pass in float64; None without images.

    Means and sums of squared differences are merged image by image (Chan, Golub and LeVeque), which avoids cancellation for a
    large mean and a small deviation.
    """
    count, size, mean, squares = 0, 0, 0.0, 0.0
    low, high = np.inf, -np.inf
    smallest = largest = (0, 0, 0)
    moments: tuple[np.ndarray, np.ndarray] | None = None
    for image in images:
        wide = image.astype(np.float64)
        sides = (image.shape[1], image.shape[0], image.shape[2])
        smallest = tuple(map(min, smallest, sides)) if count else sides
        largest = tuple(map(max, largest, sides))
        count += 1
        low, high = min(low, float(wide.min())), max(high, float(wide.max()))
        own = float(wide.mean())
        difference, total = own - mean, size + wide.size
        squares += float(((wide - own) ** 2).sum()) + difference**2 * size * wide.size / total
        mean += difference * wide.size / total
        size = total
        if (mean_data or deviation_data) and smallest == largest:
            means, deviations = moments or (np.zeros_like(wide), np.zeros_like(wide))
            change = wide - means
            means = means + change / count
            moments = means, deviations + change * (wide - means)
    if not count:
        return None
    means, deviations = moments if moments is not None and smallest == largest else (None, None)
    deviation, means = float(np.sqrt(squares / size)), means if mean_data else None
    by_place = np.sqrt(deviations / count) if deviation_data and deviations is not None else None
    return ImageStatistics(count, smallest, largest, low, high, mean, deviation, means, by_place)


def statistics_key(items: Items, positions: np.ndarray, steps: str) -> str | None:
    """Return the cache key: names, sizes and times of the files, and the steps before; None to disable caching."""
    if items.root is None or len(positions) < MIN_CACHED:
        return None
    digest = hashlib.sha256(steps.encode(errors="surrogateescape"))
    for position in positions:
        name = items.name(int(position))
        try:
            status = (items.root / name).stat()
        except OSError:
            return None
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


def load_statistics(file: Path, key: str) -> ImageStatistics | None:
    """Return the cached statistics of this key; None if there are none, or the file is damaged or has another key."""
    try:
        stored = read_npz(file)
        if str(stored.pop("key")) != key:
            return None
        found: dict[str, Any] = {name: data if data.ndim == 3 else data.tolist() for name, data in stored.items()}
        return ImageStatistics(**found)
    except (OSError, DamagedArray, KeyError, TypeError):
        return None


def save_statistics(file: Path, key: str, statistics: ImageStatistics) -> None:
    """Write the statistics, an array for each attribute; other content of the folder stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: np.array(value) for name, value in vars(statistics).items() if value is not None}
    np.savez(file, key=np.array(key), **arrays)  # pyright: ignore[reportArgumentType]  (to NumPy's stub a name could be allow_pickle)


INFERENCE = ("Validation", "Test")

STIMULI_DATA = Schema(
    "sp.StimuliData",
    (
        Key("ApplyTo", Kind.ENUM, "All", "Sets that the statistics cover.", tuple(APPLY_TO)),
        Key("MeanData", Kind.BOOL, False, "Compute the mean of each value: `[sp.StimuliData-x]_MeanData`."),
        Key("StdDevData", Kind.BOOL, False, "Compute the standard deviation of each value: `_StdDevData`."),
        Key("LogSizeRange", Kind.BOOL, False, "Write sizeRange.dat: width, height and number of channels of each stimulus."),
        Key("LogValueRange", Kind.BOOL, False, "Write valueRange.dat: minimum and maximum of each stimulus."),
    ),
    doc="Statistics of the stimuli after the transformations above this section: `_GlobalValue.minVal`, `.maxVal`, `.mean`, "
    "`.stdDev`. Sections below refer to them, as in `FirstValue=[sp.StimuliData-x]_GlobalValue.mean`. They are computed only "
    "if a section refers to them or a file is written. Statistics of 1,000 files or more are cached in "
    "`sp.StimuliData-x/statistics.npz`. Transformations of training alone are not applied.",
)

_WHOLE = ("Transformation", "OnTheFlyTransformation")
_NEW_CHANNEL = ("ChannelTransformation", "ChannelOnTheFlyTransformation")
_ALL_CHANNELS = ("ChannelsTransformation", "ChannelsOnTheFlyTransformation")
_ATTACK = Ignored("*", "keys of adversarial attacks", "sets the attack of -testAdv", "remove the section")
_OTHERS = ("StimuliData", "Adversarial", "Target")
_LONGEST_FIRST = sorted((*_WHOLE, *_NEW_CHANNEL, *_ALL_CHANNELS, *_OTHERS), key=len, reverse=True)


@dataclass(frozen=True)
class Pipelines:
    """Content of the sub-sections of [sp].

    Attributes:
        by_set: pipelines of "Validation" and "Test", and of "Learn" if it is trained on; that may be random.
        statistics: by section of StimuliData.
        logs: lines of the files of a section, by file name.
    """

    by_set: dict[str, Pipeline]
    statistics: dict[str, ImageStatistics] = field(default_factory=dict)
    logs: dict[str, dict[str, list[str]]] = field(default_factory=dict)


def read_pipelines(
    document: Document,
    environment: Environment,
    database: Database | None = None,
    cache: Path | None = None,
    *,
    learning: bool = False,
) -> Pipelines:
    """Return the pipelines of Validation and Test, and with `learning` of Learn, and the statistics that they refer to.

    Statistics of many files are cached in the folder `cache`. Sets the automatic properties of StimuliData sections; without
    `database` there are none.

    Raises: E405, E406, E416, E417 and the errors of reading; an ErrorList for several; errors of stimuli in statistics.
    """
    sets = SETS if learning else INFERENCE
    reading = _PipelineReader(document, environment, database, cache, {name: defaultdict(list) for name in sets})
    errors: list[N2D2Error] = []
    for section in document.sections:
        if not section.name.startswith(f"{environment.section}."):
            continue
        try:
            kind = _section_kind(section, environment.section)
            if kind == "StimuliData" and not errors:
                reading.stimuli_data(section)
            elif kind in (*_WHOLE, *_NEW_CHANNEL, *_ALL_CHANNELS):
                reading.step(kind, section)
            elif kind == "Adversarial":
                Schema("sp.Adversarial", (), (_ATTACK,)).read(section)
        except N2D2Error as error:
            errors.append(error)
    ErrorList.raise_if(errors)
    return Pipelines({name: reading.pipeline(name) for name in sets}, reading.statistics, reading.logs)


def _section_kind(section: Section, prefix: str) -> str | None:
    """Return the kind of a sub-section from its name; None for one that a ConfigSection names, or with a warning."""
    name = section.name[len(prefix) + 1 :]
    for kind in _LONGEST_FIRST:
        if name.startswith(kind):
            return kind
    if section.used:
        return None
    section.mark_used()
    remedy = suggest(name.split("-")[0], _LONGEST_FIRST, f"use [{prefix}.Transformation-<name>]", form=f"[{prefix}.{{}}]")
    log.warning("W403", f"[{prefix}] has no sub-section '{name}'; it is ignored", where=section.location, remedy=remedy)
    return None


@dataclass
class _PipelineReader:
    """One pass over the sub-sections, in file order.

    Attributes:
        steps: those so far, by set, then by channel (None: the whole image) and whether they are on the fly.
        channels: number of channels so far.
        matrices: computed by StimuliData sections, by the value that refers to them.
    """

    document: Document
    environment: Environment
    database: Database | None
    cache: Path | None
    steps: dict[str, defaultdict[tuple[int | None, bool], list[PipelineStep]]]
    channels: int = 0
    matrices: dict[str, np.ndarray] = field(default_factory=dict)
    statistics: dict[str, ImageStatistics] = field(default_factory=dict)
    logs: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def pipeline(self, set_name: str) -> Pipeline:
        """Return the pipeline of a set from the sections read so far: cacheable steps first."""
        steps = self.steps[set_name]
        whole, late = steps[None, False], steps[None, True]
        if not self.channels:
            return Pipeline((*whole, *late), self.environment)
        branches = ((*steps[channel, False], *late, *steps[channel, True]) for channel in range(self.channels))
        return Pipeline(tuple(whole), self.environment, tuple(branches))

    def step(self, kind: str, section: Section) -> None:
        """Add the transformation of a section to its pipelines."""
        common = read_common(section)
        sets = [name for name in APPLY_TO[common["ApplyTo"]] if name in self.steps]
        channels = self._channels(kind, common)
        transformation = read_transformation(
            section, inference=any(name in INFERENCE for name in sets), learning="Learn" in sets
        )
        if transformation is None:
            if sets:
                what = f"[{section.name}] Type={section.text('Type')} is not implemented, and training continues without it"
                log.warning("W430", what, where=section.location, remedy="remove it, or augment the images beforehand")
            return
        step = PipelineStep(transformation.with_matrices(self.matrices), section.location)
        for name in sets:
            for channel in channels:
                self.steps[name][channel, "OnTheFly" in kind].append(step)

    def _channels(self, kind: str, common: Values) -> Sequence[int | None]:
        """Return the channels of a section, after adding a new one; None is the whole image."""
        if kind in _WHOLE:
            return (None,)
        if kind in _ALL_CHANNELS:
            if not self.channels:
                what = "the section transforms channels, but none exists so far"
                remedy = "add ChannelTransformation sections before, or use a Transformation section for the whole image"
                raise N2D2Error("E417", what, where=common.section.location, remedy=remedy)
            return range(self.channels)
        channel = self.channels if common["Channel"] is None else common["Channel"]
        if common["Channel"] is None:
            self.channels += 1
        elif channel >= self.channels:
            what = f"Channel={channel} does not exist, as there are {self.channels} channels so far"
            raise common.fail("E417", what, "remove Channel to create a new channel", "Channel")
        return (channel,)

    def stimuli_data(self, section: Section) -> None:
        """Compute the statistics of a section if they are referenced."""
        values = STIMULI_DATA.read(section)
        logs = values["LogSizeRange"] or values["LogValueRange"]
        if self.database is None or not (logs or _is_referenced(self.document, section.name)):
            log.detail("%s: nothing refers to it, not computed", section.location)
            return
        statistics = self._compute(self.database, values)
        if statistics is None:
            what = f"the sets of ApplyTo={values['ApplyTo']} contain no stimulus to compute statistics from"
            remedy = "change ApplyTo or the sets of [database], or write the numbers directly"
            raise N2D2Error("E416", what, where=section.location, remedy=remedy)
        log.notice("%s: %s", section.name, statistics)
        self.statistics[section.name] = statistics
        found = statistics.minimum, statistics.maximum, statistics.mean, statistics.deviation
        for key, value in zip("minVal maxVal mean stdDev".split(), found, strict=True):
            section.set_automatic(f"_GlobalValue.{key}", repr(value))
        for key, file, data in (
            ("_MeanData", "meanData.bin", statistics.mean_data),
            ("_StdDevData", "stdDevData.bin", statistics.deviation_data),
        ):
            if data is not None:
                section.set_automatic(key, f"{section.name}/{file}")
                self.matrices[f"{section.name}/{file}"] = data
            elif values[key[1:]]:
                what = f"{key} is undefined, as the stimuli have different sizes"
                log.warning("W406", what, where=section.location, remedy="add a RescaleTransformation before")

    def _compute(self, database: Database, values: Values) -> ImageStatistics | None:
        """Return the statistics of a section, and collect the lines of its files; without files, they may be cached."""
        files = {file: [head] for key, file, head in _LOGS if values[key]}
        sets, wanted = APPLY_TO[values["ApplyTo"]], (values["MeanData"], values["StdDevData"])
        pipelines = {name: self.pipeline("Test" if name == "Test" else "Validation") for name in sets}
        steps = [(one.steps, one.branches) for one in pipelines.values()]
        positions = np.concatenate([database.sets[name] for name in sets])
        key = None if files or self.cache is None else statistics_key(database.items, positions, f"{wanted} {steps}")
        cached = None if self.cache is None else self.cache / values.section.name / "statistics.npz"
        statistics = load_statistics(cached, key) if cached and key else None
        if statistics is not None:
            log.notice("%s: statistics of %s", values.section.name, cached)
            return statistics
        if files:
            self.logs[values.section.name] = files
        statistics = compute_statistics(_images(database, pipelines, files), *wanted)
        if cached and key and statistics is not None:
            save_statistics(cached, key, statistics)
        return statistics


_LOGS = (
    ("LogSizeRange", "sizeRange.dat", "# width height channels"),
    ("LogValueRange", "valueRange.dat", "# smallest largest"),
)


def _images(database: Database, pipelines: dict[str, Pipeline], files: dict[str, list[str]]) -> Iterator[np.ndarray]:
    """Yield the transformed images of sets, in order, and add a line for each to the files."""
    items = database.items
    for name, pipeline in pipelines.items():
        positions = database.sets[name].tolist()
        for image in ordered_map(
            lambda index, pipeline=pipeline: pipeline.transform(items.read(index), items.name(index)),
            log.progress(positions, f"statistics of {name}", len(positions)),
        ):
            if "sizeRange.dat" in files:
                files["sizeRange.dat"].append(f"{image.shape[1]} {image.shape[0]} {image.shape[2]}")
            if "valueRange.dat" in files:
                files["valueRange.dat"].append(f"{float(image.min()):.9g} {float(image.max()):.9g}")
            yield image


def _is_referenced(document: Document, name: str) -> bool:
    sections = [document.globals, *document.sections]
    return any(
        f"[{name}]" in section.raw(key)
        for section in sections
        for key in (*section.keys(), *(f"${macro}" for macro in section.macros()))
    )
