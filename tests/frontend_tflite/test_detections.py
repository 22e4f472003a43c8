"""TFLite_Detection_PostProcess, the end of SSD detectors, as LiteRT computes it."""

from pathlib import Path

import numpy as np
import pytest
from flatbuffers import flexbuffers
from support.errors import error_line
from support.tables import every
from support.tflite_files import Small, rewritten

import n2d2py

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="the referee, ai-edge-litert, is not installed")

DEFAULTS = {
    "max_detections": 10,
    "max_classes_per_detection": 1,
    "num_classes": 3,
    "nms_score_threshold": 0.3,
    "nms_iou_threshold": 0.5,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


def detector(folder: Path, boxes: int, given: bytes | None = None, background: int = 1, **changed) -> tuple[Path, dict]:
    """A file of steps and scores of one input (1, N, 4 + classes), with the operator at its end; and its options."""
    options = DEFAULTS | changed
    classes, most = options["num_classes"] + background, options["max_detections"]
    m = Small((1, boxes, 4 + classes), None, seed=boxes)
    parts = []
    for begin, size in ((0, 4), (4, classes)):
        ends = [m.constant(f"{end}{begin}", values) for end, values in (("begin", [0, 0, begin]), ("size", [1, boxes, size]))]
        parts.append(m.add("SLICE", [m.x, *ends], (1, boxes, size), None, "SliceOptions"))
    corners = m.rng.uniform(0.1, 0.9, (boxes, 2))
    anchors = np.concatenate([corners, m.rng.uniform(0.2, 0.4, (boxes, 2))], 1).astype(np.float32)
    parts.append(m.tensor("anchors", anchors.shape, values=anchors))
    results = [m.tensor(f"r{at}", shape) for at, shape in enumerate(((1, most, 4), (1, most), (1, most), (1,)))]
    m.file.operator("CONCATENATION", parts, results[0])
    path = m.write(folder, results)

    def change(schema, model) -> None:
        code, operator = model.operatorCodes[-1], model.subgraphs[0].operators[-1]
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = "TFLite_Detection_PostProcess"
        operator.builtinOptionsType, operator.builtinOptions = 0, None
        operator.outputs = np.array(results, np.int32)
        operator.customOptions = np.frombuffer(flexbuffers.Dumps(options) if given is None else given, np.uint8)

    return rewritten(path, change), options


def referee(path: Path, x: np.ndarray) -> list[np.ndarray]:
    interpreter = litert.Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(one["index"]) for one in interpreter.get_output_details()]


def stimulus(boxes: int, classes: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(1, boxes, 4), scale=2), rng.uniform(size=(1, boxes, classes))], 2).astype(
        np.float32
    )


@every("regular", [False, True])
@every(
    "boxes, changed",
    [
        (60, {}),
        (60, {"nms_iou_threshold": 0.1, "max_detections": 4}),
        (7, {}),
        (1, {"num_classes": 1}),
        (60, {"nms_score_threshold": 2.0}),
        (60, {"nms_score_threshold": 0.0, "nms_iou_threshold": 1.0}),
        (60, {"num_classes": 4, "background": 0}),
        (40, {"detections_per_class": 2, "y_scale": 1.0, "h_scale": 3.0}),
    ],
)
def test_detections_are_those_of_litert(boxes, changed, regular, tmp_path):
    path, options = detector(tmp_path, boxes, use_regular_nms=regular, **changed)
    x = stimulus(boxes, options["num_classes"] + changed.get("background", 1), boxes)
    found = [np.asarray(one) for one in n2d2py.load(path)(x)]
    wanted = referee(path, x)
    count = int(wanted[3].item())
    assert found[3].item() == count
    for ours, theirs in zip(found[:3], wanted[:3], strict=True):
        ours = ours.reshape(theirs.shape)
        np.testing.assert_allclose(ours[:, :count], theirs[:, :count], rtol=1e-5, atol=1e-5)
        assert not ours[:, count:].any()


@every(
    "given, changed, reason",
    [
        (b"", {}, "damaged"),
        (b"\xff" * 40, {}, "damaged"),
        (flexbuffers.Dumps(5), {}, "damaged"),
        (None, {"y_scale": 0.0}, "damaged"),
        (None, {"max_detections": "many"}, "damaged"),
        (None, {"max_classes_per_detection": 2}, "max_classes_per_detection=2 is not supported"),
        (flexbuffers.Dumps(DEFAULTS | {"num_classes": 9}), {}, "do not match"),
    ],
)
def test_other_options_are_refused(given, changed, reason, tmp_path):
    if given is None:
        given = flexbuffers.Dumps(DEFAULTS | changed)
    path, _ = detector(tmp_path, 5, given)
    assert reason in error_line(n2d2py.load, path)
