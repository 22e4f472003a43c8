"""The stimuli provider: a database and the pipelines from its data to network inputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from n2d2py import log
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.data.database import SETS, Database, read_database
from n2d2py.data.environment import SP, SP_CONFIG, read_environment
from n2d2py.data.pipeline import Pipeline, TracePoint, unite_ranges
from n2d2py.data.pipelines import INFERENCE, STIMULI_DATA, Pipelines, read_pipelines
from n2d2py.data.preprocessing import find_pixels
from n2d2py.data.stimuli import Stimuli
from n2d2py.data.transformations.base import Range
from n2d2py.data.transformations.color import ColorSpace
from n2d2py.data.transformations.spectrum import AudioFeatures
from n2d2py.data.transformations.values import write_matrix
from n2d2py.errors import InternalError, N2D2Error
from n2d2py.files import write_text
from n2d2py.graph.inputs import ORDERS, ChannelOrder, InputContract
from n2d2py.ini import Document, Schema

_FRAME_TRANSFORMATIONS = tuple(
    f"{name}Transformation" for name in "ChannelExtraction ColorSpace Normalize RangeAffine Rescale".split()
)
"""Transformations that the frame conversion and the byte map can replace."""


@dataclass(eq=False)
class StimuliProvider:
    """Stimuli of the sets Learn, Validation and Test, streamed.

    Attributes:
        batch_size: batch size of -test.
        source: images become frames of a camera; None: they do not.
    """

    database: Database
    pipelines: Pipelines
    batch_size: int = 1
    source: FrameSource | None = None
    _traces: dict[str, list[TracePoint]] = field(default_factory=dict, init=False)
    _normalized: set[np.dtype] = field(default_factory=set, init=False)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names by label id."""
        return self.database.label_names

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a stimulus, (C, H, W) or (F,)."""
        return self._pipeline("Test").environment.shape

    def _pipeline(self, set_name: str) -> Pipeline:
        """Return the pipeline of inference for a set: Learn is transformed as Validation."""
        return self.pipelines.by_set["Test" if set_name == "Test" else "Validation"]

    def with_database(self, database: Database) -> StimuliProvider:
        """Return a provider with the same pipelines and other data."""
        other = replace(self, database=database, source=None)
        return other if self.source is None else other.with_frames(self.source)

    def with_frames(self, source: FrameSource) -> StimuliProvider:
        """Return a provider whose images become frames of a camera: one resize to the input and the byte map.

        Raises: E417 for other transformations.
        """
        problem = "pad= keeps the aspect ratio" if source.pad >= 0 else ""
        steps = [step for name in ("Validation", "Test") for step in self._pipeline(name).steps]
        for step in steps:
            takes_frames = step.transformation.type in _FRAME_TRANSFORMATIONS
            if not problem and (not takes_frames or getattr(step.transformation, "keep_ratio", False)):
                problem = f"{step.transformation} is not one of them"
        declared = self._pipeline("Test").environment
        if not problem and (self.contract.pixels is None or declared.levels is not None):
            problem = "together they are more, or the images do not have 8 bits"
        if problem:
            what = f"-input-format requires a Rescale to the input, colors, and an affine map of the bytes: {problem}"
            where = steps[-1].where if steps else declared.where
            raise N2D2Error("E417", what, where=where, remedy="remove -input-format, or the transformation")
        other = replace(self, source=source)
        other._traces, other._normalized = self._traces, self._normalized
        return other

    @property
    def transforms(self) -> bool:
        """True if the INI defines preprocessing other than the scale of integers."""
        return any(self._pipeline(name).steps or self._pipeline(name).branches for name in INFERENCE)

    def sizes(self) -> dict[str, int]:
        """Return the number of stimuli in each set."""
        return self.database.sizes()

    def stimuli(self, set_name: str, indices: Sequence[int] | np.ndarray | None = None) -> Stimuli:
        """Return the stimuli of a set, or those at these positions.

        Raises: errors of reading and transforming the first stimulus of the set.
        """
        if set_name not in SETS:
            raise InternalError(f"there is no set {set_name}")
        positions = self.database.sets[set_name]
        if indices is not None:
            positions = positions[np.asarray(indices, np.int64)]
        return self._stimuli(set_name, positions, self._pipeline(set_name), lambda index: None)

    @property
    def draws(self) -> bool:
        """True if training stimuli differ between epochs."""
        return self._learning.draws

    @property
    def _learning(self) -> Pipeline:
        return self.pipelines.by_set.get("Learn", self._pipeline("Learn"))

    def training_stimuli(self, seed: int, epoch: int) -> Stimuli:
        """Return the Learn set of an epoch; random draws depend on `seed`, `epoch` and the stimulus only.

        Raises: errors of reading and transforming the first stimulus of the set.
        """
        positions = self.database.sets["Learn"]
        return self._stimuli("Learn", positions, self._learning, lambda index: np.random.default_rng([seed, epoch, index]))

    def _stimuli(
        self, set_name: str, positions: np.ndarray, pipeline: Pipeline, random: Callable[[int], np.random.Generator | None]
    ) -> Stimuli:
        items, maps, read = self.database.items, self.database.maps, self._reader(set_name, pipeline)

        def load(position: int) -> np.ndarray:
            index = int(positions[position])
            draws = random(index)
            if self.source is not None and draws is None:
                return self._frame(self.source, read(index), items.name(index))
            return pipeline.run(read(index), items.name(index), draws)

        labels = pipeline.map_labels(self.database.labels[positions], self.labels)

        def label_map(position: int) -> np.ndarray:
            index = int(positions[position])
            if maps is None:
                return np.full(self.shape[-2:], labels[position], np.int64)
            image = read(index) if pipeline.draws else None
            return pipeline.run_map(maps(index), self.labels, items.name(index), image, random(index))

        expanded = any(step.transformation.expands_labels for step in pipeline.steps)
        names = [items.name(int(index)) for index in positions]

        def raw(position: int) -> np.ndarray:
            return ColorSpace("RGB").apply(read(int(positions[position])))

        maps_of = label_map if expanded or maps is not None else None
        return Stimuli(names, labels, self.shape, load, maps_of, raw=None if self.source is None else raw)

    def _frame(self, source: FrameSource, image: np.ndarray, name: str) -> np.ndarray:
        pixels, (channels, high, wide) = self.contract.pixels, self.shape
        assert pixels is not None  # of_frames
        made = source.convert(source.frame(ColorSpace("RGB").apply(image)), image.shape[1], (channels, high, wide), name)
        return pixels.real(made[:, :, list(pixels.order)].transpose(2, 0, 1))

    def _reader(self, set_name: str, pipeline: Pipeline) -> Callable[[int], np.ndarray]:
        """Return a function that reads the image at a database index; all images of a set have the type of its first one."""
        trace, items = self.describe(set_name), self.database.items
        dtype = trace[0].image.dtype if trace else None

        def read(index: int) -> np.ndarray:
            image = items.read(index)
            if image.dtype != dtype:
                what = f"sample {items.name(index)} has type {image.dtype}, but the first one has {dtype}"
                raise N2D2Error("E415", what, where=pipeline.environment.where, remedy="store all samples in one type")
            return image

        return read

    def describe(self, set_name: str = "Test") -> list[TracePoint]:
        """Return the first stimulus of a set as read and after each step; [] for an empty set."""
        if set_name not in self._traces:
            trace = self.trace(set_name, 0) if len(self.database.sets[set_name]) else []
            self._report_normalization(set_name, trace)
            self._traces[set_name] = trace
        return self._traces[set_name]

    def trace(self, set_name: str, position: int) -> list[TracePoint]:
        """Return the stimulus at a position of a set, as read and after each step.

        Raises: errors of reading and transforming it.
        """
        index = int(self.database.sets[set_name][position])
        items = self.database.items
        return list(self._pipeline(set_name).trace(items.read(index), items.name(index)))

    def write_statistics(self, folder: Path) -> None:
        """Write the files of StimuliData sections: <section>/meanData.bin, stdDevData.bin, sizeRange.dat, valueRange.dat."""
        for name, files in self.pipelines.logs.items():
            (folder / name).mkdir(parents=True, exist_ok=True)
            for file, lines in files.items():
                write_text(folder / name / file, "\n".join(lines) + "\n")
        for name, statistics in self.pipelines.statistics.items():
            for file, data in (("meanData.bin", statistics.mean_data), ("stdDevData.bin", statistics.deviation_data)):
                if data is not None:
                    (folder / name).mkdir(parents=True, exist_ok=True)
                    write_matrix(folder / name / file, data)

    @cached_property
    def contract(self) -> InputContract:
        """Return the accepted images of the Test pipeline: the byte map if it is uniform, else the last color space."""
        trace, shape = self.describe("Test") or self.describe("Validation"), self.shape
        size = (shape[2], shape[1]) if len(shape) == 3 and shape[0] in (1, 3) and min(shape[1:]) > 1 else None
        steps = [step.transformation for step in self._pipeline("Test").steps]
        if len(steps) == 1 and isinstance(steps[0], AudioFeatures) and self._pipeline("Test").environment.levels is None:
            return InputContract(classes=tuple(self.labels), source=steps[0].source)
        if not trace:
            return InputContract(size=size, classes=tuple(self.labels))
        pixels = find_pixels(lambda image: self._pipeline("Test").run(image, "an image"), trace[0].image)
        order: ChannelOrder = "gray" if shape[0] == 1 else "BGR"
        for point in trace:
            order = point.transformation.order if isinstance(point.transformation, ColorSpace) else order
        if pixels:
            order = ORDERS.get(pixels.order, "")
        return InputContract(order if size else "", size, pixels, tuple(self.labels), self.source)

    @cached_property
    def value_range(self) -> Range | None:
        """Bounds of the values of all inference stimuli (Validation and Test; Learn if both are empty), if known in advance."""
        names = [name for name in ("Validation", "Test") if self.sizes()[name]] or ["Learn"]
        return unite_ranges([trace[-1].bounds for name in names if (trace := self.describe(name))])

    def _report_normalization(self, set_name: str, trace: list[TracePoint]) -> None:
        """Report the normalization of integers, as N2D2 does, once for each type."""
        for before, point in pairwise(trace):
            dtype = before.image.dtype
            if point.title.startswith("implicit normalization") and dtype not in self._normalized:
                self._normalized.add(dtype)
                low = -1 if self._pipeline(set_name).environment.signed or dtype.kind == "i" else 0
                log.notice("normalizing the stimuli (%s) in the [%d;1] range", dtype, low)


def provider_schemas() -> list[Schema]:
    """Return the schemas of [sp], of its ConfigSection and of its sub-sections other than steps."""
    return [SP, SP_CONFIG, STIMULI_DATA]


def build_provider(
    document: Document, *, seed: int = 0, cache: Path | None = None, instead: Database | None = None, learning: bool = False
) -> StimuliProvider:
    """Return the provider of an INI: its [sp], transformations and [database]; `instead` replaces a missing database.

    `learning`: the Learn set is trained on; its transformations are read. Sets the automatic properties [sp]_EpochSize and
    those of [sp.StimuliData*]. Referenced statistics require one pass over the stimuli, or none with cached ones in the folder
    `cache`.

    Raises: E401 to E417. Errors of the transformations occur when stimuli are read.
    """
    environment = read_environment(document)
    database = read_database(document, seed=seed, shape=environment.shape, instead=instead)
    if environment.composite and database.maps is None and database.type:
        what = f"{database.type} has no pixel-wise labels, so image targets are not scored"
        remedy = "use Numpy_Database with y (N, H, W) or LabelImagePath of DIR_Database, or remove CompositeStimuli"
        log.warning("W407", what, where=environment.where, remedy=remedy)
    section = document.section(environment.section)
    if section is not None:
        section.set_automatic("_EpochSize", len(database.sets["Learn"]))
    pipelines = read_pipelines(document, environment, database, cache, learning=learning)
    return StimuliProvider(database, pipelines, environment.batch_size)


def write_pre_samples(provider: StimuliProvider, position: int, folder: Path) -> list[Path]:
    """Write `<position>_<step>_<name>.png` or `.npy` for each point of a stimulus's pipeline (-pre-samples); return the files
    in order.

    Bytes of 1, 3 or 4 channels are images. Other values are exact arrays (H, W, C), and for 1 or 3 channels also images, with
    their range stretched to black and white.

    Raises: E416 for a missing stimulus, and the errors of reading and transforming it.
    """
    count = provider.sizes()["Test"]
    if not 0 <= position < count:
        what = f"stimulus {position} does not exist in the test set of {count}"
        remedy = f"give -pre-samples from 0 to {count - 1}" if count else "add a [database] with a test set"
        raise N2D2Error("E416", what, remedy=remedy)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    red_first = False
    for step, point in enumerate(provider.trace("Test", position)):
        if isinstance(point.transformation, ColorSpace):
            red_first = point.transformation.order == "RGB"
        name = re.sub(r"\W+", "_", point.title.split("(")[0].strip()).strip("_")  # "Rescale", "channel_0_Flip"
        written += _write_point(point.image, folder / f"{position}_{step:02d}_{name}", red_first)
    return written


def _write_point(image: np.ndarray, path: Path, red_first: bool) -> list[Path]:
    from PIL import Image

    channels, written = image.shape[2], []
    if image.dtype != np.uint8 or channels not in (1, 3, 4):
        written.append(path.with_name(f"{path.name}.npy"))
        np.save(written[-1], image, allow_pickle=False)
        if channels not in (1, 3):
            return written
        low, high = float(np.nanmin(image)), float(np.nanmax(image))
        scale = 255 / (high - low) if high > low else 0.0
        image = np.rint((np.nan_to_num(image.astype(np.float64), nan=low) - low) * scale)
        image = np.clip(image, 0, 255).astype(np.uint8)
    if channels > 1 and not red_first:
        image = image[:, :, [2, 1, 0, 3][:channels]]
    written.append(path.with_name(f"{path.name}.png"))
    Image.fromarray(image[:, :, 0] if channels == 1 else np.ascontiguousarray(image)).save(written[-1])
    return written
