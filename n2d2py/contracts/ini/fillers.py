"""Weight initialization: N2D2's fillers, deterministic in the seed and the layer name."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from n2d2py.ini.schema import Key, Kind, Values

_TYPES = ("ConstantFiller", "NormalFiller", "UniformFiller", "HeFiller", "XavierFiller")

_COUNTS = ("FanIn", "Average", "FanOut")
_BLOCK = 1 << 20


def filler_keys(role: str) -> tuple[Key, ...]:
    """Return the filler keys of "Weights" or "Bias"."""
    p = f"{role}Filler"
    return (
        Key(p, Kind.ENUM, None, "Filler type of the initial values.", _TYPES),
        Key(f"{p}.Value", Kind.FLOAT, 0.0, "ConstantFiller: value."),
        Key(f"{p}.Mean", Kind.FLOAT, 0.0, "NormalFiller: mean."),
        Key(f"{p}.StdDev", Kind.FLOAT, 1.0, "NormalFiller: standard deviation.", minimum=0),
        Key(f"{p}.Min", Kind.FLOAT, 0.0, "UniformFiller: lower bound."),
        Key(f"{p}.Max", Kind.FLOAT, 1.0, "UniformFiller: upper bound."),
        Key(f"{p}.VarianceNorm", Kind.ENUM, "FanIn", "HeFiller, XavierFiller: count used for normalization.", _COUNTS),
        Key(f"{p}.Scaling", Kind.FLOAT, 1.0, "HeFiller, XavierFiller: scale factor."),
        Key(f"{p}.MeanNorm", Kind.FLOAT, 0.0, "HeFiller: mean, times the count of VarianceNorm."),
        Key(f"{p}.Distribution", Kind.ENUM, "Uniform", "XavierFiller: distribution.", ("Uniform", "Normal")),
    )


def fill(values: Values, role: str, shape: tuple[int, ...], *, seed: int, name: str) -> np.ndarray:
    """Return a float32 array of `shape` (outputs first) from the section's filler; NormalFiller(0, 0.05) by default."""
    p = f"{role}Filler"
    generator = np.random.Generator(np.random.PCG64([seed, zlib.crc32(f"{name}/{role}".encode())]))
    kind = values[p]
    fan_in, fan_out = prod(shape[1:]), shape[0] * prod(shape[2:])
    count = {"FanIn": fan_in, "FanOut": fan_out, "Average": (fan_in + fan_out) / 2}[values[f"{p}.VarianceNorm"]]
    scaling = values[f"{p}.Scaling"]
    if kind == "ConstantFiller":
        return np.full(shape, values[f"{p}.Value"], np.float32)
    if kind is None:
        draw = partial(generator.normal, 0.0, 0.05)
    elif kind == "NormalFiller":
        draw = partial(generator.normal, values[f"{p}.Mean"], values[f"{p}.StdDev"])
    elif kind == "UniformFiller":
        draw = partial(generator.uniform, values[f"{p}.Min"], values[f"{p}.Max"])
    elif kind == "HeFiller":
        draw = partial(generator.normal, scaling * values[f"{p}.MeanNorm"] / count, scaling * np.sqrt(2.0 / count))
    elif values[f"{p}.Distribution"] == "Normal":
        draw = partial(generator.normal, 0.0, scaling * np.sqrt(1.0 / count))
    else:
        bound = scaling * np.sqrt(3.0 / count)
        draw = partial(generator.uniform, -bound, bound)
    return _draw_blocks(draw, shape)


def _draw_blocks(draw: Callable[[int], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Return a float32 array drawn block by block, which avoids a float64 copy of a large layer."""
    result = np.empty(prod(shape), np.float32)
    for first in range(0, result.size, _BLOCK):
        block = result[first : first + _BLOCK]
        block[:] = draw(block.size)
    return result.reshape(shape)
