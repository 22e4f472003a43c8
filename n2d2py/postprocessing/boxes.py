"""Detectors whose outputs are boxes with scores: the YOLO family, whose graph decodes them, and SSD, whose boxes are relative to anchors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from n2d2py.arithmetic.detections import STEP, SUBPIXELS, BoxDecoder
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, POWERS, SIGMOID, FixedScale
from n2d2py.graph.port import TensorInfo, plain_port
from n2d2py.ini.schema import Key, Kind
from n2d2py.postprocessing.contract import (
    DETECTION_KEYS,
    SCORES,
    Detector,
    Infos,
    KernelConfig,
    Size,
    image_size,
    misfit,
    real_array,
    register,
    require_small,
)

_IOU = Key("iou", Kind.FLOAT, 0.45, "Limit of intersection / union with a better box of the class.", minimum=0, maximum=1)
_UNITS = Key("units", Kind.ENUM, "pixels", "Coordinates: pixels of the input, or shares of its sides.", ("pixels", "relative"))
_ANCHORED = (
    Key("anchors", Kind.PATH, doc="File .npy of the anchors (boxes, 4): center and size, relative to the sides of the image."),
    Key("order", Kind.ENUM, "yx", "Order of the coordinates of boxes and anchors.", ("yx", "xy")),
    Key("center", Kind.FLOAT, 10.0, "Divisor of the steps of centers (TFLite: y_scale, x_scale).", minimum=0.01, maximum=1000),
    Key("size", Kind.FLOAT, 5.0, "Divisor of the logarithms of sizes (TFLite: h_scale, w_scale).", minimum=0.01, maximum=1000),
    Key("background", Kind.BOOL, True, "1 if the first score is that of the background."),
)


@dataclass(frozen=True)
class _Family:
    """Values of a box after its coordinates: `objectness`, then a score of each class; or, `labelled`, the best score and its class.

    Attributes:
        anchors: boxes of each cell of the grids of 8, 16 and 32 pixels; 0 where the boxes are chosen from them.
        by_box: whether exporters write a row for each box, else a column.
        skipped: scores before those of the classes that do not count.
    """

    centered: bool = True
    objectness: bool = False
    labelled: bool = False
    anchors: int = 1
    by_box: bool = True
    skipped: int = 0

    def classes(self, values: int) -> int:
        """Return the classes of boxes of so many values, coordinates included."""
        return values - 4 - self.objectness - self.labelled - self.skipped


@dataclass(frozen=True)
class StridedValues:
    """Values of the boxes in an output of the network: value v of box b is element first + b * box + v * value of its memory (HWC)."""

    output: int
    first: int
    box: int
    value: int

    def take(self, outputs: Sequence[np.ndarray], boxes: int, values: int) -> np.ndarray:
        """Return the stored values (boxes, values) in the outputs (C, ...) of one sample."""
        memory = np.moveaxis(outputs[self.output], 0, -1).reshape(-1)
        return memory[self.first + self.box * np.arange(boxes)[:, None] + self.value * np.arange(values)]


@dataclass(frozen=True)
class BoxDetector(Detector):
    """A decoder of boxes that is bound to the outputs of a network. `decoder`: its integers."""

    decoder: BoxDecoder
    boxes: StridedValues
    scores: StridedValues

    kernel: ClassVar = "detections"
    kernel_class: ClassVar = "Detector"

    @property
    def config(self) -> KernelConfig:
        d, boxes, scores = self.decoder, self.boxes, self.scores
        tables = {
            "sigmoid": SIGMOID.tolist() if d.logits else (),
            "powers": POWERS.tolist() if d.anchors else (),
            "anchors": [value for anchor in d.anchors for value in anchor],
        }
        places = {
            f"{part}{name}": value
            for part, one in (("Box", boxes), ("Score", scores))
            for name, value in (("First", one.first), ("Next", one.box), ("Step", one.value))
        }
        reads = {"BoxValue": boxes.output, "ScoreValue": scores.output}
        return KernelConfig.of(d, reads, tables, Anchors=bool(d.anchors), Labelled=d.label is not None, **places)

    def decode(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        count = self.decoder.count
        return self.decoder.detect(self.boxes.take(outputs, count, 4), self.scores.take(outputs, count, self.decoder.values))


def _fits(family: _Family, outputs: Infos, size: Size, names: tuple[str, ...]) -> bool:
    """True for one output with a box for each anchor of the grids, in the layout of the exporters."""
    if not family.anchors or len(outputs) != 1 or len(outputs[0].shape) != 3 or any(side % 32 for side in size):
        return False
    boxes = family.anchors * _cells(size)
    values = outputs[0].shape[2 if family.by_box else 1]
    classes = family.classes(values)
    return outputs[0].shape[1 if family.by_box else 2] == boxes > values and classes == (len(names) or max(classes, 1))


def _fits_anchors(outputs: Infos, size: Size, names: tuple[str, ...]) -> bool:
    """True for boxes (N, 4) and scores (N, classes), more of them than transformers have, and not one or three for each cell of YOLO."""
    shapes = sorted((info.shape[1:] for info in outputs if len(info.shape) == 3), key=lambda shape: shape[-1] != 4)
    if len(outputs) != 2 or len(shapes) != 2:
        return False
    (count, four), (others, classes) = shapes
    named = not names or classes in (len(names), len(names) + 1)
    shaped = four == 4 and count == others > max(300, classes) and classes > 1
    return shaped and named and count not in (_cells(size), 3 * _cells(size))


def _cells(size: Size) -> int:
    return sum((size[0] // step) * (size[1] // step) for step in (8, 16, 32))


def _bind(family: _Family, values: Mapping[str, Any], inputs: Infos, outputs: Infos, names: tuple[str, ...]) -> BoxDetector:
    size = image_size(inputs)
    family = replace(family, skipped=int(values.get("background", False)))
    require_small(outputs)
    tables = [_table(info) for info in outputs]
    if len(tables) == 2:
        boxes, scores = (0, 1) if 4 in tables[0].shape else (1, 0)
        count, coordinates = max(tables[boxes].shape), min(tables[boxes].shape)
        if coordinates != 4 or count not in tables[scores].shape:
            raise misfit(f"neither '{outputs[0].name}' nor '{outputs[1].name}' has 4 values for each box", _CUT)
        first = tables[boxes] if tables[boxes].shape == (count, 4) else tables[boxes].T
        second = tables[scores] if tables[scores].shape[0] == count else tables[scores].T
    elif len(tables) == 1:
        boxes = scores = 0
        whole = _by_box(tables[0], outputs[0], family, names)
        first, second = whole[:, :4], whole[:, 4:]
    else:
        raise misfit(f"the model has {len(tables)} outputs", _CUT)
    classes, second = family.classes(4 + second.shape[1]), second[:, family.skipped :]
    if classes < 1 or (family.labelled and classes != 1):
        raise misfit(f"a box of '{outputs[scores].name}' has {4 + second.shape[1]} values", "correct the kind of -post")
    logits, relative = values["scores"] == "logits", values.get("units") == "relative"
    steps = SUBPIXELS / (2 if family.centered else 1)
    kind, score_kind = outputs[boxes].type, outputs[scores].type
    x, y = (FixedScale.of(kind, steps * (side if relative else 1)) for side in size)
    anchors, rows_first = (), values.get("order") == "yx"
    if "anchors" in values:
        anchors = _anchors(Path(values["anchors"]), len(first), size, rows_first)
        x = y = FixedScale.of(kind, STEP / values["center"])
    score_scale = FixedScale.of(score_kind, LOGIT if logits else ONE)
    size_scale = FixedScale.of(kind, STEP / values["size"]) if anchors else FixedScale()
    label = FixedScale.of(score_kind, 1) if family.labelled else None
    limits = int(values["threshold"] * ONE), ONE if family.labelled else int(values["iou"] * ONE), values["max"]
    layout = family.centered, rows_first, anchors, size_scale, logits, family.objectness, label
    decoder = BoxDecoder(len(first), classes, *size, x, y, score_scale, *layout, *limits)
    return BoxDetector(names, size, values["max"], decoder, _part(boxes, first), _part(scores, second))


def _anchors(path: Path, count: int, size: Size, rows_first: bool) -> tuple[tuple[int, ...], ...]:
    """Return the anchors of a file in 1/16 pixel: x, y of the center, width, height."""
    anchors = real_array(path, "anchors")
    if anchors.shape != (count, 4):
        raise misfit(f"the anchors {path} are not {count}x4 real numbers", "give a row for each box of the output")
    columns = anchors[:, [1, 0, 3, 2] if rows_first else [0, 1, 2, 3]].astype(np.float64)
    steps = np.rint(columns * SUBPIXELS * np.array([*size, *size]))
    if abs(steps).max(initial=0) > 32767:
        raise misfit(f"the anchors {path} exceed 2047 pixels", "give them relative to the width and height of the image")
    return tuple(map(tuple, steps.astype(int).tolist()))


_CUT = "give the output with the decoded boxes by -outputs, or one of boxes and one of scores"


def _table(info: TensorInfo) -> np.ndarray:
    """Return the positions in memory (HWC) of the elements of an output, in the two axes of its file that are not 1."""
    count = int(np.prod(info.stored))
    memory = np.moveaxis(np.arange(count).reshape(*info.stored[2:], info.stored[1]), -1, 0)
    table = (info.port or plain_port(info.stored)).array(memory[None], True).squeeze()
    if table.ndim != 2:
        raise misfit(f"the output '{info.name}' has the shape {'x'.join(map(str, info.shape))}", _CUT)
    return table


def _by_box(table: np.ndarray, info: TensorInfo, family: _Family, names: tuple[str, ...]) -> np.ndarray:
    """Return the table with a row for each box: the axis of values fits the names of the classes, else is the shorter one."""
    fitting = [axis for axis in (0, 1) if not names or family.labelled or family.classes(table.shape[axis]) == len(names)]
    if not fitting:
        raise misfit(
            f"{len(names)} class names do not fit the output '{info.name}' of {'x'.join(map(str, info.shape))}",
            "correct -class-names or the kind of -post",
        )
    if len(fitting) == 2 and table.shape[0] == table.shape[1]:
        raise misfit(f"the output '{info.name}' is as long as wide", "give the names of the classes by -class-names")
    axis = fitting[0] if len(fitting) == 1 else int(np.argmin(table.shape))
    return table if axis == 1 else table.T


def _part(output: int, table: np.ndarray) -> StridedValues:
    """Return the strides of a table (boxes, values)."""
    steps = [
        int(table[tuple(int(at == axis) for at in (0, 1))] - table[0, 0]) if table.shape[axis] > 1 else 0 for axis in (0, 1)
    ]
    part = StridedValues(output, int(table[0, 0]), *steps)
    rows, columns = np.ogrid[: table.shape[0], : table.shape[1]]
    if not np.array_equal(table, part.first + part.box * rows + part.value * columns):
        raise misfit("the boxes are not evenly spaced in memory", _CUT)
    return part


_FAMILIES = {
    "yolov5": (
        "Boxes by centre and size, objectness, a score for each class: YOLOv5, YOLOv7.",
        _Family(objectness=True, anchors=3),
    ),
    "yolov8": ("Boxes by centre and size, a score for each class: YOLOv8, YOLOv9, YOLO11, YOLO12.", _Family(by_box=False)),
    "yolov10": ("Corners, score and class of boxes that do not overlap: YOLOv10.", _Family(False, labelled=True, anchors=0)),
    "yolox": ("As yolov5: YOLOX, exported with its grid decoded.", _Family(objectness=True)),
}
for _name, (_doc, _family) in _FAMILIES.items():
    _keys = (*DETECTION_KEYS, *(() if _family.labelled else (_IOU,)), _UNITS, SCORES)
    register(_name, _doc, _keys, partial(_bind, _family), partial(_fits, _family))
_SSD = "Boxes relative to anchors, a score for each class: SSD without the operators after its heads."
register("ssd", _SSD, (*DETECTION_KEYS, _IOU, SCORES, *_ANCHORED), partial(_bind, _Family(anchors=0)), _fits_anchors)
