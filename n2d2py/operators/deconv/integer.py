"""The integer form of a transposed convolution."""

from __future__ import annotations

from n2d2py.quant.contract import quantizer
from n2d2py.quant.weighted import WeightedQuantizer


@quantizer("Deconv")
class DeconvQuantizer(WeightedQuantizer):
    """Not every tap meets an input, so the kernel subtracts the zero point."""

    zero_point_in_bias = False
