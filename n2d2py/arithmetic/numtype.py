"""The type of a tensor's elements: integer with scale and zero point, or floating point."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


def cut(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return real numbers as integers of a type: towards zero, held within its range, 0 for what is not a number."""
    limits = np.iinfo(dtype)
    whole = np.trunc(np.where(np.isnan(values), 0.0, values.astype(np.float64)))
    inside = (whole < float(limits.max)) & (whole > float(limits.min))
    integers = np.where(inside, whole, 0.0).astype(dtype)
    ends = np.where(whole < float(limits.max), dtype.type(limits.min), dtype.type(limits.max))
    return np.where(inside, integers, ends)


@dataclass(frozen=True)
class NumType:
    """Elements of `bits` bits that stand for the real number ``scale * (q - zero_point)``.

    Signed integers use the symmetric range +-(2^(bits-1) - 1), with `full` also -2^(bits-1); unsigned ones
    [0, 2^bits - 1]. 32-bit integers carry accumulators. Floating-point types have scale 1 and zero point 0.
    `least` and `most` are narrower limits, of a quantizer of fewer bits whose integers are stored in these.
    A `plain` type holds integers or truth values unchanged, over the whole range of the type.
    """

    bits: int
    signed: bool = True
    is_float: bool = False
    scale: float = 1.0
    zero_point: int = 0
    full: bool = False
    plain: bool = False
    least: int | None = None
    most: int | None = None

    @property
    def qmin(self) -> int:
        """Smallest integer value."""
        if self.least is not None:
            return self.least
        return -(2 ** (self.bits - 1) - (not (self.full or self.plain))) if self.signed else 0

    @property
    def qmax(self) -> int:
        """Largest integer value."""
        if self.most is not None:
            return self.most
        return 2 ** (self.bits - 1) - 1 if self.signed else 2**self.bits - 1

    @property
    def max_abs(self) -> float:
        """Largest magnitude of a real number that the integers stand for."""
        return self.scale * max(self.qmax - self.zero_point, self.zero_point - self.qmin)

    @property
    def interval(self) -> tuple[float, float]:
        """Least and largest real number that the integers stand for."""
        return self.scale * (self.qmin - self.zero_point), self.scale * (self.qmax - self.zero_point)

    @property
    def bytes(self) -> int:
        """Bytes of one element in the exported project."""
        return self.bits // 8

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type that stores the elements."""
        kind = "f" if self.is_float else "i" if self.signed else "u"
        return np.dtype(f"{kind}{self.bytes}")

    @property
    def cpp(self) -> str:
        """The C++ type of an element."""
        if self.is_float:
            return "float" if self.bits == 32 else "double"
        return f"std::{'' if self.signed else 'u'}int{self.bits}_t"

    @property
    def name(self) -> str:
        """Short name, such as uint8 or float32."""
        return self.dtype.name

    def with_scale(self, scale: float) -> NumType:
        """Return the same integers standing for other real numbers."""
        return replace(self, scale=float(scale))

    @np.errstate(over="ignore")
    def quantize(self, real: np.ndarray) -> np.ndarray:
        """Return clip(round_half_even(real / scale) + zero_point): the stored values of real numbers; NaN counts as 0.

        The quotient of float32 numbers is float32, as in ONNX's QuantizeLinear and in the exported C++; that of others float64.
        """
        if self.is_float:
            return np.asarray(real, self.dtype)
        real = np.asarray(real)
        if self.plain:
            return cut(real, self.dtype) if real.dtype.kind == "f" else real.astype(self.dtype)
        kind = np.float32 if real.dtype == np.float32 else np.float64
        steps = np.asarray(np.divide(real, kind(self.scale), dtype=kind))
        if np.isnan(steps.min(initial=0)):
            steps[np.isnan(steps)] = 0
        np.rint(steps, out=steps)
        if self.bits > 16:  # float32 has not all of these integers
            steps = steps.astype(np.float64)
        steps += self.zero_point
        return np.clip(steps, self.qmin, self.qmax, out=steps).astype(self.dtype)

    def quantize_linear(self, real: np.ndarray) -> np.ndarray:
        """Return the stored values of real numbers as ONNX's QuantizeLinear gives them: quotients in float32."""
        return self.quantize(np.asarray(real, np.float32))

    def dequantize(self, stored: np.ndarray) -> np.ndarray:
        """Return scale * (stored - zero_point) in float32 (float64 for 64-bit types)."""
        if self.is_float or self.plain:
            return np.asarray(stored)
        return ((np.asarray(stored, np.float64) - self.zero_point) * self.scale).astype(np.float32)


def plain_type(kind: str) -> NumType:
    """Return the type of a tensor kind such as "int64"; truth values are bytes, 0 or 1."""
    dtype = np.dtype(np.uint8 if kind == "bool" else kind)
    return NumType(dtype.itemsize * 8, dtype.kind == "i", plain=True)


FLOAT32 = NumType(32, is_float=True)
FLOAT64 = NumType(64, is_float=True)
