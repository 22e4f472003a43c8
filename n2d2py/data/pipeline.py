"""Pipeline of one stimulus: transformations in order, implicit normalization, the declared size.

Transformations of the whole image come first. If there are channel transformations (`[sp.ChannelTransformation*]`), the image
then takes several branches, whose results are concatenated as channels of the stimulus.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from n2d2py.data.environment import Environment
from n2d2py.data.transformations.base import Range, Transformation, reported
from n2d2py.errors import Location, N2D2Error


@dataclass(frozen=True)
class PipelineStep:
    """A transformation and the place of its section."""

    transformation: Transformation
    where: Location


@dataclass(frozen=True)
class TracePoint:
    """A stimulus at one point of its pipeline.

    Attributes:
        title: the last operation.
        image: (H, W, C).
        bounds: range known in advance for all stimuli at this point, or None.
        transformation: the step, None for reading, concatenation and normalization.
    """

    title: str
    image: np.ndarray
    bounds: Range | None
    transformation: Transformation | None = None

    def __str__(self) -> str:
        height, width, channels = self.image.shape
        known = f", within [{self.bounds[0]:g}, {self.bounds[1]:g}]" if self.bounds else ""
        return (
            f"{self.title}: {size_text((channels, height, width))} {self.image.dtype}, "
            f"{float(self.image.min()):g} to {float(self.image.max()):g}{known}"
        )


def integer_range(dtype: np.dtype) -> Range | None:
    """Return the smallest and largest value of an integer type; None for real types."""
    if dtype.kind == "f":
        return None
    limits = np.iinfo(dtype)
    return float(limits.min), float(limits.max)


def normalize_integers(image: np.ndarray, signed: bool) -> np.ndarray:
    """Return an image as float32: integers divided by the largest value of their type, reals unchanged.

    `signed` (DataSignedMapping): unsigned types become (v - half) / half, half = 2^(bits-1).
    """
    if image.dtype.kind == "f":
        return image.astype(np.float32, copy=False)
    if signed and image.dtype.kind == "u":
        half = np.float32(2 ** (8 * image.dtype.itemsize - 1))
        return (image.astype(np.float32) - half) / half
    return (image / np.float64(np.iinfo(image.dtype).max)).astype(np.float32)


@dataclass(frozen=True)
class Pipeline:
    """Pipeline from an image (H, W, C) to a stimulus of a set.

    Attributes:
        steps: steps on the whole image, in order.
        environment: the declared network input, with the shape of the result.
        branches: steps of each channel, after those on the whole image; () without channels.
    """

    steps: tuple[PipelineStep, ...]
    environment: Environment
    branches: tuple[tuple[PipelineStep, ...], ...] = ()

    @property
    def draws(self) -> bool:
        """True if a transformation is random."""
        return any(step.transformation.draws for step in chain(self.steps, *self.branches))

    def run(self, image: np.ndarray, name: str, random: np.random.Generator | None = None) -> np.ndarray:
        """Return the stimulus, float32 of `shape`; `name`: stimulus name in messages.

        `random`: generator for training transformations; required if there are any.

        Raises: E407 another size than declared, E408 a step is not defined on the image, E418 the result is not finite.
        """
        declared = self.environment
        result = normalize_integers(self.transform(image, name, random), declared.signed)
        if declared.levels is not None:
            result = declared.levels.nearest(result)
        result = self._fit_shape(result, name)
        if not np.isfinite(result).all():
            what = f"stimulus {name} contains NaN or infinity"
            raise N2D2Error("E418", what, where=declared.where, remedy="remove it, or correct its values")
        return result

    def transform(self, image: np.ndarray, name: str, random: np.random.Generator | None = None) -> np.ndarray:
        """Return the image (H, W, C) after all steps, before the implicit normalization. Raises E408."""
        image = self._chain(self.steps, image, name, random)
        if not self.branches:
            return image
        return self._joined([self._chain(steps, image, name, random) for steps in self.branches], name)

    def run_map(
        self,
        labels: np.ndarray,
        names: tuple[str, ...],
        name: str,
        image: np.ndarray | None = None,
        random: np.random.Generator | None = None,
    ) -> np.ndarray:
        """Return the pixel-wise labels of a stimulus, ids (H, W), after all steps.

        With random transformations: for the `image` (H, W, C), drawn as `run` draws with an equal `random`.

        Raises: E407 another size than the stimulus, E408 a step that is not defined on label maps.
        """
        steps = (*self.steps, *(self.branches[0] if self.branches else ()))
        for step in steps:
            transformation = step.transformation
            with reported(f"{transformation.type} failed on the labels of stimulus {name}: ", step.where):
                if image is not None and random is not None:
                    transformation = transformation.draw_parameters(image, random)
                    image = transformation.apply(image)
                labels = transformation.map_labels(transformation.apply_to_map(labels), names)
        shape = self.environment.shape
        if labels.shape != shape[-2:]:
            sizes = f"{size_text(labels.shape[::-1])} after the transformations, but the stimulus has size {size_text(shape)}"
            remedy = "use transformations that also apply to labels: Rescale, PadCrop, SliceExtraction, Flip"
            raise N2D2Error(
                "E407", f"the labels of stimulus {name} have size {sizes}", where=self.environment.where, remedy=remedy
            )
        return labels

    def trace(self, image: np.ndarray, name: str) -> Iterator[TracePoint]:
        """Yield the decoded image and the result of each step. Raises E408."""
        point = TracePoint("as read", image, integer_range(image.dtype))
        yield point
        for step in self.steps:
            point = self._next(point, step, name)
            yield point
        if self.branches:
            ends = []
            for channel, steps in enumerate(self.branches):
                end = point
                for step in steps:
                    end = self._next(end, step, name, f"channel {channel}: ")
                    yield end
                ends.append(end)
            joined = self._joined([end.image for end in ends], name)
            point = TracePoint("channels together", joined, unite_ranges([end.bounds for end in ends]))
            yield point
        signed, levels = self.environment.signed, self.environment.levels
        if point.image.dtype.kind != "f":
            dtype = point.image.dtype
            low, high = normalize_integers(np.array(point.bounds).astype(dtype), signed).tolist()
            image = normalize_integers(point.image, signed)
            point = TracePoint(f"implicit normalization of {dtype}", image, (low, high))
            yield point
        if levels is not None:
            low, high = levels.nearest(np.array(point.bounds or (-np.inf, np.inf))).tolist()
            yield TracePoint(f"{levels.count} levels", levels.nearest(point.image.astype(np.float32)), (low, high))

    def map_labels(self, labels: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """Return the label ids after the steps that change labels. Raises E408 a label that the database does not have."""
        for step in chain(self.steps, *self.branches):
            with reported(f"{step.transformation.type}: ", step.where):
                labels = step.transformation.map_labels(labels, names)
        return labels

    def _chain(
        self, steps: Iterable[PipelineStep], image: np.ndarray, name: str, random: np.random.Generator | None
    ) -> np.ndarray:
        for step in steps:
            image = self._apply(step, image, name, random)
        return image

    def _next(self, point: TracePoint, step: PipelineStep, name: str, prefix: str = "") -> TracePoint:
        transformation = step.transformation
        image = self._apply(step, point.image, name)
        bounds = _clip_range(_map_range(transformation, point.bounds), integer_range(image.dtype))
        return TracePoint(f"{prefix}{transformation}", image, bounds, transformation)

    def _apply(self, step: PipelineStep, image: np.ndarray, name: str, random: np.random.Generator | None = None) -> np.ndarray:
        transformation = step.transformation
        with reported(f"{transformation.type} failed on stimulus {name}: ", step.where):
            return (transformation if random is None else transformation.draw_parameters(image, random)).apply(image)

    def _joined(self, parts: list[np.ndarray], name: str) -> np.ndarray:
        kinds = {(part.shape[:2], part.dtype) for part in parts}
        if len(kinds) > 1:
            sizes = ", ".join(f"{part.shape[1]}x{part.shape[0]} {part.dtype}" for part in parts)
            what = f"the channels of stimulus {name} differ in size or type: {sizes}"
            remedy = "add channel transformations that produce a common size and type"
            raise N2D2Error("E407", what, where=self.environment.where, remedy=remedy)
        return np.concatenate(parts, axis=2)

    def _fit_shape(self, image: np.ndarray, name: str) -> np.ndarray:
        """Return the image in the declared shape; a vector may be declared along any axis."""
        shape, (height, width, channels) = self.environment.shape, image.shape
        if shape == (channels, height, width):
            return np.ascontiguousarray(image.transpose(2, 0, 1))
        is_vector = height == 1 and channels == 1
        if is_vector and max(shape) == image.size == int(np.prod(shape)):
            return image.reshape(shape)
        if len(shape) == 1:
            remedy = "declare the size of the data, or add a ReshapeTransformation"
        elif (height, width) != shape[1:] and is_vector:
            remedy = "add a PadCropTransformation or SliceExtractionTransformation, or correct the declared size"
        elif (height, width) != shape[1:]:
            remedy = f"add a RescaleTransformation with Width={shape[2]} and Height={shape[1]}, or correct the declared size"
        elif shape[0] == 3:
            remedy = "add a ColorSpaceTransformation with ColorSpace=BGR or RGB"
        elif shape[0] == 1 and channels in (3, 4):
            remedy = "add a ChannelExtractionTransformation with CSChannel=Gray, or NbChannels=3"
        else:
            remedy = f"declare NbChannels={channels}"
        size = size_text((channels, height, width))
        what = f"stimulus {name} has size {size} after the transformations, but the input has size {size_text(shape)}"
        raise N2D2Error("E407", what, where=self.environment.where, remedy=remedy)


def size_text(shape: tuple[int, ...]) -> str:
    """Return a shape (C, H, W) or (F,) in N2D2's notation: X x Y x C."""
    return "x".join(str(size) for size in ((shape[2], shape[1], shape[0]) if len(shape) == 3 else shape))


def _map_range(transformation: Transformation, bounds: Range | None) -> Range | None:
    if bounds is not None:
        return transformation.map_range(bounds)
    everywhere = transformation.map_range((-np.inf, np.inf))
    return everywhere if everywhere is not None and np.isfinite(everywhere).all() else None


def _clip_range(bounds: Range | None, limits: Range | None) -> Range | None:
    if limits is None or bounds is None:
        return bounds if limits is None else limits
    return max(bounds[0], limits[0]), min(bounds[1], limits[1])


def unite_ranges(bounds: list[Range | None]) -> Range | None:
    """Return the range of all ranges; None if one is unknown, or without any."""
    known = [one for one in bounds if one is not None]
    if not known or len(known) < len(bounds):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
