"""The shape of a convolution, as the operation and its surfaces say it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConvolutionShape:
    """Shape of a convolution: kernels, channels, kernel rows and columns, output, stride, dilation, padding before."""

    kernels: int
    channels: int
    kernel: tuple[int, int]
    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
