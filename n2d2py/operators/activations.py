"""Element-wise activation functions, as values that a layer may carry or an Activation layer applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

__all__ = ["ChannelClip", "Clip", "Function", "LeakyRectifier", "Logistic", "Softplus", "Step", "Swish", "Tanh", "rectifier"]


class Function:
    """y = f(x), element by element, in the floating-point type of x.

    Attributes:
        nonnegative: no output is below zero.
        is_clamp: f(x) = min(max(x, low), high), which integer layers apply at no cost.
    """

    kind: ClassVar[str] = ""
    nonnegative: ClassVar[bool] = False
    is_clamp: ClassVar[bool] = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError


@dataclass(frozen=True)
class Clip(Function):
    """min(max(x, low), high); Clip(0) is the rectifier, Clip(0, 6) ReLU6, Clip(-t, t) N2D2's Saturation."""

    low: float = -np.inf
    high: float = np.inf
    kind: ClassVar[str] = "Clip"
    is_clamp: ClassVar[bool] = True

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.low >= 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, x.dtype.type(self.low), x.dtype.type(self.high))


@dataclass(frozen=True)
class ChannelClip(Function):
    """min(max(x, low), highs[c]) for channel c of x (N, C, H, W)."""

    low: float
    highs: tuple[float, ...]
    kind: ClassVar[str] = "ChannelClip"
    is_clamp: ClassVar[bool] = True

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        return self.low >= 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, x.dtype.type(self.low), np.array(self.highs, x.dtype).reshape(1, -1, 1, 1))


def rectifier(slope: float = 0.0, clipping: float = 0.0) -> Function:
    """N2D2's Rectifier: slope * x below zero, x above, at most `clipping` when that is not 0."""
    high = clipping if clipping > 0 else np.inf
    return Clip(0.0, high) if slope == 0 else LeakyRectifier(slope, high)


@dataclass(frozen=True)
class LeakyRectifier(Function):
    """slope * x below zero, x above, at most `high`."""

    slope: float
    high: float = np.inf
    kind: ClassVar[str] = "LeakyRectifier"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.minimum(np.where(x < 0, x.dtype.type(self.slope) * x, x), x.dtype.type(self.high))


def _logistic(x: np.ndarray) -> np.ndarray:
    magnitude = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + magnitude), magnitude / (1 + magnitude)).astype(x.dtype)


@dataclass(frozen=True)
class Logistic(Function):
    """1 / (1 + exp(-x))."""

    kind: ClassVar[str] = "Logistic"
    nonnegative: ClassVar[bool] = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _logistic(x)


@dataclass(frozen=True)
class Softplus(Function):
    """log(1 + exp(x))."""

    kind: ClassVar[str] = "Softplus"
    nonnegative: ClassVar[bool] = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.logaddexp(x.dtype.type(0), x)


@dataclass(frozen=True)
class Swish(Function):
    """x / (1 + exp(-x))."""

    kind: ClassVar[str] = "Swish"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * _logistic(x)


@dataclass(frozen=True)
class Tanh(Function):
    """tanh(alpha * x)."""

    alpha: float = 1.0
    kind: ClassVar[str] = "Tanh"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x.dtype.type(self.alpha) * x)


@dataclass(frozen=True)
class Step(Function):
    """`below` where x <= threshold, `above` where x > threshold; None stands for x itself."""

    threshold: float
    below: float | None = 0.0
    above: float | None = 1.0
    kind: ClassVar[str] = "Step"

    @property
    def nonnegative(self) -> bool:  # type: ignore[override]
        low = self.below is not None and self.below >= 0
        high = self.threshold >= 0 if self.above is None else self.above >= 0
        return low and high

    def __call__(self, x: np.ndarray) -> np.ndarray:
        low, high = (x if value is None else x.dtype.type(value) for value in (self.below, self.above))
        return np.where(x > x.dtype.type(self.threshold), high, low).astype(x.dtype)
