"""TFLite_Detection_PostProcess of TensorFlow's SSD detectors: box decoding from anchors, and non-maximum suppression."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.lowering import Emitter, check_arity
from n2d2py.frontend.tflite.translation import Translation, lowers


@dataclass(frozen=True)
class _Options:
    """Options of the operator, by their names in the file."""

    num_classes: int
    max_detections: int
    nms_score_threshold: float
    nms_iou_threshold: float
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    max_classes_per_detection: int = 1
    detections_per_class: int = 100
    use_regular_nms: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """Return (largest overlap, smallest score)."""
        return self.nms_iou_threshold, self.nms_score_threshold

    @classmethod
    def of(cls, operator: TfliteOperator) -> _Options:
        """Return the options of an operator, a FlexBuffers map. Raise RefusedOperator if they are damaged or implausible."""
        from flatbuffers import flexbuffers

        damaged = RefusedOperator(f"its options of {len(operator.custom_options)} bytes are damaged")
        try:
            options: Any = flexbuffers.Loads(operator.custom_options)
            result = cls(**{field.name: options[field.name] for field in fields(cls) if field.name in options})
            counts = (result.num_classes, result.max_detections, result.max_classes_per_detection, result.detections_per_class)
            scales = np.array([result.y_scale, result.x_scale, result.h_scale, result.w_scale])
            wrong = not all(isinstance(count, int) and 0 < count < 2**31 for count in counts)
        except Exception:  # the reader raises whatever its bytes lead to
            raise damaged from None
        if wrong or not np.isfinite(scales).all() or not scales.all():
            raise damaged
        if result.max_classes_per_detection > 1 and not result.use_regular_nms:
            raise RefusedOperator(f"max_classes_per_detection={result.max_classes_per_detection} is not supported")
        return result


@lowers("custom TFLite_Detection_PostProcess")
def _detections(t: Translation, operator: TfliteOperator) -> None:
    """Add boxes (1, M, 4) as y, x, y, x, classes (1, M), scores (1, M) and their number (1), padded with zeros.

    Raises:
        RefusedOperator: unsuitable inputs or outputs, or several classes of a box.
    """
    check_arity(operator, 3, 4)
    options = _Options.of(operator)
    encoded, scored, anchored = (t.tensor(index).shape for index in operator.inputs[:3])
    classes, most = options.num_classes, options.max_detections
    if len(encoded) != 3 or len(scored) != 3 or not (encoded[0] == scored[0] == 1 and encoded[1] == scored[1]):
        raise RefusedOperator(f"its boxes {encoded} and scores {scored} do not match")
    if encoded[2] < 4 or scored[2] < classes or anchored != (encoded[1], 4):
        raise RefusedOperator(f"its boxes {encoded}, scores {scored} and anchors {anchored} do not match {classes} classes")
    for index, wanted in zip(operator.outputs, ((1, most, 4), (1, most), (1, most), (1,)), strict=True):
        (t.expect_shape if t.tensor(index).shape else t.set_shape)(index, wanted)  # old files declare none
    boxes = encoded[1]
    emit = Emitter(t, t.tensor(operator.outputs[0]).name)
    corners = _decode_boxes(t, operator, emit, options)
    scores = emit.slice(t.real(operator.inputs[1]), scored[2] - classes, scored[2], 2)  # a background class is first

    if options.use_regular_nms:
        rows = min(options.detections_per_class, boxes) * classes
        by_class = emit("Transpose", scores, perm=(0, 2, 1))
        number, box = emit.suppress(corners, by_class, options.detections_per_class, options.limits)
        place = emit("Add", emit("Mul", number, emit.numbers([boxes])), box)
        selected = emit.gather(emit.reshape(by_class, classes * boxes), place)
        selected = emit("Where", emit("Less", box, emit.numbers([0])), emit.numbers([-np.inf], np.float32), selected)
        _, order = emit.emit_two("TopK", selected, emit.numbers([min(most, rows)]), axis=0)
        number, box, selected = (emit("Gather", values, order) for values in (number, box, selected))
    else:
        rows = min(most, boxes)
        best = emit("ReduceMax", scores, emit.numbers([2]), keepdims=0)
        number, box = emit.suppress(corners, emit.reshape(best, 1, 1, boxes), most, options.limits)
        labels = emit("ArgMax", scores, axis=2, keepdims=0)
        number, selected = (emit.gather(emit.reshape(values, boxes), box) for values in (labels, best))

    used = emit("GreaterOrEqual", box, emit.numbers([0]))
    none, free = emit.numbers([0], np.float32), most - min(most, rows)
    chosen = emit.gather(emit.reshape(corners, boxes, 4), box)
    results = (
        (emit("Where", emit("Unsqueeze", used, emit.numbers([1])), chosen, none), (1, most, 4), (0, 0, free, 0)),
        (emit("Where", used, emit("Cast", number, to=TensorProto.FLOAT), none), (1, most), (0, free)),
        (emit("Where", used, selected, none), (1, most), (0, free)),
    )
    for index, (values, shape, pads) in zip(operator.outputs, results, strict=False):
        padded = emit("Pad", values, emit.numbers(pads)) if free else values
        t.result(index, partial(t.emit, "Reshape", [padded, emit.numbers(shape)]))
    count = emit("Cast", used, to=TensorProto.FLOAT)
    t.result(operator.outputs[3], partial(t.emit, "ReduceSum", [count, emit.numbers([0])], keepdims=1))


def _decode_boxes(t: Translation, operator: TfliteOperator, emit: Emitter, options: _Options) -> str:
    """Decode boxes (1, N, 4) to (ymin, xmin, ymax, xmax) from offsets relative to anchors (y, x, height, width)."""
    codes, anchors = t.real(operator.inputs[0]), t.real_values(operator.inputs[2])
    centers, sizes = anchors[None, :, :2], anchors[None, :, 2:]
    steps = emit.numbers(sizes / np.array([options.y_scale, options.x_scale]), np.float32)
    middle = emit("Add", emit("Mul", emit.slice(codes, 0, 2, 2), steps), emit.numbers(centers, np.float32))
    scales = emit.numbers([1 / options.h_scale, 1 / options.w_scale], np.float32)
    growth = emit("Exp", emit("Mul", emit.slice(codes, 2, 4, 2), scales))
    half = emit("Mul", growth, emit.numbers(sizes / 2, np.float32))
    return emit("Concat", emit("Sub", middle, half), emit("Add", middle, half), axis=2)
