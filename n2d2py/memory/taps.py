"""Which pixels of its input a window operator reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Taps = Callable[[int], np.ndarray]
"""The input positions inside the window of an output position."""


def is_global(op: dict[str, Any], tensors: dict[str, Any]) -> bool:
    """True if the operator is a pool over its whole input."""
    source, output = tensors[op["inputs"][0]], tensors[op["output"]]
    return (
        op["type"] == "pool"
        and (op["kh"], op["kw"]) == (source["h"], source["w"])
        and (output["h"], output["w"]) == (1, 1)
        and not any(op["pads"])
    )


def taps_along(op: dict[str, Any], source: str, axis: int, inputs: int) -> Taps:
    """The taps of a window operator in the input `source`, which has `inputs` positions along the axis (0: lines)."""
    if op["type"] == "window":
        tables = [table for name, table in zip(op["inputs"], op[("lines", "columns")[axis]], strict=True) if name == source]
        return lambda position: np.concatenate([np.arange(*table[position], dtype=np.int64) for table in tables])
    if op["type"] == "upsample":
        scale = op["scale"]
        factor = scale[axis] if isinstance(scale, (list, tuple)) else scale
        return lambda position: np.array([position // factor])
    if op["type"] == "concat":
        return lambda position: np.array([position])
    pad = op["pads"][axis]
    dil = op.get("dil", 1)
    dilation = dil[axis] if isinstance(dil, (list, tuple)) else dil
    kernel, stride = op[("kh", "kw")[axis]], op[("sh", "sw")[axis]]

    def inside(position: int) -> np.ndarray:
        found = position * stride - pad + np.arange(kernel) * dilation
        return found[(found >= 0) & (found < inputs)]

    return inside


def last_user(inputs: int, outputs: int, inside: Taps, backwards: bool) -> np.ndarray:
    """int64[inputs]: how many output positions precede the last one whose window holds each input
    position, -1 when none does.
    """
    last = np.full(inputs, -1, dtype=np.int64)
    for step in range(outputs):
        last[inside(outputs - 1 - step if backwards else step)] = step
    return last
