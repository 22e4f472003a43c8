"""Samples of sensors with several axes to the windows of a network's input: the definition that `kernels/n2d2/sensor.hpp` computes too.

A sample is a 16-bit integer for each axis; its real value is (sample * unit - mean) / std, as float32 of

    sample * factor + offset          in float64, with factor = unit / std and offset = -mean / std in float32

A window is the latest samples. Before the first sample, it holds samples of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from n2d2py.arithmetic.stream import StreamSource
from n2d2py.ini import Key, Kind, option_error, read_choice

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
