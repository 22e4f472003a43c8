"""TFLite_Detection_PostProcess of TensorFlow's SSD detectors: box decoding from anchors, and non-maximum suppression."""

from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto

from n2d2py.frontend.tflite.file import RefusedOperator, TfliteOperator
from n2d2py.frontend.tflite.signatures import Rank
from n2d2py.frontend.tflite.translation import Translation, lowers
from n2d2py.graph.shapes import Shape

_COUNTS = ("num_classes", "max_detections", "max_classes_per_detection", "detections_per_class")
_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")
_DEFAULTS = {"max_classes_per_detection": 1, "detections_per_class": 100, "use_regular_nms": False}


def _read_options(op: TfliteOperator) -> dict[str, Any]:
    """Return the options of an operator, a FlexBuffers map. Raise RefusedOperator if they are damaged or implausible."""
    from flatbuffers import flexbuffers

    try:
        given: Any = flexbuffers.Loads(op.custom_options)
        options: dict[str, Any] = _DEFAULTS | given
        counts = [options[name] for name in _COUNTS]
        scales = np.array([options[name] for name in (*_SCALES, "nms_iou_threshold", "nms_score_threshold")])
        wrong = not all(isinstance(count, int) and 0 < count < 2**31 for count in counts)
        wrong = wrong or not np.isfinite(scales[:4]).all() or not scales[:4].all()
    except Exception:  # the reader raises whatever its bytes lead to
        wrong, options = True, {}
    if wrong:
        raise RefusedOperator(f"its options of {len(op.custom_options)} bytes are damaged")
    if options["max_classes_per_detection"] > 1 and not options["use_regular_nms"]:
        raise RefusedOperator(f"max_classes_per_detection={options['max_classes_per_detection']} is not supported")
    return options


@lowers("custom TFLite_Detection_PostProcess", inputs=(Rank(3), Rank(3), Rank(2)), results=4)
def _detections(t: Translation, op: TfliteOperator, encoded: Shape, scored: Shape, anchored: Shape) -> None:
    """Add boxes (1, M, 4) as y, x, y, x, classes (1, M), scores (1, M) and their number (1), padded with zeros."""
    options = _read_options(op)
    classes, most = options["num_classes"], options["max_detections"]
    limits = (options["nms_iou_threshold"], options["nms_score_threshold"])
    (samples, boxes, coordinates), each_scores = encoded, scored[2] - classes
    if samples != 1 or scored[:2] != encoded[:2] or coordinates < 4 or each_scores < 0 or anchored != (boxes, 4):
        raise RefusedOperator(f"its boxes {encoded}, scores {scored} and anchors {anchored} do not match {classes} classes")
    for index, wanted in zip(op.outputs, ((1, most, 4), (1, most), (1, most), (1,)), strict=True):
        (t.expect_shape if t.tensor(index).shape else t.set_shape)(index, wanted)  # old files declare none
    corners = _decode_boxes(t, op, options)
    scores = t.cut(t.real(op.inputs[1]), each_scores, scored[2], 2)  # a background class is first

    if options["use_regular_nms"]:
        rows = min(options["detections_per_class"], boxes) * classes
        by_class = t.add("Transpose", scores, perm=(0, 2, 1))
        number, box = t.suppress(corners, by_class, options["detections_per_class"], limits)
        place = t.add("Add", t.add("Mul", number, t.array([boxes])), box)
        selected = t.gather(t.shaped(by_class, classes * boxes), place)
        selected = t.add("Where", t.add("Less", box, t.array([0])), t.array([-np.inf], np.float32), selected)
        _, order = t.add_two("TopK", selected, t.array([min(most, rows)]), axis=0)
        number, box, selected = (t.add("Gather", values, order) for values in (number, box, selected))
    else:
        rows = min(most, boxes)
        best = t.add("ReduceMax", scores, t.array([2]), keepdims=0)
        number, box = t.suppress(corners, t.shaped(best, 1, 1, boxes), most, limits)
        labels = t.add("ArgMax", scores, axis=2, keepdims=0)
        number, selected = (t.gather(t.shaped(values, boxes), box) for values in (labels, best))

    used = t.add("GreaterOrEqual", box, t.array([0]))
    none, free = t.array([0], np.float32), most - min(most, rows)
    chosen = t.gather(t.shaped(corners, boxes, 4), box)
    results = (
        (t.add("Where", t.add("Unsqueeze", used, t.array([1])), chosen, none), (1, most, 4), (0, 0, free, 0)),
        (t.add("Where", used, t.add("Cast", number, to=TensorProto.FLOAT), none), (1, most), (0, free)),
        (t.add("Where", used, selected, none), (1, most), (0, free)),
    )
    for index, (values, shape, pads) in zip(op.outputs, results, strict=False):
        padded = t.add("Pad", values, t.array(pads)) if free else values
        t.result(index, partial(t.emit, "Reshape", [padded, t.array(shape)]))
    count = t.add("Cast", used, to=TensorProto.FLOAT)
    t.result(op.outputs[3], partial(t.emit, "ReduceSum", [count, t.array([0])], keepdims=1))


def _decode_boxes(t: Translation, op: TfliteOperator, options: dict[str, Any]) -> str:
    """Decode boxes (1, N, 4) to (ymin, xmin, ymax, xmax) from offsets relative to anchors (y, x, height, width)."""
    codes, anchors = t.real(op.inputs[0]), t.tensor(op.inputs[2]).real_values()
    centers, sizes = anchors[None, :, :2], anchors[None, :, 2:]
    steps = t.array(sizes / np.array([options["y_scale"], options["x_scale"]]), np.float32)
    middle = t.add("Add", t.add("Mul", t.cut(codes, 0, 2, 2), steps), t.array(centers, np.float32))
    scales = t.array([1 / options["h_scale"], 1 / options["w_scale"]], np.float32)
    growth = t.add("Exp", t.add("Mul", t.cut(codes, 2, 4, 2), scales))
    half = t.add("Mul", growth, t.array(sizes / 2, np.float32))
    return t.add("Concat", t.add("Sub", middle, half), t.add("Add", middle, half), axis=2)
