"""Sources of samples that come one after the other, such as sounds and motions: frames of features that fill an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error


@dataclass(frozen=True)
class InputFrames:
    """Frames of an input (C, H, W), (C, W) or (F,).

    `count`: number of frames. `turned`: the features of the first frame come after each other only with a stride, in (C, H,
    W). `major`: they are next to each other in an array with channels last.
    """

    count: int
    turned: bool
    major: bool

    def stimulus(self, frames: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return the frames (count, features) as an input of `shape`."""
        return (frames.T if self.turned else frames).reshape(shape)


class StreamSource(ABC):
    """Samples that `option` gives to a network, and their way to its input; `stem` of its functions in C."""

    option: ClassVar[str]
    stem: ClassVar[str]

    @property
    @abstractmethod
    def size_key(self) -> str:
        """The key of the option that sets the number of features."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Features of a frame."""

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of a sample: that of a number, or the axes."""
        return ()

    @property
    @abstractmethod
    def text(self) -> str:
        """The value of the option that gives this source."""

    @abstractmethod
    def samples(self, frames: int) -> int:
        """Return the number of samples that so many frames cover."""

    @abstractmethod
    def latest(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the features (frames, features) of the last frames of samples; silence comes before too few samples."""

    @abstractmethod
    def each_window(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the features (n, frames, features) of each window for which a program runs the network, in order."""

    @abstractmethod
    def real(self, features: np.ndarray) -> np.ndarray:
        """Return the real values of features, float32."""

    def frames_of(self, shape: tuple[int, ...]) -> InputFrames:
        """Return the frames of an input of `shape` (C, H, W), (C, W) or (F,): features are on the last axis where they fit.

        Raises E417 if the input has another number of features.
        """
        sizes = [size for size in shape if size > 1]
        last, total = sizes[-1:] == [self.features], int(np.prod(shape))
        is_transposed = len(sizes) == 2 and not last
        if len(sizes) > 2 or total % self.features or (is_transposed and sizes[0] != self.features):
            text = "x".join(map(str, shape))
            what = f"{self.option} makes frames of {self.features} features, but the input is {text}"
            raise N2D2Error("E417", what, remedy=f"give {self.size_key} as the input has them, or another network")
        return InputFrames(total // self.features, is_transposed, is_transposed == (len(sizes) == 2 and shape[0] > 1))
