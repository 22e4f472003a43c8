"""Transformations and the registry of their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from pkgutil import iter_modules
from typing import ClassVar, TypeVar

import numpy as np

from n2d2py.errors import InternalError, Location, N2D2Error, require, suggest
from n2d2py.ini import COVERED, Ignored, Key, Kind, Schema, Section, Values, fields_by_key
from n2d2py.registry import Registry, dataclass_transform

Range = tuple[float, float]

APPLY_TO = {
    "LearnOnly": ("Learn",),
    "ValidationOnly": ("Validation",),
    "TestOnly": ("Test",),
    "NoLearn": ("Validation", "Test"),
    "NoValidation": ("Learn", "Test"),
    "NoTest": ("Learn", "Validation"),
    "All": ("Learn", "Validation", "Test"),
}

COMMON = Schema(
    "Transformation",
    (
        Key("Type", Kind.STRING, doc="Type of the transformation."),
        Key("ApplyTo", Kind.ENUM, "All", "Sets to transform.", tuple(APPLY_TO)),
        Key(
            "Channel", Kind.UINT, None, "In [sp.ChannelTransformation*]: index of the channel, from 0. Default: a new channel."
        ),
    ),
)


class Inapplicable(ValueError):
    """Reason why a transformation cannot be applied to an image, as a clause, and the remedy."""

    def __init__(self, what: str, remedy: str):
        super().__init__(what)
        self.what = what
        self.remedy = remedy


@contextmanager
def reported(what: str, where: Location | None = None, code: str = "E408") -> Iterator[None]:
    """Within it, Inapplicable becomes an error; `what` precedes its reason."""
    try:
        yield
    except Inapplicable as problem:
        raise N2D2Error(code, f"{what}{problem.what}", where=where, remedy=problem.remedy) from None


TransformationT = TypeVar("TransformationT", bound="Transformation")
RandomT = TypeVar("RandomT", bound="RandomByKeys")


@dataclass(frozen=True)
class Transformation:
    """A function of images (H, W, C): frozen dataclasses, called from several threads.

    Images are uint8, uint16, int8, int16, int32 or float32; colours are blue, green, red, except after a
    ColorSpaceTransformation.
    """

    type: ClassVar[str] = ""
    schema: ClassVar[Schema]
    expands_labels: ClassVar[bool] = False
    """True for a transformation that gives every pixel the label of its stimulus."""
    always_opencv: ClassVar[bool] = False
    unsupported: ClassVar[Mapping[str, str]] = {}
    """Keys of which only the default is supported, with the reason as a clause."""

    @property
    def needs_opencv(self) -> bool:
        """True if OpenCV computes the transformation."""
        return self.always_opencv

    @property
    def draws(self) -> str:
        """Clause, after the type, that tells what is random; "" for nothing."""
        return ""

    @classmethod
    def refuse(cls, values: Values) -> str:
        """Return a clause, after the type, that tells which value of a section is not supported; "" for none."""
        given = [(key, why) for key, why in cls.unsupported.items() if values[key] != cls.schema.key(key).default]  # type: ignore[union-attr]
        return "".join(f"with {key}={values.section.text(key)} {why}" for key, why in given[:1])

    @classmethod
    def from_values(cls: type[TransformationT], values: Values) -> TransformationT:
        """Return the transformation with the parameters of a section. By default, its fields that are keys.

        Raises:
            N2D2Error: E417 for invalid parameters.
        """
        return cls(**{one.name: one.metadata["read"](values[key.name]) for key, one in fields_by_key(cls).items()})

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Return the transformed image (H', W', C'). Raises Inapplicable for images that it is not defined on."""
        raise InternalError(f"{self.type} is applied before it is drawn")

    def map_range(self, bounds: Range) -> Range | None:
        """Return bounds of the result for values within `bounds`; None if unknown."""
        return bounds

    def map_labels(self, labels: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """Return the label ids (-1: none) after the transformation, for a database with these label names.

        Raises: Inapplicable for a label that the database does not have.
        """
        return labels

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        """Return pixel-wise labels, ids (H, W), after the transformation: moved like the pixels, never mixed.

        Raises: Inapplicable if they cannot be moved.
        """
        return labels

    def draw_parameters(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        """Return the transformation for one training image (H, W, C), with drawn parameters; itself if it is not random.

        Raises: Inapplicable for images that it is not defined on.
        """
        return self

    def with_matrices(self, matrices: Mapping[str, np.ndarray]) -> Transformation:
        """Return the transformation with its matrices (H, W, C); `matrices`: computed ones by name.

        Raises: E401, E402, E403 for files.
        """
        return self

    def __str__(self) -> str:
        shown = (f"{one.name}={_plain_value(getattr(self, one.name))}" for one in fields(self) if one.repr)
        return f"{self.type.removesuffix(_SUFFIX)}({', '.join(shown)})"


class Unbounded(Transformation):
    """A transformation whose results have no bounds that are known in advance."""

    def map_range(self, bounds: Range) -> Range | None:
        return None


class RandomTransformation(Transformation):
    """A transformation with parameters drawn for each training image; not used in inference."""

    @property
    def draws(self) -> str:
        return "draws at random"


@dataclass(frozen=True)
class RandomByKeys(Transformation):
    """A transformation that the flags Random* of its section make random: `random` has the names of those that are set."""

    random: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    @classmethod
    def from_values(cls: type[RandomT], values: Values) -> RandomT:
        flags = (key.name for key in cls.schema.keys if key.name.startswith("Random") and key.kind is Kind.BOOL)
        return replace(super().from_values(values), random=tuple(name for name in flags if values[name]))

    @property
    def draws(self) -> str:
        return f"with {self.random[0]}=1 is random" if self.random else ""

    def draw_parameters(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        return self.draw(image, random) if self.random else self

    def draw(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        """Return the transformation for one training image (H, W, C), with the parameters of the set flags drawn."""
        raise NotImplementedError


def require_image(image: np.ndarray, *channels: int, in_bytes: bool = False) -> None:
    """Raise Inapplicable unless an image (H, W, C) has one of these numbers of channels, if any are given, and 8 bits if asked."""
    if in_bytes and image.dtype != np.uint8:
        remedy = "put it before the transformations that give real numbers"
        raise Inapplicable(f"it is defined on 8-bit images, this one is {image.dtype}", remedy)
    if channels and image.shape[2] not in channels:
        counts = " or ".join(map(str, channels)).replace("1", "one", 1)
        remedy = "use it in a ChannelTransformation, or convert the colors before"
        raise Inapplicable(f"it needs {counts} channel{'s' * (len(channels) > 1)}, the image has {image.shape[2]}", remedy)


def saturate_cast(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return reals in a type: integers rounded to even and clipped."""
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)


def by_channel(
    image: np.ndarray, operate: Callable[..., np.ndarray], *values: Iterable[float], dtype: np.dtype | None = None
) -> np.ndarray:
    """Return an image (H, W, C) computed by OpenCV in float64, in `dtype`, by default its own type.

    `operate`: function from a channel (H, W), and one of each `values`, to a channel.

    Raises: Inapplicable for an image that OpenCV refuses.
    """
    import cv2

    planes = np.ascontiguousarray(image.transpose(2, 0, 1), np.float64)
    try:
        result = np.stack([operate(*each) for each in zip(planes, *values, strict=True)], axis=2)
    except cv2.error as error:
        raise Inapplicable(f"OpenCV refuses the image: {error.err}", "correct the keys, or give smaller images") from None
    return saturate_cast(result, dtype or image.dtype)


def read_interval(values: Values, key: str) -> tuple[float, float]:
    """Return the smallest and largest value of a key with two numbers.

    Raises: E417 for another count, or for descending order.
    """
    interval = values[key]
    if len(interval) != 2 or interval[0] > interval[1]:
        raise values.fail("E417", f"{key} is not an interval", "give the smallest and the largest value", key)
    return float(interval[0]), float(interval[1])


def _plain_value(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(_plain_value(item) for item in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


_SUFFIX = "Transformation"
_REMEDY = "remove it, or add ApplyTo=LearnOnly if only training needs it"
_TYPES: Registry[type[Transformation]] = Registry(
    "the transformation", *(f"{__package__}.{one.name}" for one in iter_modules([str(Path(__file__).parent)]))
)
_UNSUPPORTED = {
    f"{name}{_SUFFIX}": why
    for why, names in {
        "crops by pixel-wise labels": ("LabelExtraction", "LabelSliceExtraction"),
        "is not part of the public N2D2": ("ROIExtraction", "Blending", "ChannelDrop", "ChannelShake"),
    }.items()
    for name in names
}
"""Unsupported types, with the reason; ignored if only training needs them."""


@dataclass_transform(frozen_default=True)
def transformation(
    name: str, *keys: Key, doc: str, accepted: tuple[Ignored, ...] = (), needs_opencv: bool = False
) -> Callable[[type[TransformationT]], type[TransformationT]]:
    """Make the class of Type=<name>Transformation a frozen dataclass; its section has the fields by `parameter` and these keys.

    `needs_opencv`: OpenCV computes it.

    Raises: InternalError if the type is registered.
    """

    def add(kind: type[TransformationT]) -> type[TransformationT]:
        kind = dataclass(frozen=True)(kind)
        kind.type = f"{name}{_SUFFIX}"
        kind.schema = Schema(kind.type, (*fields_by_key(kind), *keys), accepted, doc + " Requires OpenCV." * needs_opencv)
        kind.always_opencv = needs_opencv
        _TYPES.add(kind.type, kind)
        return kind

    return add


def transformation_schemas() -> list[Schema]:
    """Return the schemas of all types, ordered by name, with unsupported ones."""
    return [_schema(name) for name in sorted((*_TYPES, *_UNSUPPORTED))]


def _schema(name: str) -> Schema:
    if name in _TYPES:
        return COMMON + _TYPES[name].schema
    doc = f"It {_UNSUPPORTED[name]}. The section is read, and ignored if ApplyTo excludes inference."
    return COMMON + Schema(name, (), (COVERED,), doc)


def read_common(section: Section) -> Values:
    """Return the values of the keys that all transformations have."""
    return Schema("transformation", COMMON.keys, (COVERED,)).read(section)


def read_transformation(section: Section, *, inference: bool, learning: bool = False) -> Transformation | None:
    """Return the transformation of a section; None if neither inference nor training needs it.

    `inference`: it applies to the validation or test set; `learning`: it applies to training stimuli. An unsupported one is
    None, too, if only training needs it.

    Raises: E320 OpenCV is required and missing, E405 an unknown type, E406 an unsupported or random one that applies to
        inference, E417 for its parameters, and the errors of reading.
    """
    name = section.text("Type").strip()
    kind = _TYPES.get(name)
    if kind is None and name not in _UNSUPPORTED:
        known = [each.removesuffix(_SUFFIX) for each in (*_TYPES, *_UNSUPPORTED)]
        remedy = suggest(name.partition("Trans")[0], known, f"use one of {', '.join(sorted(_TYPES))}", f"'{{}}{_SUFFIX}'")
        raise N2D2Error("E405", f"transformation '{name}' is unknown", where=section.where("Type"), remedy=remedy)
    values = _schema(name).read(section)
    if not inference and (kind is None or not learning):
        return None
    transformation = None
    if kind is None:
        problem = _UNSUPPORTED[name]
    elif not (problem := kind.refuse(values)):
        transformation = kind.from_values(values)
        problem = transformation.draws
    if inference and problem:
        what = f"{name} {problem}, and applies to the data of inference"
        raise N2D2Error("E406", what, where=section.location, remedy=_REMEDY)
    if transformation is not None and transformation.needs_opencv:
        require("cv2", name, "opencv", section.location)
    return transformation
