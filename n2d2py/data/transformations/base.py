"""Transformations and the registry of their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

import numpy as np

from n2d2py.errors import InternalError, N2D2Error, nearest
from n2d2py.ini import Key, Kind, Schema, Section, Values
from n2d2py.ini.ignored import COVERED, Ignored
from n2d2py.registry import Registry

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
            "Channel",
            Kind.UINT,
            None,
            "In [sp.ChannelTransformation*]: index of the channel, from 0. Without Channel, the section creates a new channel.",
        ),
    ),
)


class Inapplicable(ValueError):
    """Why a transformation cannot be applied to an image, as a clause, and the remedy."""

    def __init__(self, what: str, remedy: str):
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class UnsupportedTransformation(ValueError):
    """Which parameter asks for what is not implemented or not deterministic, as a clause."""


class Transformation:
    """A function of images (H, W, C): frozen dataclasses, called from several threads.

    Images are uint8, uint16, int8, int16, int32 or float32; colours are blue, green, red unless a
    ColorSpaceTransformation before says otherwise.
    """

    type: ClassVar[str] = ""
    schema: ClassVar[Schema]
    expands_labels: ClassVar[bool] = False
    """It gives every pixel the label of its stimulus."""

    @classmethod
    def from_values(cls, values: Values) -> Transformation:
        """The transformation that the keys of a section describe. By default they are the fields of the class, in order.

        Raises:
            Unsupported: the parameters ask for what is not implemented, such as random draws.
            N2D2Error: E417 for parameters without meaning.
        """
        return cls(*(values[key.name] for key in cls.schema.keys))  # pyright: ignore[reportCallIssue]

    def apply(self, image: np.ndarray) -> np.ndarray:
        """The transformed image (H', W', C').

        Raises:
            Inapplicable: for images that it is not defined on.
        """
        raise NotImplementedError

    def map_range(self, bounds: Range) -> Range | None:
        """Bounds of the result for values within `bounds`; None when there are none to state."""
        return bounds

    def map_labels(self, labels: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """The label ids (-1: none) after the transformation, for a database of these label names.

        Raises:
            Inapplicable: for a label that the database does not have.
        """
        return labels

    def apply_to_map(self, labels: np.ndarray) -> np.ndarray:
        """Pixel-wise labels, ids (H, W), after the transformation: moved as the pixels are, never mixed.

        Raises:
            Inapplicable: where they cannot be moved.
        """
        return labels

    def drawn(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        """Function for an image (H, W, C) that is learned: itself, where nothing is drawn.

        Raises:
            Inapplicable: for images that it is not defined on.
        """
        return self

    def bound(self, matrices: Mapping[str, np.ndarray]) -> Transformation:
        """The transformation with its matrices (H, W, C) read: `matrices` holds computed ones.

        Raises:
            N2D2Error: E401, E402, E403 for files.
        """
        return self

    def __str__(self) -> str:
        attributes = ", ".join(f"{name}={_plain(value)}" for name, value in vars(self).items())
        return f"{self.type.removesuffix(_SUFFIX)}({attributes})"


class RandomTransformation(Transformation):
    """Transformation that draws anew for each image that is learned; it has no part in inference."""

    keys: tuple[str, ...] = ()
    """Those that make a transformation random which is not by its type."""

    @property
    def draws(self) -> str:
        """Clause that says what is random, after its type."""
        return f"with {self.keys[0]}=1 is random" if self.keys else "draws at random"

    def drawn(self, image: np.ndarray, random: np.random.Generator) -> Transformation:
        raise NotImplementedError

    def apply(self, image: np.ndarray) -> np.ndarray:
        raise InternalError(f"{self.type} is applied before it is drawn")


def require_bytes(image: np.ndarray, *channels: int) -> None:
    """Raise Inapplicable unless an image (H, W, C) has 8 bits and, where any are named, one of these numbers of channels."""
    if image.dtype != np.uint8 or (channels and image.shape[2] not in channels):
        counts = f" of {' or '.join(map(str, channels))} channels" if channels else ""
        what = f"it is defined on 8-bit images{counts}, this one is {image.dtype} of {image.shape[2]} channels"
        raise Inapplicable(what, "put it before the transformations that give real numbers")


def require_one_channel(image: np.ndarray) -> None:
    """Raise Inapplicable for an image (H, W, C) of several channels."""
    if image.shape[2] != 1:
        remedy = "use it in a ChannelTransformation, or extract a channel before"
        raise Inapplicable(f"it needs one channel, the image has {image.shape[2]}", remedy)


def interval(values: Values, key: str) -> tuple[float, float]:
    """The smallest and largest value of a key of two numbers.

    Raises:
        N2D2Error: E417 for another count, or in the wrong order.
    """
    given = values[key]
    if len(given) != 2 or given[0] > given[1]:
        raise values.fail("E417", f"{key} is not an interval", "give the smallest and the largest value", key)
    return float(given[0]), float(given[1])


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(_plain(item) for item in value) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


TransformationT = TypeVar("TransformationT", bound=Transformation)

_SUFFIX = "Transformation"
_REMEDY = "remove it, or add ApplyTo=LearnOnly if only training needs it"
_TYPES: Registry[type[Transformation]] = Registry("the transformation")
_ON_LABELS = "crops by pixel-wise labels"
_CLOSED = "is not part of the public N2D2"
_UNSUPPORTED = {
    f"{name}{_SUFFIX}": (
        why,
        Schema(
            f"{name}{_SUFFIX}",
            (),
            COVERED.for_keys(*keys.split()),
            doc=f"It {why}. The section is read, and ignored if ApplyTo excludes inference.",
        ),
    )
    for name, why, keys in (
        ("LabelExtraction", _ON_LABELS, "Widths Heights Label Distribution"),
        (
            "LabelSliceExtraction",
            _ON_LABELS,
            "Width Height Label CachePath SlicesMargin KeepComposite RandomRotation RandomRotationRange RandomScaling "
            "RandomScalingRange AllowPadding BorderType BorderValue IgnoreNoValid ExcludeLabels",
        ),
        ("ROIExtraction", _CLOSED, "*"),
        ("Blending", _CLOSED, "*"),
        ("ChannelDrop", _CLOSED, "*"),
        ("ChannelShake", _CLOSED, "*"),
    )
}
"""Types that are read, and left out where only learning needs them: why they cannot be computed, and their keys."""


def transformation(
    name: str, *keys: Key, doc: str, accepted: tuple[Ignored, ...] = ()
) -> Callable[[type[TransformationT]], type[TransformationT]]:
    """Decorate the class of the transformations of Type=<name>Transformation, whose section has these keys.

    Raises:
        InternalError: when the type is taken.
    """

    def add(kind: type[TransformationT]) -> type[TransformationT]:
        kind.type = f"{name}{_SUFFIX}"
        kind.schema = Schema(kind.type, keys, accepted, doc)
        _TYPES.add(kind.type, kind)
        return kind

    return add


def transformation_schemas() -> list[Schema]:
    """The schemas of all types, in the order of their names, unsupported ones included."""
    known = {name: COMMON + _TYPES[name].schema for name in _TYPES}
    known.update({name: COMMON + schema for name, (_, schema) in _UNSUPPORTED.items()})
    return [known[name] for name in sorted(known)]


def applies_to(section: Section) -> tuple[str, ...]:
    """The sets that the transformation of a section applies to."""
    return APPLY_TO[
        Schema("transformation", (COMMON.key("ApplyTo"),), (COVERED,)).read(section)["ApplyTo"]  # type: ignore[arg-type]
    ]


def read_transformation(section: Section, *, inference: bool, learning: bool = False) -> Transformation | None:
    """The transformation of a section; None for one that nothing here needs.

    `inference`: it applies to the validation or test set; `learning`: it applies to stimuli that are learned. One that is not
    implemented is None, too, where only learning needs it.

    Raises:
        N2D2Error: E405 an unknown type, E406 one that is not implemented or random and applies to
            inference, E417 for its parameters, and what reading raises.
    """
    if not section.has("Type"):
        raise section.missing("Type", section.location)
    name = section.text("Type").strip()
    kind = _TYPES.get(name)
    if kind is None and name not in _UNSUPPORTED:
        bare = nearest(name.removesuffix(_SUFFIX), [known.removesuffix(_SUFFIX) for known in (*_TYPES, *_UNSUPPORTED)])
        like = bare + _SUFFIX if bare else nearest(name, (*_TYPES, *_UNSUPPORTED))
        remedy = f"did you mean '{like}'?" if like else f"use one of {', '.join(sorted(_TYPES))}"
        raise N2D2Error("E405", f"transformation '{name}' is unknown", where=section.where("Type"), remedy=remedy)
    values = (COMMON + (kind.schema if kind else _UNSUPPORTED[name][1])).read(section)
    if not inference and (kind is None or not learning):
        return None
    if kind is None:
        what = f"{name} {_UNSUPPORTED[name][0]}, and applies to the data of inference"
        raise N2D2Error("E406", what, where=section.location, remedy=_REMEDY)
    try:
        found = kind.from_values(values)
    except UnsupportedTransformation as problem:
        if not inference:
            return None
        raise N2D2Error("E406", f"{name}: {problem}", where=section.location, remedy=_REMEDY) from None
    if inference and isinstance(found, RandomTransformation):
        what = f"{name} {found.draws}, and applies to the data of inference"
        raise N2D2Error("E406", what, where=section.location, remedy=_REMEDY)
    return found
