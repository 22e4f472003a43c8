"""Conversion of samples of a sensor in C++: `kernels/n2d2/sensor.hpp`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.arithmetic import NumType
from n2d2py.arithmetic.sensor import SensorSource
from n2d2py.arithmetic.stream import InputFrames
from n2d2py.exports.cpp.audio_input import least_features


@dataclass(frozen=True)
class SensorView:
    """The conversion as the templates see it.

    Attributes:
        source: the sensor.
        frames: samples of a window, and their order in the input.
        lowest: the stored value of the sample -32768 of each axis; () for 16-bit and float inputs.
        thresholds: for each axis and stored value but the lowest one, the largest sample below it.
    """

    source: SensorSource
    frames: InputFrames
    lowest: tuple[int, ...]
    thresholds: tuple[int, ...]

    stem = "sensor"
    header = "n2d2/sensor.hpp"
    words = 0
    """4-byte words of the state: the input itself is the window."""

    @property
    def literals(self) -> list[tuple[str, str]]:
        """Factor and offset of each axis as float literals."""
        return [(f"{factor:.9e}f", f"{offset:.9e}f") for factor, offset in self.source.factors.T.tolist()]


def sensor_view(source: SensorSource, shape: tuple[int, ...], kind: NumType) -> SensorView:
    """Return the conversion to an input of `shape` (C, H, W) or (F,), stored as `kind`."""
    frames = source.frames_of(shape)
    if kind.is_float or kind.bits > 8:
        return SensorView(source, frames, (), ())

    def real(samples: np.ndarray) -> np.ndarray:
        return source.real(samples.T).T

    edges = np.broadcast_to(np.arange(kind.qmin + 1, kind.qmax + 1), (source.axes, kind.qmax - kind.qmin))
    below = np.clip(least_features(real, kind, edges, 15) - 1, -32768, 32767)
    lowest = kind.quantize(real(np.full((source.axes, 1), -32768)))
    return SensorView(source, frames, tuple(lowest.ravel().tolist()), tuple(below.ravel().tolist()))
