"""Rescales as C++ types, and the double rounding of TFLite."""

import numpy as np

from n2d2py.arithmetic import DoublingRescale, FixedPointRescale, FloatRescale, Rescale
from n2d2py.contracts.cpp.parts import Array

CLAMPS = {
    "std::uint8_t": (0, 255),
    "std::int8_t": (-127, 127),
    "std::uint16_t": (0, 65535),
    "std::int16_t": (-32767, 32767),
    "std::int32_t": (-(2**30), 2**30),
}


def ties_and_edges() -> np.ndarray:
    """Accumulators around every tie of the small shifts, powers of two and the ends of 32 bits."""
    near = np.arange(-1200, 1201)
    powers = np.concatenate([sign * 2 ** np.arange(10, 32) + step for sign in (-1, 1) for step in range(-3, 4)])
    halves = np.concatenate([(np.arange(-300, 301) * 2 + 1) * 2**bits for bits in range(22)])
    values = np.concatenate([near, powers, halves, [2**31 - 1, -(2**31), -(2**31) + 1]])
    return np.unique(np.clip(values, -(2**31), 2**31 - 1)).astype(np.int64)


def accumulators(count: int, wide: bool) -> np.ndarray:
    """The edges, then random accumulators of all magnitudes, of 32 or up to 46 bits."""
    rng = np.random.default_rng(7)
    magnitude = 2.0 ** rng.uniform(0, 45 if wide else 31, count)
    low, high = (-(2**45), 2**45) if wide else (-(2**31), 2**31 - 1)
    random = np.clip(rng.choice([-1, 1], count) * magnitude, low, high)
    return np.concatenate([ties_and_edges(), random.astype(np.int64)])


def doubling(factors: np.ndarray, twice: bool = True) -> DoublingRescale:
    """The rescale of TFLite's kernels nearest to float64 `factors`."""
    mantissa, exponent = np.frexp(factors)
    return DoublingRescale(
        np.minimum(np.rint(mantissa * 2.0**31), 2**31 - 1).astype(np.int64), -exponent.astype(np.int64), twice
    )


def within(rescale: Rescale, acc: np.ndarray) -> np.ndarray:
    """True for the accumulators that a rescale is defined for."""
    left = max(0, -int(rescale.shifts.min())) if isinstance(rescale, DoublingRescale) else 0
    return np.abs(acc) < 2 ** (30 - left) if isinstance(rescale, DoublingRescale) else np.ones(acc.shape, bool)


def cpp_type(name: str, rescale: Rescale) -> tuple[str, list[Array]]:
    """The C++ type of a rescale and its arrays."""
    if isinstance(rescale, FloatRescale):
        return f"n2d2::FloatRescale<{name}_f, {rescale.count}>", [Array(f"{name}_f", "float", rescale.factors)]
    if isinstance(rescale, FixedPointRescale):
        array = Array(f"{name}_m", "std::int32_t", rescale.multipliers)
        return f"n2d2::FixedPointRescale<{name}_m, {rescale.count}, {rescale.shift}>", [array]
    if isinstance(rescale, DoublingRescale):
        words = [Array(f"{name}_m", "std::int32_t", rescale.multipliers), Array(f"{name}_s", "std::int32_t", rescale.shifts)]
        flags = f"{str(rescale.twice).lower()}, {str(bool(rescale.shifts.min() > 0)).lower()}"
        return f"n2d2::DoublingRescale<{name}_m, {name}_s, {rescale.count}, {flags}>", words
    arrays = [Array(f"{name}_m", "std::int64_t", rescale.multipliers), Array(f"{name}_s", "std::uint8_t", rescale.second)]
    return f"n2d2::ShiftRescale<{name}_m, {name}_s, {rescale.count}>", arrays
