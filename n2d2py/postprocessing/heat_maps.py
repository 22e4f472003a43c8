"""Networks whose outputs are heat maps: key points, boxes around centers, classes of pixels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from n2d2py.arithmetic.detections import STEP, SUBPIXELS
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, SIGMOID, FixedScale
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.heat_maps import CenterDecoder, HeatMaps, PointDecoder, class_map
from n2d2py.graph.port import TensorInfo
from n2d2py.ini.schema import Key, Kind, keys
from n2d2py.postprocessing.contract import KINDS, CCall, PostKind, PostProcessor, image_size, misfit, require_small
from n2d2py.postprocessing.detector import Detector, in_frame

_SCORES = Key(
    "scores",
    Kind.ENUM,
    "probabilities",
    "Scores of the model: probabilities, or logits, which then go through a sigmoid.",
    choices=("probabilities", "logits"),
)


class KeyPoint(NamedTuple):
    """A point of an object.

    Attributes:
        label: number of its heat map.
        name: its name; "" where it has none.
        score: 0 to 1.
        x, y: position in pixels of the image.
    """

    label: int
    name: str
    score: float
    x: float
    y: float


def _sizes(maps: HeatMaps) -> dict[str, int]:
    """Numbers of the configuration of a kernel."""
    return {
        "Count": maps.count,
        "Columns": maps.columns,
        "Rows": maps.rows,
        "Width": maps.width,
        "Height": maps.height,
        "Logits": int(maps.logits),
    }


def _tables(maps: HeatMaps) -> dict[str, tuple[str, Sequence[int]]]:
    """That of logits."""
    return {"sigmoid": ("std::int32_t", SIGMOID.tolist() if maps.logits else ())}


@dataclass(frozen=True)
class PointFinder(PostProcessor):
    """Key points that are bound to an output.

    Attributes:
        decoder: their integers.
    """

    decoder: PointDecoder

    kernel: ClassVar = "heat_maps"
    kernel_class: ClassVar = "PointDecoder"
    folder: ClassVar = "points"
    in_frame: ClassVar = True
    types: ClassVar = {"Point": "key_point"}

    @property
    def maps(self) -> HeatMaps:
        """Those of the decoder."""
        return self.decoder.maps

    @property
    def reads(self) -> dict[str, int]:
        """The only output."""
        return {"Value": 0}

    @property
    def constants(self) -> dict[str, int]:
        """Those of the decoder."""
        d = self.decoder
        kinds = {name.capitalize(): int(d.refine == name) for name in ("quarter", "quadratic")}
        return {**_sizes(self.maps), **kinds, "Centered": int(d.centered)}

    @property
    def scales(self) -> dict[str, FixedScale]:
        """That of the heat maps."""
        return {"score": self.maps.score}

    @property
    def tables(self) -> dict[str, tuple[str, Sequence[int]]]:
        """That of logits."""
        return _tables(self.maps)

    def stored(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """`PointDecoder.points`."""
        return [self.decoder.points(maps) for maps in outputs[0]]

    def compiled(self, call: CCall, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """`stored`, by the function find_points."""
        found = [np.zeros((self.maps.count, 3), np.int32) for _ in samples]
        for sample, points in zip(samples, found, strict=True):
            call("find_points", *sample, points)
        return [points.astype(np.int64) for points in found]

    def result(
        self, stored: np.ndarray, source: FrameSource | None = None, frame: tuple[int, int] | None = None
    ) -> list[KeyPoint]:
        """Stored points (n, 3) in real numbers."""
        places = in_frame(stored[:, 1:], (self.maps.width, self.maps.height), source, frame) / SUBPIXELS
        scores = (stored[:, 0] / ONE).tolist()
        return [
            KeyPoint(label, self.name(label), score, *place)
            for label, (score, place) in enumerate(zip(scores, places.tolist(), strict=True))
        ]


@dataclass(frozen=True)
class CenterDetector(Detector):
    """Boxes around centers that are bound to two or three outputs.

    Attributes:
        decoder: their integers.
        sizes, offsets: positions of these outputs; those of the sizes without offsets.
    """

    decoder: CenterDecoder
    sizes: int
    offsets: int

    kernel: ClassVar = "heat_maps"
    kernel_class: ClassVar = "CenterDecoder"

    @property
    def maps(self) -> HeatMaps:
        """Those of the decoder."""
        return self.decoder.maps

    @property
    def reads(self) -> dict[str, int]:
        """Heat maps, sizes and offsets."""
        return {"Value": 0, "SizeValue": self.sizes, "OffsetValue": self.offsets}

    @property
    def constants(self) -> dict[str, int]:
        """Those of the decoder."""
        d = self.decoder
        return {**_sizes(self.maps), "Offsets": int(d.offset is not None), "Threshold": d.threshold}

    @property
    def scales(self) -> dict[str, FixedScale]:
        """Those of the decoder."""
        d = self.decoder
        return {"score": self.maps.score, "size": d.size, "offset": d.offset or d.size}

    @property
    def tables(self) -> dict[str, tuple[str, Sequence[int]]]:
        """That of logits."""
        return _tables(self.maps)

    def found(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """`CenterDecoder.boxes`."""
        return self.decoder.boxes(outputs[0], outputs[self.sizes], outputs[self.offsets])


@dataclass(frozen=True)
class PixelClassifier(PostProcessor):
    """Classes of positions that are bound to an output.

    Attributes:
        classes, rows, columns: shape of the output.
        score: conversion of the scores to 1/65536.
        threshold: of one class, in 1/65536: positions above it are of the class.
    """

    classes: int
    rows: int
    columns: int
    score: FixedScale
    threshold: int

    kernel: ClassVar = "heat_maps"
    kernel_class: ClassVar = "ClassMap"
    folder: ClassVar = "pixels"

    @property
    def reads(self) -> dict[str, int]:
        """The only output."""
        return {"Value": 0}

    @property
    def constants(self) -> dict[str, int]:
        """Sizes."""
        return {"Classes": self.classes, "Positions": self.rows * self.columns, "Threshold": self.threshold}

    @property
    def scales(self) -> dict[str, FixedScale]:
        """That of the scores."""
        return {"score": self.score}

    def stored(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """`class_map`."""
        return [class_map(scores, self.score, self.threshold) for scores in outputs[0]]

    def compiled(self, call: CCall, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """`stored`, by the function segment."""
        found = [np.zeros((self.rows, self.columns), np.uint8) for _ in samples]
        for sample, classes in zip(samples, found, strict=True):
            call("segment", *sample, classes)
        return found

    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: tuple[int, int] | None = None) -> np.ndarray:
        """The stored map, in positions of the output."""
        return stored


def _maps(info: TensorInfo, size: tuple[int, int], names: tuple[str, ...], scores: str) -> HeatMaps:
    """The heat maps of an output.

    Raises:
        N2D2Error: E460 no such maps, or names of another number.
    """
    count, rows, columns = _image(info)
    if names and len(names) != count:
        raise misfit(f"{len(names)} class names do not fit the {count} heat maps of '{info.name}'", "correct -class-names")
    logits = scores == "logits"
    return HeatMaps(count, columns, rows, *size, FixedScale.of(info.type, LOGIT if logits else ONE), logits)


def _image(info: TensorInfo) -> tuple[int, ...]:
    """Channels, rows and columns of an output."""
    if len(info.stored) != 4 or (info.port and info.port.image_axes != (0, 1, 2)):
        shape = "x".join(map(str, info.shape))
        raise misfit(f"the output '{info.name}' of {shape} has no maps", "choose another by -outputs")
    return info.stored[1:]


def _only(outputs: Sequence[TensorInfo]) -> TensorInfo:
    if len(outputs) != 1:
        raise misfit(f"the model has {len(outputs)} outputs", "choose that of the maps by -outputs")
    return outputs[0]


Infos = Sequence[TensorInfo]


def _points(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> PointFinder:
    require_small(outputs)
    maps = _maps(_only(outputs), image_size(inputs), names, values["scores"])
    return PointFinder(names, PointDecoder(maps, values["refine"], values["origin"] == "center"))


def _centers(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> CenterDetector:
    require_small(outputs)
    places = {"last": (1, 2), "second": (2, 1), "none": (1, 1)}[values["offsets"]]
    if len(outputs) != max(places) + 1:
        what = (
            f"the model has {len(outputs)} outputs instead of heat maps, sizes{' and offsets' if len(set(places)) > 1 else ''}"
        )
        raise misfit(what, "choose them by -outputs, or correct offsets=")
    size = image_size(inputs)
    maps = _maps(outputs[0], size, names, values["scores"])
    for info in outputs[1:]:
        if _image(info) != (2, maps.rows, maps.columns):
            what = f"the output '{info.name}' has the shape {'x'.join(map(str, info.shape))}"
            raise misfit(f"{what} instead of 2 maps of {maps.rows}x{maps.columns}", "choose the outputs by -outputs")
    offset = FixedScale.of(outputs[places[1]].type, STEP) if values["offsets"] != "none" else None
    sizes = FixedScale.of(outputs[places[0]].type, STEP)
    decoder = CenterDecoder(maps, sizes, offset, int(values["threshold"] * ONE), values["max"])
    return CenterDetector(names, size, values["max"], decoder, *places)


def _pixels(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> PixelClassifier:
    require_small(outputs)
    info = _only(outputs)
    classes, rows, columns = _image(info)
    if classes > 256 or (names and len(names) != max(classes, 2)):
        raise misfit(f"'{info.name}' has {classes} classes", "give at most 256, and a name of each by -class-names")
    return PixelClassifier(names, classes, rows, columns, FixedScale.of(info.type, ONE), int(values["threshold"] * ONE))


for _kind in (
    PostKind(
        "keypoints",
        "A heat map of each key point of one object: pose, hand and face landmarks.",
        (
            Key(
                "refine", Kind.ENUM, "quarter", "Position of a key point in its cell.", choices=("none", "quarter", "quadratic")
            ),
            Key("origin", Kind.ENUM, "corner", "Position of a cell in the image.", choices=("corner", "center")),
            _SCORES,
        ),
        _points,
    ),
    PostKind(
        "centernet",
        "Heat maps of object centers, sizes and offsets in cells: CenterNet.",
        keys(
            """
threshold: Scores above it count.
max: Detections at most.
offsets: Position of the offsets after the heat maps; sizes are the other output.
""",
            Key("threshold", Kind.FLOAT, 0.25, minimum=0, maximum=1),
            Key("max", Kind.UINT, 100, minimum=1, maximum=10000),
            Key("offsets", Kind.ENUM, "last", choices=("last", "second", "none")),
            _SCORES,
        ),
        _centers,
    ),
    PostKind(
        "segmentation",
        "Scores of the classes of each position: the class of each.",
        (Key("threshold", Kind.FLOAT, 0.5, "Of one class: scores above it count.", minimum=-16384, maximum=16384),),
        _pixels,
    ),
):
    KINDS.add(_kind.name, _kind)
