"""Sub-sections of [sp]: transformations become pipelines, StimuliData gives statistics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.concurrency import ordered_map
from n2d2py.data.database import Database
from n2d2py.data.database.partition import SETS
from n2d2py.data.environment import Environment
from n2d2py.data.pipeline import Pipeline, PipelineStep
from n2d2py.data.statistics import ImageStatistics, compute_statistics, load_statistics, save_statistics, statistics_key
from n2d2py.data.transformations import APPLY_TO, applies_to, read_transformation
from n2d2py.errors import ErrorList, N2D2Error, suggest
from n2d2py.ini import COVERED, Document, Ignored, Key, Kind, Schema, Section, Values

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


@dataclass
class _Steps:
    """Steps of the whole image or of one channel; cacheable ones run first."""

    cacheable: list[PipelineStep] = field(default_factory=list)
    on_the_fly: list[PipelineStep] = field(default_factory=list)

    def add(self, kind: str, step: PipelineStep) -> None:
        (self.on_the_fly if "OnTheFly" in kind else self.cacheable).append(step)


@dataclass
class _SetSteps:
    """Steps of one set, from the sections read so far."""

    whole: _Steps = field(default_factory=_Steps)
    channels: list[_Steps] = field(default_factory=list)

    def pipeline(self, environment: Environment) -> Pipeline:
        steps, branches = self.whole.cacheable + self.whole.on_the_fly, ()
        if self.channels:
            steps = self.whole.cacheable
            branches = tuple((*one.cacheable, *self.whole.on_the_fly, *one.on_the_fly) for one in self.channels)
        return Pipeline(tuple(steps), environment.shape, environment.signed, environment.where, branches, environment.levels)


@dataclass(frozen=True)
class Pipelines:
    """Content of the sub-sections of [sp]: pipelines by set, statistics by section, and the lines of a section's files by file
    name.

    The set "Learn" has the training pipeline, which may be random.
    """

    by_set: dict[str, Pipeline]
    statistics: dict[str, ImageStatistics]
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

    Raises:
        N2D2Error: E405, E406, E416, E417 and the errors of reading; an ErrorList for several; errors of stimuli in statistics.
    """
    reading = _PipelineReader(document, environment, database, cache, SETS if learning else INFERENCE)
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
    pipelines = {name: way.pipeline(environment) for name, way in reading.ways.items()}
    return Pipelines(pipelines, reading.statistics, reading.logs)


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


class _PipelineReader:
    """One pass over the sub-sections, in file order."""

    def __init__(
        self, document: Document, environment: Environment, database: Database | None, cache: Path | None, sets: tuple[str, ...]
    ):
        self.ways = {name: _SetSteps() for name in sets}
        self.statistics: dict[str, ImageStatistics] = {}
        self.logs: dict[str, dict[str, list[str]]] = {}
        self._cache = cache
        self._document = document
        self._environment = environment
        self._database = database
        self._matrices: dict[str, np.ndarray] = {}

    def step(self, kind: str, section: Section) -> None:
        """Add the transformation of a section to its pipelines."""
        sets = [name for name in applies_to(section) if name in self.ways]
        channels = self._channels(kind, section)
        transformation = read_transformation(
            section, inference=any(name in INFERENCE for name in sets), learning="Learn" in sets
        )
        if transformation is None:
            if sets:
                what = f"[{section.name}] Type={section.text('Type')} is not implemented, and training continues without it"
                log.warning("W430", what, where=section.location, remedy="remove it, or augment the images beforehand")
            return
        step = PipelineStep(transformation.with_matrices(self._matrices), section.location)
        for name in sets:
            way = self.ways[name]
            for one in [way.whole] if channels is None else [way.channels[index] for index in channels]:
                one.add(kind, step)

    def _channels(self, kind: str, section: Section) -> range | None:
        """Return the channels of a section, after adding new ones; None for the whole image."""
        count = len(self.ways["Test"].channels)
        if kind in _WHOLE:
            return None
        if kind in _ALL_CHANNELS:
            if not count:
                what = "the section transforms channels, but none exists so far"
                remedy = "add ChannelTransformation sections before, or use a Transformation section for the whole image"
                raise N2D2Error("E417", what, where=section.location, remedy=remedy)
            return range(count)
        if not section.has("Channel"):
            for way in self.ways.values():
                way.channels.append(_Steps())
            return range(count, count + 1)
        channel = Schema("channel", (_CHANNEL,), (COVERED,)).read(section)["Channel"]
        if channel >= count:
            what = f"Channel={channel} does not exist, as there are {count} channels so far"
            remedy = "remove Channel to create a new channel"
            raise N2D2Error("E417", what, where=section.where("Channel"), remedy=remedy)
        return range(channel, channel + 1)

    def stimuli_data(self, section: Section) -> None:
        """Compute the statistics of a section if they are referenced."""
        values = STIMULI_DATA.read(section)
        logs = values["LogSizeRange"] or values["LogValueRange"]
        if self._database is None or not (logs or _is_referenced(self._document, section.name)):
            log.detail("%s: nothing refers to it, not computed", section.location)
            return
        statistics = (
            self._compute_statistics(self._database, values) if logs else self._cached_statistics(self._database, values)
        )
        if statistics is None:
            what = f"the sets of ApplyTo={values['ApplyTo']} contain no stimulus to compute statistics from"
            remedy = "change ApplyTo or the sets of [database], or write the numbers directly"
            raise N2D2Error("E416", what, where=section.location, remedy=remedy)
        log.notice("%s: %s", section.name, statistics)
        self.statistics[section.name] = statistics
        for key, value in (
            ("minVal", statistics.minimum),
            ("maxVal", statistics.maximum),
            ("mean", statistics.mean),
            ("stdDev", statistics.deviation),
        ):
            section.set_automatic(f"_GlobalValue.{key}", repr(value))
        for key, file, data in (
            ("_MeanData", "meanData.bin", statistics.mean_data),
            ("_StdDevData", "stdDevData.bin", statistics.deviation_data),
        ):
            if data is not None:
                section.set_automatic(key, f"{section.name}/{file}")
                self._matrices[f"{section.name}/{file}"] = data
            elif values[key[1:]]:
                what = f"{key} is undefined, as the stimuli have different sizes"
                log.warning("W406", what, where=section.location, remedy="add a RescaleTransformation before")

    def _cached_statistics(self, database: Database, values: Values) -> ImageStatistics | None:
        """Return the statistics of a section, from an earlier run if nothing has changed since."""
        wanted = values["MeanData"], values["StdDevData"]
        positions = [database.sets[name] for name in APPLY_TO[values["ApplyTo"]]]
        ways = [" ".join(map(str, self._partial_pipeline(name).steps)) for name in APPLY_TO[values["ApplyTo"]]]
        key = statistics_key(database.items, np.concatenate(positions), f"{wanted} {ways}")
        if self._cache is None or key is None:
            return compute_statistics(self._images(database, values), *wanted)
        file = self._cache / values.section.name / "statistics.npz"
        statistics = load_statistics(file, key)
        if statistics is None:
            statistics = compute_statistics(self._images(database, values), *wanted)
            if statistics is not None:
                save_statistics(file, key, statistics)
        else:
            log.notice("%s: statistics of %s", values.section.name, file)
        return statistics

    def _compute_statistics(self, database: Database, values: Values) -> ImageStatistics | None:
        """Return the statistics of a section, and collect the lines of its files."""
        files = {
            name: [head]
            for key, name, head in (
                ("LogSizeRange", "sizeRange.dat", "# width height channels"),
                ("LogValueRange", "valueRange.dat", "# smallest largest"),
            )
            if values[key]
        }

        def seen() -> Iterator[np.ndarray]:
            for image in self._images(database, values):
                if values["LogSizeRange"]:
                    files["sizeRange.dat"].append(f"{image.shape[1]} {image.shape[0]} {image.shape[2]}")
                if values["LogValueRange"]:
                    files["valueRange.dat"].append(f"{float(image.min()):.9g} {float(image.max()):.9g}")
                yield image

        self.logs[values.section.name] = files
        return compute_statistics(seen(), values["MeanData"], values["StdDevData"])

    def _partial_pipeline(self, set_name: str) -> Pipeline:
        """Return the image pipeline of a set from the sections read so far."""
        return self.ways["Test" if set_name == "Test" else "Validation"].pipeline(self._environment)

    def _images(self, database: Database, values: Values) -> Iterator[np.ndarray]:
        """Yield the images of the selected sets with the transformations so far, in order."""
        for name in APPLY_TO[values["ApplyTo"]]:
            positions = database.sets[name].tolist()
            items, pipeline = database.items, self._partial_pipeline(name)
            yield from ordered_map(
                lambda index, items=items, pipeline=pipeline: pipeline.transform(items.read(index), items.name(index)),
                log.progress(positions, f"statistics of {name}", len(positions)),
            )


_CHANNEL = Key("Channel", Kind.UINT, doc="Index of the channel.")


def _is_referenced(document: Document, name: str) -> bool:
    """True if a raw value of the document refers to a section."""
    sections = [document.globals, *document.sections]
    return any(
        f"[{name}]" in section.raw(key)
        for section in sections
        for key in (*section.keys(), *(f"${macro}" for macro in section.macros()))
    )
