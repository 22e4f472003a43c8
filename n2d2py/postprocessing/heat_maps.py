"""Networks whose outputs are heat maps: key points, boxes around centers, classes of pixels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from n2d2py.arithmetic.detections import STEP, SUBPIXELS
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, SIGMOID, FixedScale
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.arithmetic.heat_maps import CenterDecoder, ClassMap, HeatMaps, PointDecoder
from n2d2py.graph import TensorInfo, dims_text
from n2d2py.ini.schema import Key, Kind
from n2d2py.postprocessing.contract import (
    DETECTION_KEYS,
    SCORES,
    Detector,
    Infos,
    KernelConfig,
    PostProcessor,
    Size,
    image_size,
    in_frame,
    misfit,
    only_output,
    register,
    require_small,
)
from n2d2py.postprocessing.results import KeyPoint


def _tables(maps: HeatMaps) -> dict[str, Sequence[int]]:
    return {"sigmoid": SIGMOID.tolist() if maps.logits else ()}


@dataclass(frozen=True)
class PointFinder(PostProcessor):
    """Key points that are bound to an output. `decoder`: their integers."""

    decoder: PointDecoder

    kernel: ClassVar = "heat_maps"
    kernel_class: ClassVar = "PointDecoder"
    function: ClassVar = "find_points"
    folder: ClassVar = "points"
    in_frame: ClassVar = True
    types: ClassVar = {"Point": "key_point"}

    @property
    def config(self) -> KernelConfig:
        kinds = {name.capitalize(): self.decoder.refine == name for name in ("quarter", "quadratic")}
        return KernelConfig.of(self.decoder, {"Value": 0}, _tables(self.decoder.maps), **kinds)

    @property
    def memory(self) -> np.ndarray:
        """Of the points: score in 1/65536, x, y in 1/16 pixel."""
        return np.zeros((self.decoder.maps.count, 3), np.int32)

    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        return self.decoder.points(outputs[0])

    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: Size | None = None) -> list[KeyPoint]:
        maps = self.decoder.maps
        places = (in_frame(stored[:, 1:], (maps.width, maps.height), source, frame) / SUBPIXELS).tolist()
        scores = (stored[:, 0] / ONE).tolist()
        return [KeyPoint(label, self.name(label), scores[label], *place) for label, place in enumerate(places)]


@dataclass(frozen=True)
class CenterDetector(Detector):
    """Boxes around centers that are bound to two or three outputs. `decoder`: their integers.

    `sizes`, `offsets`: positions of these outputs; those of the sizes without offsets.
    """

    decoder: CenterDecoder
    sizes: int
    offsets: int

    kernel: ClassVar = "heat_maps"
    kernel_class: ClassVar = "CenterDecoder"

    @property
    def config(self) -> KernelConfig:
        reads = {"Value": 0, "SizeValue": self.sizes, "OffsetValue": self.offsets}
        return KernelConfig.of(self.decoder, reads, _tables(self.decoder.maps), Offsets=self.decoder.offset is not None)

    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        return self.decoder.boxes(outputs[0], outputs[self.sizes], outputs[self.offsets])


@dataclass(frozen=True)
class PixelClassifier(PostProcessor):
    """Classes of positions that are bound to an output. `decoder`: their integers."""

    decoder: ClassMap

    kernel: ClassVar = "heat_maps"
    kernel_class: ClassVar = "ClassMap"
    function: ClassVar = "segment"
    folder: ClassVar = "pixels"

    @property
    def config(self) -> KernelConfig:
        return KernelConfig.of(self.decoder, {"Value": 0}, {})

    @property
    def memory(self) -> np.ndarray:
        return np.zeros((self.decoder.rows, self.decoder.columns), np.uint8)

    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        return self.decoder.best(outputs[0])

    def result(self, stored: np.ndarray, source: FrameSource | None = None, frame: Size | None = None) -> np.ndarray:
        """Return the stored map, in positions of the output."""
        return stored


def _maps(info: TensorInfo, size: Size, names: tuple[str, ...], scores: str) -> HeatMaps:
    """Return the heat maps of an output. Raise E460 for an output without maps, or names of another number."""
    count, rows, columns = _image(info)
    if names and len(names) != count:
        raise misfit(f"{len(names)} class names do not fit the {count} heat maps of '{info.name}'", "correct -class-names")
    logits = scores == "logits"
    return HeatMaps(count, columns, rows, *size, FixedScale.of(info.type, LOGIT if logits else ONE), logits)


def _image(info: TensorInfo) -> tuple[int, ...]:
    if len(info.stored) != 4 or (info.port and info.port.image_axes != (0, 1, 2)):
        raise misfit(f"the output '{info.name}' of {dims_text(info.shape)} has no maps", "choose another by -outputs")
    return info.stored[1:]


def _points(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> PointFinder:
    maps = _maps(only_output(outputs), image_size(inputs), names, values["scores"])
    return PointFinder(names, PointDecoder(maps, values["refine"], values["origin"] == "center"))


def _centers(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> CenterDetector:
    require_small(outputs)
    places = {"last": (1, 2), "second": (2, 1), "none": (1, 1)}[values["offsets"]]
    if len(outputs) != max(places) + 1:
        offsets = " and offsets" if len(set(places)) > 1 else ""
        what = f"the model has {len(outputs)} outputs instead of heat maps, sizes{offsets}"
        raise misfit(what, "choose them by -outputs, or correct offsets=")
    size = image_size(inputs)
    maps = _maps(outputs[0], size, names, values["scores"])
    for info in outputs[1:]:
        if _image(info) != (2, maps.rows, maps.columns):
            what = f"the output '{info.name}' has the shape {dims_text(info.shape)}"
            raise misfit(f"{what} instead of 2 maps of {maps.rows}x{maps.columns}", "choose the outputs by -outputs")
    offset = FixedScale.of(outputs[places[1]].type, STEP) if values["offsets"] != "none" else None
    sizes = FixedScale.of(outputs[places[0]].type, STEP)
    decoder = CenterDecoder(maps, sizes, offset, int(values["threshold"] * ONE), values["max"])
    return CenterDetector(names, size, values["max"], decoder, *places)


def _fits_centers(outputs: Infos, size: Size, names: tuple[str, ...]) -> bool:
    """True for heat maps and twice two maps of the same positions."""
    shapes = [info.stored for info in outputs if len(info.stored) == 4]
    same = len(outputs) == len(shapes) == 3 and len({shape[2:] for shape in shapes}) == 1 and shapes[0][2] > 1
    return same and all(shape[1] == 2 for shape in shapes[1:]) and len(names) in (0, shapes[0][1])


def _pixels(values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> PixelClassifier:
    info = only_output(outputs)
    classes, rows, columns = _image(info)
    if classes > 256 or (names and len(names) != max(classes, 2)):
        raise misfit(f"'{info.name}' has {classes} classes", "give at most 256, and a name of each by -class-names")
    scale, threshold = FixedScale.of(info.type, ONE), int(values["threshold"] * ONE)
    return PixelClassifier(names, ClassMap(classes, rows, columns, scale, threshold))


register(
    "keypoints",
    "A heat map of each key point of one object: pose, hand and face landmarks.",
    (
        Key("refine", Kind.ENUM, "quarter", "Place of a point in its cell.", choices=("none", "quarter", "quadratic")),
        Key("origin", Kind.ENUM, "corner", "Position of a cell in the image.", choices=("corner", "center")),
        SCORES,
    ),
    _points,
)
register(
    "centernet",
    "Heat maps of object centers, sizes and offsets in cells: CenterNet.",
    (
        *DETECTION_KEYS,
        Key("offsets", Kind.ENUM, "last", "Place of the offsets after the heat maps.", choices=("last", "second", "none")),
        SCORES,
    ),
    _centers,
    _fits_centers,
)
register(
    "segmentation",
    "Scores of the classes of each position: the class of each.",
    (Key("threshold", Kind.FLOAT, 0.5, "Of one class: scores above it count.", minimum=-16384, maximum=16384),),
    _pixels,
)
