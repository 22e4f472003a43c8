"""The pipeline of an export in the report: from the raw image or sound to the decision, with samples after each stage."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from n2d2py.figures import Svg, number
from n2d2py.naming import shorten
from n2d2py.postprocessing import Decision, Detection, Embedding, KeyPoint
from n2d2py.report.comparison import inline_picture
from n2d2py.report.text import decimal, grouped

_SIDE = 320
"""Pixels of the longer side of an image in the page, at most."""
_CLASSES = 4


@dataclass(frozen=True)
class PipelineStage:
    """A stage around or in the network; `facts`: name and value of its memory, time or instructions."""

    title: str
    text: str
    facts: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class PipelineSample:
    """A sample on its way.

    `raw`: image (H, W) or (H, W, 3), bytes, or a sound (n,) or samples of a sensor (n, axes), int16. `input`: what the
    network reads: an image of bytes, or features (features, frames); None for another input. `decision`: what
    `Network.pipeline` gives.
    """

    name: str
    raw: np.ndarray
    input: np.ndarray | None
    decision: Any


@dataclass(frozen=True)
class PipelineData:
    """Stages, samples, names of the classes; `converted`: the export makes the input of the raw sample."""

    stages: Sequence[PipelineStage]
    samples: Sequence[PipelineSample]
    classes: tuple[str, ...] = ()
    converted: bool = True


def shown_stages(data: PipelineData) -> list[tuple[PipelineStage, list[tuple[str, str]]]]:
    """Return the stages, each with a figure of each sample, SVG text and caption; the last one has the decisions."""
    figures: list[list[tuple[str, str]]] = [[] for _ in data.stages]
    for sample in data.samples:
        figures[0].append((_draw_raw(sample.raw), shorten(sample.name, 32)))
        if data.converted and sample.input is not None:
            figures[1].append((_draw_image(sample.input), f"{sample.input.shape[1]}x{sample.input.shape[0]}"))
        figures[-1].append(_draw_decision(sample, data.classes))
    return list(zip(data.stages, figures, strict=True))


def _draw_raw(raw: np.ndarray) -> str:
    return _draw_waves(raw.reshape(len(raw), math.prod(raw.shape[1:]))) if raw.dtype == np.int16 else _draw_image(raw)


def _draw_waves(samples: np.ndarray) -> str:
    """Return the least and the largest sample of each of 160 pieces, for each axis of samples (n, axes)."""
    svg, peak = Svg(160, 120, "wave", standalone=False), max(1.0, float(abs(samples.astype(np.int64)).max(initial=0)))
    for axis in samples.T.astype(np.int64):
        pieces = np.array_split(axis, min(160, len(axis)) or 1)
        ends = [(float(one.min()), float(one.max())) if len(one) else (0.0, 0.0) for one in pieces]
        path = "".join(
            f"{'L' if k else 'M'}{number(160 * (k + 0.5) / len(ends))} {number(59.5 - 58 * high / peak)}V{number(60.5 - 58 * low / peak)}"
            for k, (low, high) in enumerate(ends)
        )
        svg.path(path, "wave")
    return svg.finish()


def _draw_image(image: np.ndarray, results: Sequence[Detection | KeyPoint] = ()) -> str:
    high, wide = image.shape[:2]
    scale = -(-max(high, wide) // _SIDE)
    svg = Svg(wide, high, "photo", standalone=False)
    svg.image(wide, high, inline_picture(np.ascontiguousarray(image[::scale, ::scale])))
    side = max(high, wide) / 40
    for one in results:
        name = f"{one.name or one.label} {one.score:.2f}"
        if isinstance(one, KeyPoint):
            edges = one.x - side / 2, one.y - side / 2, side, side
        else:
            edges = one.x0, one.y0, one.x1 - one.x0, one.y1 - one.y0
        svg.rect(*edges, f"found d{one.label % 6}", title=name)
    return svg.finish()


def _draw_decision(sample: PipelineSample, classes: tuple[str, ...]) -> tuple[str, str]:
    decision = sample.decision
    if isinstance(decision, Decision):
        label = decision.name or (str(decision.label) if decision.label >= 0 else "none")
        return _draw_bars([(one.name or f"output {one.label}", one.score) for one in decision.top[:_CLASSES]]), label
    if isinstance(decision, Embedding):
        return _draw_values(decision.vector, ()), f"{decision.name or decision.label} {decision.score:.2f}"
    if isinstance(decision, list):
        counts = [f"{one.name or one.label} {one.score:.2f}" for one in decision[:_CLASSES]]
        more = f" and {len(decision) - _CLASSES} more" if len(decision) > _CLASSES else ""
        return _draw_image(sample.raw, decision), (", ".join(counts) or "nothing") + more
    (values,) = decision[:1] if isinstance(decision, tuple) else (decision,)
    if values.dtype.kind in "iu" and values.ndim == 2:
        return _draw_image(np.rint(values * (255 / max(1, values.max()))).astype(np.uint8)), "classes of the pixels"
    return _draw_values(values.ravel(), classes), ""


def _draw_values(values: np.ndarray, classes: tuple[str, ...]) -> str:
    best = np.argsort(-values, kind="stable")[:_CLASSES].tolist()
    return _draw_bars([(classes[index] if index < len(classes) else f"output {index}", float(values[index])) for index in best])


def _draw_bars(rows: Sequence[tuple[str, float]]) -> str:
    most = max(abs(value) for _, value in rows) or 1.0
    svg = Svg(160, 120, "values", standalone=False)
    for row, (name, value) in enumerate(rows):
        y = 6 + 28 * row
        svg.text(2, y + 9, shorten(name, 18), "name" if row == 0 else "info", anchor="start")
        svg.text(158, y + 9, decimal(value, 3), "info", anchor="end")
        svg.rect(2, y + 14, max(1.0, 156 * value / most), 5, "bars" if row == 0 else "kept")
    return svg.finish()


def bytes_fact(name: str, count: int) -> tuple[str, str]:
    """Return a fact: so many bytes."""
    return name, f"{grouped(count)} bytes"
