"""Sources of samples that come one after the other, and their frames that fill an input; sensors of several axes. The definition that
`kernels/n2d2/sensor.hpp` computes too.

A sample of a sensor is a 16-bit integer for each axis; its real value is (sample * unit - mean) / std, as float32 of

    sample * factor + offset          in float64, with factor = unit / std and offset = -mean / std in float32

A window is the latest samples. Before the first sample, it holds samples of zeros.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.errors import N2D2Error
from n2d2py.ini import Key, Kind, option_error, read_choice


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


_KEYS = (
    Key("axes", Kind.UINT, minimum=1, maximum=65536),
    Key("hop", Kind.UINT, 1, minimum=1, maximum=65536),
    Key("unit", Kind.FLOATS, (1.0,), minimum=1e-30),
    Key("mean", Kind.FLOATS, (0.0,)),
    Key("std", Kind.FLOATS, (1.0,), minimum=1e-30),
)


@dataclass(frozen=True)
class SensorSource(StreamSource):
    """A sensor, and the way of its samples to the input of a network.

    `axes`: integers of a sample. `hop`: samples from one window to the next. `unit`: real value of 1, of each axis. `mean`,
    `std`: of the real values, of each axis.
    """

    axes: int
    hop: int
    unit: tuple[float, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    option: ClassVar = "-sensor"
    stem: ClassVar = "sensor"

    @property
    def size_key(self) -> str:
        return "axes"

    @property
    def features(self) -> int:
        return self.axes

    @property
    def sample_shape(self) -> tuple[int, ...]:
        return (self.axes,)

    @property
    def text(self) -> str:
        lists = (f"{name}={'/'.join(map(repr, getattr(self, name)))}" for name in ("unit", "mean", "std"))
        return f"window:axes={self.axes},hop={self.hop},{','.join(lists)}"

    @property
    def factors(self) -> np.ndarray:
        """Factor and offset of each axis (2, axes), float32."""
        unit, mean, std = map(np.array, (self.unit, self.mean, self.std))
        return np.stack([unit / std, 0.0 - mean / std]).astype(np.float32)

    def samples(self, frames: int) -> int:
        return frames

    def windows(self, count: int, frames: int) -> int:
        """Return the windows of `frames` samples in a recording of `count` samples; at least one."""
        return 1 + max(count - frames, 0) // self.hop

    def latest(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the last samples (frames, axes) of samples (n, axes), zeros before them."""
        return np.pad(samples[-frames:], ((max(frames - len(samples), 0), 0), (0, 0)))

    def each_window(self, samples: np.ndarray, frames: int) -> np.ndarray:
        """Return the windows (n, frames, axes) of samples (n, axes), `hop` samples apart; none of too few samples."""
        if len(samples) < frames:
            return np.zeros((0, frames, self.axes), np.int16)
        return np.lib.stride_tricks.sliding_window_view(samples, frames, 0)[:: self.hop].swapaxes(1, 2)

    def real(self, features: np.ndarray) -> np.ndarray:
        """Return the real values of samples (n, axes), float32."""
        factor, offset = self.factors.astype(np.float64)
        return (features * factor + offset).astype(np.float32)

    def stored(self, values: np.ndarray) -> np.ndarray:
        """Return the samples, int16, of real values (n, axes) in multiples of `unit`, such as m/s^2, clipped to 16 bits."""
        return np.clip(np.floor(values / np.array(self.unit) + 0.5), -32768, 32767).astype(np.int16)


def read_sensor(text: str) -> SensorSource:
    """Return the source of window:KEY=VALUE,...; the values of the axes are separated by /, one value is that of all.

    Raises E003 for an unknown kind or key, or a value that is not possible.
    """
    wrong = option_error("-sensor", text)
    _, values = read_choice(text, {"window": _KEYS}, wrong)
    axes = values["axes"]
    for key in ("unit", "mean", "std"):
        if len(values[key]) not in (1, axes):
            raise wrong(f"{key} has {len(values[key])} values, but there are {axes} axes", f"give 1 value or {axes}")
        values[key] *= axes // len(values[key])
    return SensorSource(**values)
