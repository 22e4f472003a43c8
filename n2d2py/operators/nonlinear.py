"""Element-wise functions beyond the classic activations: linear-unit families, gates, elementary functions."""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, pi, sqrt
from typing import ClassVar

import numpy as np

from n2d2py.operators.activations import Function

__all__ = ["Abs", "Elu", "Erf", "Exp", "Gelu", "GeluTanh", "HardSigmoid", "HardSwish", "Log", "Mish", "Softsign", "Sqrt"]

_erf = np.vectorize(erf, otypes=[np.float64])
_GELU_CUBE = 0.044715
"""Weight of x^3 in the tanh form of GELU (Hendrycks and Gimpel 2016)."""


@dataclass(frozen=True)
class Elu(Function):
    """gain * x above zero, gain * alpha * (exp(rate * x) - 1) below: ELU, SELU (gain) and CELU (rate = 1 / alpha)."""

    alpha: float = 1.0
    gain: float = 1.0
    rate: float = 1.0
    kind: ClassVar[str] = "Elu"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        below = dtype(self.alpha) * np.expm1(dtype(self.rate) * np.minimum(x, dtype(0)))
        return dtype(self.gain) * np.where(x > 0, x, below)


@dataclass(frozen=True)
class HardSigmoid(Function):
    """min(max(gain * x + shift, 0), 1)."""

    gain: float = 0.2
    shift: float = 0.5
    kind: ClassVar[str] = "HardSigmoid"
    nonnegative: ClassVar[bool] = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        return np.clip(dtype(self.gain) * x + dtype(self.shift), dtype(0), dtype(1))


@dataclass(frozen=True)
class HardSwish(Function):
    """x * min(max(gain * x + shift, 0), high); 1/6, 1/2, 1 by default."""

    gain: float = 1 / 6
    shift: float = 0.5
    high: float = 1.0
    kind: ClassVar[str] = "HardSwish"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        return x * np.clip(dtype(self.gain) * x + dtype(self.shift), dtype(0), dtype(self.high))


@dataclass(frozen=True)
class Gelu(Function):
    """x * (1 + erf(x / sqrt(2))) / 2."""

    kind: ClassVar[str] = "Gelu"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return (0.5 * x * (1 + _erf(x / sqrt(2)))).astype(x.dtype)


@dataclass(frozen=True)
class GeluTanh(Function):
    """x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2."""

    kind: ClassVar[str] = "GeluTanh"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        dtype = x.dtype.type
        argument = dtype(sqrt(2 / pi)) * (x + dtype(_GELU_CUBE) * x * x * x)
        return dtype(0.5) * x * (1 + np.tanh(argument))


@dataclass(frozen=True)
class Mish(Function):
    """x * tanh(log(1 + exp(x)))."""

    kind: ClassVar[str] = "Mish"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x * np.tanh(np.logaddexp(x.dtype.type(0), x))


@dataclass(frozen=True)
class Softsign(Function):
    """x / (1 + |x|)."""

    kind: ClassVar[str] = "Softsign"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x / (1 + np.abs(x))


@dataclass(frozen=True)
class Abs(Function):
    """|x|."""

    kind: ClassVar[str] = "Abs"
    nonnegative: ClassVar[bool] = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x)


@dataclass(frozen=True)
class Erf(Function):
    """The error function."""

    kind: ClassVar[str] = "Erf"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _erf(x).astype(x.dtype)


@dataclass(frozen=True)
class Exp(Function):
    """exp(x)."""

    kind: ClassVar[str] = "Exp"
    nonnegative: ClassVar[bool] = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x)


@dataclass(frozen=True)
class Log(Function):
    """Natural logarithm; not a number below zero."""

    kind: ClassVar[str] = "Log"

    def __call__(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(x)


@dataclass(frozen=True)
class Sqrt(Function):
    """Square root; not a number below zero."""

    kind: ClassVar[str] = "Sqrt"
    nonnegative: ClassVar[bool] = True

    def __call__(self, x: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)
