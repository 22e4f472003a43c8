"""The contract of a kind of post-processing: its settings, and how they are bound to the outputs of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from n2d2py.arithmetic.detections import ONE, SUBPIXELS, BoxDecoder
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.choices import read_settings
from n2d2py.errors import Location, N2D2Error
from n2d2py.graph.port import TensorInfo
from n2d2py.ini.kinds import Kind, Unreadable
from n2d2py.ini.schema import REQUIRED, Key
from n2d2py.registry import Registry


class Detection(NamedTuple):
    """An object in an image.

    Attributes:
        label: number of its class.
        name: name of the class; "" where it has none.
        score: 0 to 1.
        x0, y0, x1, y1: left, top, right and bottom edge in pixels of the image.
    """

    label: int
    name: str
    score: float
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class StridedValues:
    """Values of the boxes in an output of the network: value v of box b is element first + b * box + v * value of its memory (HWC).

    Attributes:
        output: position of the output.
    """

    output: int
    first: int
    box: int
    value: int

    def take(self, outputs: Sequence[np.ndarray], boxes: int, values: int) -> np.ndarray:
        """The stored values (boxes, values) in the outputs (C, ...) of one sample."""
        memory = np.moveaxis(outputs[self.output], 0, -1).reshape(-1)
        return memory[self.first + self.box * np.arange(boxes)[:, None] + self.value * np.arange(values)]


@dataclass(frozen=True)
class Detector:
    """A decoder that is bound to the outputs of a network.

    Attributes:
        decoder: its integers.
        boxes, scores: where its values are.
        names: of the classes; may be empty.
    """

    decoder: BoxDecoder
    boxes: StridedValues
    scores: StridedValues
    names: tuple[str, ...] = ()

    def stored(self, outputs: Sequence[np.ndarray]) -> np.ndarray:
        """The detections in the stored outputs (C, ...) of one sample, as `BoxDecoder.detect` gives them."""
        count = self.decoder.count
        return self.decoder.detect(self.boxes.take(outputs, count, 4), self.scores.take(outputs, count, self.decoder.values))

    def detections(
        self, stored: np.ndarray, source: FrameSource | None = None, frame: tuple[int, int] | None = None
    ) -> list[Detection]:
        """Stored detections (n, 6) in real numbers; of a `frame` (width, height) of the source, in its pixels."""
        if frame is not None and source is not None:
            boxes = source.to_frame(stored[:, 2:], frame, (self.decoder.width, self.decoder.height), SUBPIXELS)
            stored = np.concatenate([stored[:, :2], boxes], 1)
        return [
            Detection(label, self.names[label] if label < len(self.names) else "", score / ONE, *(x / SUBPIXELS for x in box))
            for label, score, *box in stored.tolist()
        ]


@dataclass(frozen=True)
class PostKind:
    """A kind of post-processing.

    Attributes:
        name: as in `-post NAME`.
        doc: a sentence.
        keys: its settings.
        bind: the settings by name, the outputs of the network, width and height of its image and the names of the classes give
            the detector. Raises E460 where the outputs do not fit.
        fits: True if the outputs can only be of this kind, for the same arguments but the settings.
    """

    name: str
    doc: str
    keys: tuple[Key, ...]
    bind: Callable[[Mapping[str, Any], Sequence[TensorInfo], tuple[int, int], tuple[str, ...]], Detector]
    fits: Callable[[Sequence[TensorInfo], tuple[int, int], tuple[str, ...]], bool]


KINDS: Registry[PostKind] = Registry("post-processing", "n2d2py.postprocessing.boxes")
"""The kinds by name."""


@dataclass(frozen=True)
class Post:
    """A post-processing with its settings, those that are not given at their default."""

    kind: PostKind
    values: Mapping[str, Any]

    def bind(self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], names: tuple[str, ...]) -> Detector:
        """The detector for a network.

        Raises:
            N2D2Error: E460 where its input or its outputs do not fit.
        """
        return self.kind.bind(self.values, outputs, image_size(inputs), names)


def recognized(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], names: tuple[str, ...]) -> str | None:
    """The only kind that outputs can be of; None where there is none, or more than one."""
    if len(inputs) != 1 or len(inputs[0].stored) != 4:
        return None
    found = [kind.name for kind in KINDS.values() if kind.fits(outputs, image_size(inputs), names)]
    return found[0] if len(found) == 1 else None


def parse_post(text: str, where: Location | None = None) -> Post:
    """The post-processing of `KIND:key=value,key=value`.

    Raises:
        N2D2Error: E003 an unknown kind or key, or a value of the wrong type or range.
    """
    wrong = partial(_wrong, where, text)
    name, given = read_settings(text, {kind.name: [key.name for key in kind.keys] for kind in KINDS.values()}, wrong)
    values: dict[str, Any] = {}
    for key in KINDS[name].keys:
        try:
            values[key.name] = key.read(key.name, given[key.name])[0] if key.name in given else key.default
        except Unreadable as error:
            raise wrong(error.what, error.remedy) from None
        if values[key.name] is REQUIRED:
            raise wrong(f"{key.name} is missing", f"add {key.name}=...")
    return Post(KINDS[name], values)


def files_of(text: str) -> dict[str, str]:
    """By the key of -post, the files that it names."""
    post = parse_post(text)
    return {key.name: post.values[key.name] for key in post.kind.keys if key.kind is Kind.PATH}


def with_files(text: str, paths: Mapping[str, str]) -> str:
    """The text of -post with other paths of its files."""
    settings = (
        f"{key}={paths.get(key, value)}" for key, _, value in (one.partition("=") for one in text.partition(":")[2].split(","))
    )
    return f"{text.partition(':')[0]}:{','.join(settings)}" if paths else text


def _wrong(where: Location | None, text: str, what: str, remedy: str) -> N2D2Error:
    return N2D2Error("E003", what if where else f"-post {text}: {what}", where=where, remedy=remedy)


def image_size(inputs: Sequence[TensorInfo]) -> tuple[int, int]:
    """Width and height of the image that a network takes.

    Raises:
        N2D2Error: E460 for a network without one image as its input.
    """
    if len(inputs) != 1 or len(inputs[0].stored) != 4:
        raise N2D2Error("E460", "-post requires a model with one input, an image", remedy="remove -post")
    _, high, wide = (0, 1, 2) if inputs[0].port is None else inputs[0].port.image_axes
    return inputs[0].stored[1 + wide], inputs[0].stored[1 + high]
