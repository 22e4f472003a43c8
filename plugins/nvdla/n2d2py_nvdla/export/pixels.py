"""Images as input of a convolution: one byte per pixel in lines (format R8) instead of an atom per pixel.

The bytes are the stored values of the network, with their sign. Hardware takes the columns of a kernel as channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from n2d2py.graph import QuantGraph
from n2d2py_nvdla.config import HardwareConfig

R8 = 0
"""The pixel format of one byte."""


@dataclass(frozen=True)
class ConvolutionWindow:
    """Stride, padding (top, left, bottom, right) and dilation of a convolution."""

    stride: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)


def holds_pixels(graph: QuantGraph, name: str) -> bool:
    """True if an int8 input can be an image: one channel, read by nothing but dense convolutions without dilation."""
    shape, readers = graph.shape(name), graph.consumers(name)
    return (
        len(shape) == 4
        and shape[1] == 1
        and name not in graph.outputs
        and bool(readers)
        and all(node.op.kind == "Conv" and node.op.groups == 1 and node.op.dilation == (1, 1) for node in readers)
    )


def entries_of_pixels(one: HardwareConfig, width: int, window: ConvolutionWindow) -> int:
    """Return the entries of the convolution buffer that a line with its padding takes."""
    return -(-(width + window.pads[1] + window.pads[3]) // one.width)


def extended(weights: np.ndarray) -> np.ndarray:
    """Return the weights (K, 1, R, S) as (K, S, R, 1), as hardware reads images."""
    return np.ascontiguousarray(weights.transpose(0, 3, 2, 1))


def read_pixels(
    op: np.ndarray, one: HardwareConfig, width: int, height: int, kernel: tuple[int, int], window: ConvolutionWindow
) -> None:
    """Make a convolution of feature data, of one channel, one of signed pixels."""
    entries = -(-(width + int(op["pad_x_left"]) + int(op["pad_x_right"])) // one.width)
    op["data_format"], op["pixel_override"] = R8, 1
    op["entry_per_slice"], op["data_bank"] = entries, max(1, -(-entries * height // one.depth))
    op["kernel_width_csc"], op["kernel_channel_csc"] = 1, kernel[1]
    op["in_cvt"]["scale"], op["in_cvt"]["enable"] = 1, 1
