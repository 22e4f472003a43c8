"""Drawn outputs of detectors through `kernels/n2d2/detections.hpp` in one program, which prints the detections of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx
from onnxruntime import InferenceSession

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.detections import STEP, SUBPIXELS, BoxDecoder
from n2d2py.arithmetic.fixed_scale import LOGIT, ONE, FixedScale
from n2d2py.postprocessing.boxes import BoxDetector, StridedValues
from support import post_cases
from support.onnx_models import text_model
from support.post_cases import TYPES

SHAPES = (
    "plain",
    "none",
    "all",
    "ties",
    "outside",
    "one class",
    "many classes",
    "full",
    "equal",
    "extremes",
    "thousand classes",
)
"""Kinds of cases, by what their scores and boxes are like."""


@dataclass(frozen=True)
class DetectionCase:
    """A decoder and stored values: boxes (count, 4), scores (count, values), in memory box by box or, `planar`, value by value."""

    decoder: BoxDecoder
    boxes: np.ndarray
    scores: np.ndarray
    kinds: tuple[NumType, NumType]
    planar: bool

    @property
    def wanted(self) -> list[int]:
        """Numbers that the program prints."""
        found = self.decoder.detect(self.boxes, self.scores)
        return [len(found), *found.ravel().tolist()]

    @property
    def post(self) -> BoxDetector:
        """The decoder with outputs of boxes and scores."""
        strides = ((1, self.decoder.count) if self.planar else (one.shape[1], 1) for one in (self.boxes, self.scores))
        parts = (StridedValues(output, 0, *steps) for output, steps in enumerate(strides))
        return BoxDetector((), (self.decoder.width, self.decoder.height), self.decoder.most, self.decoder, *parts)


Found = tuple[int, float, np.ndarray]
"""Class, score and corners in pixels."""


def reference(d: BoxDecoder, boxes: np.ndarray, values: np.ndarray) -> list[Found]:
    """Real boxes (count, 4) in pixels and scores by the formulas of the detectors in float64, and ONNX Runtime's NonMaxSuppression."""
    real, values = boxes.astype(np.float64)[:, [1, 0, 3, 2] if d.rows_first else [0, 1, 2, 3]], values.astype(np.float64)
    if d.anchors:
        anchors = np.array(d.anchors) / SUBPIXELS
        real = np.concatenate([anchors[:, :2] + real[:, :2] * anchors[:, 2:], np.exp(real[:, 2:]) * anchors[:, 2:]], 1)
    ends = np.concatenate([real[:, :2] - real[:, 2:] / 2, real[:, :2] + real[:, 2:] / 2], 1) if d.centered else real
    known = 1 / (1 + np.exp(-values)) if d.logits else np.clip(values, 0, 1)
    scores = known[:, d.objectness : d.objectness + d.classes] * (known[:, :1] if d.objectness else 1)
    labels = scores.argmax(1) if d.label is None else np.rint(values[:, -1]).astype(int)
    cut = np.clip(ends, 0, [d.width, d.height] * 2)
    best = np.where((cut[:, :2] < cut[:, 2:]).all(1), scores.max(1), 0)
    by_class = np.where(labels == np.arange(labels.max() + 1)[:, None], best, 0)
    given = [ends[None], by_class[None], np.int64([d.count]), [d.overlap / ONE], [d.threshold / ONE]]
    names = ("boxes", "scores", "most", "overlap", "threshold")
    feeds = {name: np.asarray(one, np.int64 if name == "most" else np.float32) for name, one in zip(names, given, strict=True)}
    kept = _suppression().run(None, feeds)[0][:, 2].tolist()
    return [(int(labels[box]), best[box], cut[box]) for box in sorted(kept, key=lambda box: (-best[box], box))[: d.most]]


@cache
def _suppression() -> InferenceSession:
    ends = "float[1,n,4] boxes, float[1,c,n] scores, int64[1] most, float[1] overlap, float[1] threshold => int64[k,3] kept"
    return InferenceSession(
        text_model(ends, "kept = NonMaxSuppression (boxes, scores, most, overlap, threshold)").SerializeToString()
    )


def detection_cases(count: int, seed: int) -> Iterator[DetectionCase]:
    """`count` random cases; each thing that is special meets each type."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        special, make = SHAPES[number % len(SHAPES)], TYPES[number // len(SHAPES) % len(TYPES)]
        boxes = {"one class": 1, "thousand classes": 8}.get(special, int(rng.integers(40, 90)))
        classes = {"one class": 1, "many classes": 30, "thousand classes": 1000}.get(special, int(rng.integers(1, 6)))
        width, height = (int(side) for side in rng.integers(20, 200, 2))
        objectness, labelled, logits = (bool(one) for one in rng.integers(0, 2, 3))
        labelled, objectness = (True, False) if labelled and "classes" not in special else (False, objectness)
        classes = 1 if labelled else classes
        kind, score_kind = make(width / 200), make(5 / 100 if logits or labelled else 1 / 250)
        centered, planar = not labelled, bool(rng.integers(0, 2))
        center = rng.uniform(-0.2, 1.2, (boxes, 2)) if special == "outside" else rng.uniform(0, 1, (boxes, 2))
        sides = rng.uniform(0.01, 0.6, (boxes, 2))
        ends = [center, sides] if centered else [center - sides / 2, center + sides / 2]
        real = np.concatenate(ends, 1) * [width, height, width, height]
        values = rng.normal(0, 3, (boxes, objectness + classes + labelled))
        values = values if logits else 1 / (1 + np.exp(-values))
        if special == "equal":
            values[:] = 0.8
        if special == "ties":
            real, values = np.round(real, -1), np.round(values, 1)
        if labelled:
            values[:, -1] = rng.integers(0, 5, boxes)
        scale = FixedScale.of(kind, SUBPIXELS / (1 + centered))
        rows_first, anchors = bool(rng.integers(0, 2)), ()
        if centered and number % 3 == 0:
            anchors = np.rint(SUBPIXELS * real).astype(int)
            anchors[:, 2:] = np.maximum(anchors[:, 2:], 1)
            real = rng.normal(0, 0.5, (boxes, 4))
            kind = make(1 / 40)
            scale = FixedScale.of(kind, STEP)
        real = real[:, [1, 0, 3, 2]] if rows_first else real
        if kind.is_float and special == "plain":
            real[::7, 1], values[::5, 0], values[1::5, 0] = np.nan, np.nan, np.inf
        decoder = BoxDecoder(
            boxes,
            classes,
            width,
            height,
            scale,
            scale,
            FixedScale.of(score_kind, LOGIT if logits else ONE),
            centered,
            rows_first,
            tuple(map(tuple, np.asarray(anchors).tolist())),
            scale,
            logits,
            objectness,
            FixedScale.of(score_kind, 1) if labelled else None,
            {"none": ONE, "all": 0}.get(special, int(rng.integers(0, ONE // 2))),
            ONE if labelled or special == "full" else int(rng.integers(0, ONE)),
            5 if special == "full" else 100,
        )
        stored = [kind.quantize(real), score_kind.quantize(values)]
        if special == "extremes":
            signs = [np.where(rng.random(one.shape) < 0.5, -1e9, 1e9) for one in stored]
            stored = [kind.quantize(signs[0]), score_kind.quantize(signs[1])]
        yield DetectionCase(decoder, stored[0], stored[1], (kind, score_kind), planar)


FOUND = """struct Found {
    std::int32_t label, score, x0, y0, x1, y1;
};
template <class Detector, class... Values>
static void run(int most, const Values*... values) {
    Found found[101];
    const int count = Detector::run(values..., found, most);
    number(count);
    for (int i = 0; i < count; ++i) {
        const std::int32_t all[6] = {found[i].label, found[i].score, found[i].x0, found[i].y0, found[i].x1, found[i].y1};
        for (const std::int32_t value : all)
            number(value);
    }
}
"""


def program(cases: list[DetectionCase], write: str) -> str:
    """The C++ text; `write` is the statement that prints `text`."""
    configs, calls = FOUND, ""
    for number, case in enumerate(cases):
        arrays = [values.T if case.planar else values for values in (case.boxes, case.scores)]
        configs += post_cases.array(f"boxes{number}", arrays[0]) + post_cases.array(f"scores{number}", arrays[1])
        configs += post_cases.config(f"Case{number}", case.post, arrays, {"Detection": "Found"})
        calls += f"    run<n2d2::Detector<Case{number}>>({case.decoder.most}, boxes{number}, scores{number});\n"
    return post_cases.program("detections", configs, "", calls, write)


def save_detector(path: str, order: str = "boxes last", two: bool = False, score_activation: bool = True) -> None:
    """A detector of an image 24 high and 32 wide: 48 boxes of cells of 4 pixels, relative to the image, and scores of 3 classes."""
    rng = np.random.default_rng(3)
    rows, columns = np.mgrid[:6, :8]
    centers = np.stack([(columns + 0.5) / 8, (rows + 0.5) / 6]).reshape(1, 2, 48)
    grid = np.concatenate([centers, np.full((1, 2, 48), 0.3)], 1).astype(np.float32)
    kernels = rng.normal(0, 0.8, (7, 3, 4, 4))
    constants = {"w": kernels - kernels.mean((1, 2, 3), keepdims=True), "grid": grid, "step": np.full((1, 4, 48), 0.2)}
    constants |= {"shape": np.array([0, -1, 48]), "sizes": np.array([4, 3])}
    body = f"""c = Conv <strides = [4, 4]> (x, w) flat = Reshape (c, shape) b, s = Split <axis = 1> (flat, sizes)
        t = Tanh (b) m = Mul (t, step) boxes = Add (m, grid) scores = {"Sigmoid" if score_activation else "Identity"} (s)"""
    joined = "Concat <axis = 1> (boxes, scores)"
    if two:
        ends = "float[1,4,48] boxes, float[1,3,48] scores"
    elif order == "boxes last":
        ends, body = "float[1,7,48] y", f"{body} y = {joined}"
    else:
        ends, body = "float[1,48,7] y", f"{body} z = {joined} y = Transpose <perm = [0, 2, 1]> (z)"
    onnx.save(text_model(f"float[1,3,24,32] x => {ends}", body, constants, opset=13), path)
