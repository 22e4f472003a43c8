"""Post-processing that gives positions in an image: detectors, and positions in the frame that became the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.detections import SUBPIXELS
from n2d2py.arithmetic.fixed_scale import ONE
from n2d2py.arithmetic.frame import FrameSource
from n2d2py.postprocessing.contract import CCall, PostProcessor
from n2d2py.postprocessing.results import Detection


@dataclass(frozen=True)
class Detector(PostProcessor):
    """A post-processing that gives detections.

    Attributes:
        size: width and height of the image, in pixels.
        most: detections at most.
    """

    size: tuple[int, int]
    most: int

    function: ClassVar = "detect"
    folder: ClassVar = "boxes"
    in_frame: ClassVar = True
    types: ClassVar = {"Detection": "detection"}

    @property
    def memory(self) -> np.ndarray:
        """Of all detections: class, score in 1/65536, edges in 1/16 pixel."""
        return np.zeros((self.most, 6), np.int32)

    def compiled(self, call: CCall, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        memories = [self.memory for _ in samples]
        counts = [call(self.function, *sample, one, self.most) for sample, one in zip(samples, memories, strict=True)]
        return [one[:count] for one, count in zip(memories, counts, strict=True)]

    def result(
        self, stored: np.ndarray, source: FrameSource | None = None, frame: tuple[int, int] | None = None
    ) -> list[Detection]:
        """Return stored detections (n, 6) in real numbers; of a `frame` (width, height) of the source, in its pixels."""
        corners = in_frame(stored[:, 2:], self.size, source, frame) / SUBPIXELS
        return [
            Detection(label, self.name(label), score / ONE, *box)
            for (label, score), box in zip(stored[:, :2].tolist(), corners.tolist(), strict=True)
        ]


def in_frame(
    positions: np.ndarray, size: tuple[int, int], source: FrameSource | None, frame: tuple[int, int] | None
) -> np.ndarray:
    """Return the positions (n, x y x y ...) in 1/16 pixel of the image, or of the frame (width, height) that became it."""
    if frame is None or source is None:
        return positions
    return source.to_frame(positions, frame, size, SUBPIXELS)
