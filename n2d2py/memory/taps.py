"""Which pixels of its input a window operator reads."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["axis_of", "is_global", "last_user", "taps"]


def is_global(op: dict[str, Any], tensors: dict[str, Any]) -> bool:
    """Whether the operator is a pool over its whole input."""
    source, output = tensors[op["inputs"][0]], tensors[op["output"]]
    return (
        op["type"] == "pool"
        and (op["kh"], op["kw"]) == (source["h"], source["w"])
        and (output["h"], output["w"]) == (1, 1)
        and not any(op["pads"])
    )


def axis_of(op: dict[str, Any], axis: int) -> tuple[int, int, int, int, int]:
    """(kernel, stride, pad before, dilation, upsampling factor) of a window along an axis."""
    if op["type"] == "upsample":
        scale = op["scale"]
        return 1, 1, 0, 1, scale[axis] if isinstance(scale, (list, tuple)) else scale
    if op["type"] == "concat":
        return 1, 1, 0, 1, 1
    pad = op["pads"][axis]
    if op["type"] == "pad":
        return 1, 1, pad, 1, 1
    dil = op.get("dil", 1)
    dilation = dil[axis] if isinstance(dil, (list, tuple)) else dil
    return op[("kh", "kw")[axis]], op[("sh", "sw")[axis]], pad, dilation, 1


def last_user(
    inputs: int,
    outputs: int,
    kernel: int,
    stride: int,
    pad: int,
    dilation: int,
    factor: int,
    backwards: bool,
) -> np.ndarray:
    """int64[inputs]: how many output positions precede the last one whose window holds each input
    position, -1 when none does.
    """
    last = np.full(inputs, -1, dtype=np.int64)
    for step in range(outputs):
        position = outputs - 1 - step if backwards else step
        last[taps(position, inputs, kernel, stride, pad, dilation, factor)] = step
    return last


def taps(
    position: int, inputs: int, kernel: int, stride: int, pad: int, dilation: int, factor: int
) -> np.ndarray:
    """The input positions inside the window of an output position."""
    inside = (position * stride - pad + np.arange(kernel) * dilation) // factor
    return inside[(inside >= 0) & (inside < inputs)]
